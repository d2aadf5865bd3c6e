"""The fault table's meanings in the reader's language: the words of `core/fallback/table.py`, as a test holds."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.wire import Fault

MEANINGS: Mapping[Fault, str | Promise] = {
    Fault.DNS_ERROR: gettext_lazy("The provider's host name does not resolve"),
    Fault.CONNECT_REFUSED: gettext_lazy("Nothing is listening at the provider's address"),
    Fault.CONNECT_TIMEOUT: gettext_lazy("No connection in time"),
    Fault.TLS_ERROR: gettext_lazy("The encrypted connection could not be set up"),
    Fault.TLS_CERT_ERROR: gettext_lazy("The provider's certificate is not valid"),
    Fault.RESET_BEFORE_HEADERS: gettext_lazy("The connection broke before an answer"),
    Fault.READ_TIMEOUT: gettext_lazy("Connected, but no response in time"),
    Fault.DEADLINE: gettext_lazy("The request ran out of time"),
    Fault.TRUNCATED_BODY: gettext_lazy("The answer broke off before the end"),
    Fault.SLOW_BODY: gettext_lazy("The answer came too slowly"),
    Fault.TOO_LARGE: gettext_lazy("The answer is far too large"),
    Fault.REDIRECT: gettext_lazy("The provider redirected the call; redirects are never followed"),
    Fault.BAD_HTTP: gettext_lazy("The answer is not valid HTTP"),
    Fault.BAD_CONTENT_TYPE: gettext_lazy("Status 200 with a web page instead of JSON"),
    Fault.BAD_JSON: gettext_lazy("Status 200 with JSON that does not parse"),
    Fault.BAD_SHAPE: gettext_lazy("Status 200 with JSON that is not an answer"),
    Fault.EMPTY_CHOICES: gettext_lazy("An answer without any choices"),
    Fault.EMPTY_CONTENT: gettext_lazy("An empty answer"),
    Fault.GENERATION_FAILED: gettext_lazy("The model reported that its answer failed"),
    Fault.HTTP_400: gettext_lazy("The provider rejects the request as invalid"),
    Fault.CONTEXT_LENGTH: gettext_lazy("The request is longer than the model can read"),
    Fault.CONTENT_POLICY: gettext_lazy("The provider's content policy refused"),
    Fault.UNSUPPORTED_PARAMETER: gettext_lazy(
        "The model refuses a parameter; retried without it (a token limit: under its other name) and remembered"
    ),
    Fault.CAPABILITY_MISMATCH: gettext_lazy(
        "The model cannot read a kind of content; retried with a description of it"
    ),
    Fault.HTTP_401: gettext_lazy("The provider rejects the key"),
    Fault.HTTP_402: gettext_lazy("The provider requires payment"),
    Fault.HTTP_403: gettext_lazy("The provider forbids this call"),
    Fault.HTTP_404: gettext_lazy("The provider has no such model or path"),
    Fault.HTTP_408: gettext_lazy("The provider timed out waiting for the request"),
    Fault.HTTP_409: gettext_lazy("The provider reports a conflict"),
    Fault.HTTP_413: gettext_lazy("The request is too large for the provider"),
    Fault.HTTP_415: gettext_lazy("The provider does not accept this media type"),
    Fault.HTTP_422: gettext_lazy("The provider cannot process the request"),
    Fault.HTTP_425: gettext_lazy("The provider says: too early"),
    Fault.HTTP_429: gettext_lazy("The provider rate-limits the calls"),
    Fault.HTTP_429_WAIT: gettext_lazy("The provider rate-limits the calls and names a long wait"),
    Fault.HTTP_429_BAD_HEADER: gettext_lazy("The provider rate-limits the calls and names an implausible wait"),
    Fault.HTTP_429_QUOTA: gettext_lazy("The account's quota is used up"),
    Fault.HTTP_4XX: gettext_lazy("The provider refuses the request"),
    Fault.HTTP_500: gettext_lazy("The provider had an internal error"),
    Fault.HTTP_501: gettext_lazy("The provider does not support this call"),
    Fault.HTTP_502: gettext_lazy("The provider's gateway failed"),
    Fault.HTTP_503: gettext_lazy("The provider is unavailable"),
    Fault.HTTP_504: gettext_lazy("The provider's gateway timed out"),
    Fault.HTTP_52X: gettext_lazy("The provider's edge cannot reach it"),
    Fault.HTTP_529: gettext_lazy("The provider is overloaded"),
    Fault.HTTP_5XX: gettext_lazy("The provider failed with another 5xx"),
    Fault.HTTP_OTHER: gettext_lazy("An unexpected status"),
    Fault.TTFT_TIMEOUT: gettext_lazy("The stream started, but no content came in time"),
    Fault.STREAM_EMPTY: gettext_lazy("The stream ended without content"),
    Fault.STREAM_STALL: gettext_lazy("The stream fell silent after content"),
    Fault.STREAM_BROKEN: gettext_lazy("The stream broke after content"),
    Fault.STREAM_TRUNCATED: gettext_lazy("The stream ended after content without a finish reason"),
    Fault.ORIGIN_REFUSED: gettext_lazy("The provider's address is not allowed"),
    Fault.KEY_MISSING: gettext_lazy("The provider has no key"),
    Fault.FIRE_DRILL: gettext_lazy(
        "A fire drill: an administrator simulates an outage, and the provider is not called"
    ),
}
