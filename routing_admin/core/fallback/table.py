"""The table of faults: what each means, what we do about it, and what the caller sees. Data only.

Complete over `Fault` (a test says so). Columns `seed` and `strict` are REQUIREMENTS decision 6: `strict` is the
seed's plain rule, `seed` refines it where asking the same candidate again cannot help. `docs/faults.md` is written
from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.wire import Fault


class Action(StrEnum):
    """What a failure leads to: the same candidate again, the next one, or an error at once."""

    RETRY = "retry"
    NEXT = "next"
    RAISE = "raise"


class Effect(StrEnum):
    """What a failure does to its candidate's cooldown.

    `count`: the third in a row begins one. `now`: this one begins one. `minute`: one of a minute. `long`: ten minutes.
    `exact`: as long as the provider said.
    """

    NONE = "none"
    COUNT = "count"
    NOW = "now"
    MINUTE = "minute"
    LONG = "long"
    EXACT = "exact"


class Scope(StrEnum):
    """What is left alone during a cooldown: this model of the provider, or the whole provider."""

    MODEL = "model"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault: its meaning, its action under two presets, its effect, and the caller's status and code."""

    meaning: str
    seed: Action
    strict: Action
    effect: Effect
    status: int
    code: str
    scope: Scope = Scope.MODEL
    alert: bool = False


RETRY, NEXT, RAISE = Action.RETRY, Action.NEXT, Action.RAISE
NONE, COUNT, NOW, MINUTE, LONG, EXACT = tuple(Effect)
PROVIDER = Scope.PROVIDER
OWN_STATUS = 0
"""As the caller's status: the one the provider answered with."""

UNREACHABLE_CODE = "upstream_unreachable"
TIMEOUT_CODE = "upstream_timeout"
BAD = "bad_upstream_response"
BUSY = "upstream_error"

TABLE: Mapping[Fault, FaultRow] = MappingProxyType(
    {
        Fault.DNS_ERROR: FaultRow(
            "The provider's host name does not resolve", RETRY, RETRY, NOW, 502, UNREACHABLE_CODE, PROVIDER
        ),
        Fault.CONNECT_REFUSED: FaultRow(
            "Nothing is listening at the provider's address", RETRY, RETRY, NOW, 502, UNREACHABLE_CODE, PROVIDER
        ),
        Fault.CONNECT_TIMEOUT: FaultRow("No connection in time", RETRY, RETRY, COUNT, 504, TIMEOUT_CODE, PROVIDER),
        Fault.TLS_ERROR: FaultRow(
            "The encrypted connection could not be set up", RETRY, RETRY, COUNT, 502, UNREACHABLE_CODE, PROVIDER
        ),
        Fault.TLS_CERT_ERROR: FaultRow(
            "The provider's certificate is not valid", NEXT, NEXT, NOW, 502, "tls_verify", PROVIDER, True
        ),
        Fault.RESET_BEFORE_HEADERS: FaultRow(
            "The connection broke before an answer", RETRY, RETRY, COUNT, 502, UNREACHABLE_CODE
        ),
        Fault.READ_TIMEOUT: FaultRow("Connected, but no response in time", NEXT, RETRY, COUNT, 504, TIMEOUT_CODE),
        Fault.DEADLINE: FaultRow("The request ran out of time", RAISE, RAISE, NONE, 504, "deadline_exceeded"),
        Fault.TRUNCATED_BODY: FaultRow("The answer broke off before the end", RETRY, RETRY, COUNT, 502, BAD),
        Fault.SLOW_BODY: FaultRow("The answer came too slowly", NEXT, RETRY, COUNT, 504, TIMEOUT_CODE),
        Fault.TOO_LARGE: FaultRow("The answer is far too large", NEXT, NEXT, NOW, 502, "response_too_large"),
        Fault.REDIRECT: FaultRow(
            "The provider redirected the call; redirects are never followed",
            *(NEXT, NEXT, NOW, 502, "redirect_refused", PROVIDER, True),
        ),
        Fault.BAD_HTTP: FaultRow("The answer is not valid HTTP", RETRY, RETRY, COUNT, 502, BAD),
        Fault.BAD_CONTENT_TYPE: FaultRow("Status 200 with a web page instead of JSON", NEXT, RETRY, NOW, 502, BAD),
        Fault.BAD_JSON: FaultRow("Status 200 with JSON that does not parse", RETRY, RETRY, COUNT, 502, BAD),
        Fault.BAD_SHAPE: FaultRow("Status 200 with JSON that is not an answer", NEXT, RETRY, COUNT, 502, BAD),
        Fault.EMPTY_CHOICES: FaultRow("An answer without any choices", RETRY, RETRY, COUNT, 502, "empty_completion"),
        Fault.EMPTY_CONTENT: FaultRow("An empty answer", NEXT, RETRY, COUNT, 502, "empty_completion"),
        Fault.GENERATION_FAILED: FaultRow("The model reported that its answer failed", NEXT, NEXT, NONE, 502, BAD),
        Fault.HTTP_400: FaultRow(
            "The provider rejects the request as invalid", RAISE, RAISE, NONE, 400, "upstream_400"
        ),
        Fault.CONTEXT_LENGTH: FaultRow(
            "The request is longer than the model can read", RAISE, RAISE, NONE, 400, "context_length_exceeded"
        ),
        Fault.CONTENT_POLICY: FaultRow(
            "The provider's content policy refused", RAISE, RAISE, NONE, 400, "content_filter"
        ),
        Fault.UNSUPPORTED_PARAMETER: FaultRow(
            "The model refuses a parameter; retried without it (a token limit: under its other name) and remembered",
            *(RAISE, RAISE, NONE, 400, "unsupported_parameter"),
        ),
        Fault.CAPABILITY_MISMATCH: FaultRow(
            "The model cannot read a kind of content; retried with a description of it",
            *(NEXT, NEXT, NONE, 502, "capability_mismatch"),
        ),
        Fault.HTTP_401: FaultRow(
            "The provider rejects the key", RAISE, RAISE, NONE, 502, "upstream_auth", PROVIDER, True
        ),
        Fault.HTTP_402: FaultRow(
            "The provider requires payment", NEXT, NEXT, LONG, 502, "upstream_payment_required", PROVIDER, True
        ),
        Fault.HTTP_403: FaultRow(
            "The provider forbids this call", RAISE, RAISE, NONE, 502, "upstream_forbidden", PROVIDER, True
        ),
        Fault.HTTP_404: FaultRow(
            "The provider has no such model or path", RAISE, RAISE, NONE, 404, "upstream_404", alert=True
        ),
        Fault.HTTP_408: FaultRow(
            "The provider timed out waiting for the request", RETRY, RETRY, COUNT, 504, TIMEOUT_CODE
        ),
        Fault.HTTP_409: FaultRow("The provider reports a conflict", RETRY, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_413: FaultRow("The request is too large for the provider", RAISE, RAISE, NONE, 413, "upstream_413"),
        Fault.HTTP_415: FaultRow(
            "The provider does not accept this media type", RAISE, RAISE, NONE, 415, "upstream_415"
        ),
        Fault.HTTP_422: FaultRow("The provider cannot process the request", RAISE, RAISE, NONE, 422, "upstream_422"),
        Fault.HTTP_425: FaultRow("The provider says: too early", RETRY, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_429: FaultRow("The provider rate-limits the calls", RETRY, RETRY, COUNT, 429, "upstream_429"),
        Fault.HTTP_429_WAIT: FaultRow(
            "The provider rate-limits the calls and names a long wait", NEXT, RETRY, EXACT, 429, "upstream_429"
        ),
        Fault.HTTP_429_BAD_HEADER: FaultRow(
            "The provider rate-limits the calls and names an implausible wait",
            *(RETRY, RETRY, MINUTE, 429, "upstream_429"),
        ),
        Fault.HTTP_429_QUOTA: FaultRow(
            "The account's quota is used up", NEXT, RETRY, LONG, 429, "upstream_429", PROVIDER, True
        ),
        Fault.HTTP_4XX: FaultRow("The provider refuses the request", RAISE, RAISE, NONE, OWN_STATUS, "upstream_4xx"),
        Fault.HTTP_500: FaultRow("The provider had an internal error", RETRY, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_501: FaultRow("The provider does not support this call", NEXT, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_502: FaultRow("The provider's gateway failed", RETRY, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_503: FaultRow("The provider is unavailable", RETRY, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_504: FaultRow("The provider's gateway timed out", RETRY, RETRY, COUNT, 504, TIMEOUT_CODE),
        Fault.HTTP_52X: FaultRow("The provider's edge cannot reach it", RETRY, RETRY, NOW, 502, BUSY),
        Fault.HTTP_529: FaultRow("The provider is overloaded", NEXT, RETRY, NOW, 502, BUSY),
        Fault.HTTP_5XX: FaultRow("The provider failed with another 5xx", RETRY, RETRY, COUNT, 502, BUSY),
        Fault.HTTP_OTHER: FaultRow("An unexpected status", NEXT, NEXT, COUNT, 502, BAD),
        Fault.TTFT_TIMEOUT: FaultRow(
            "The stream started, but no content came in time", NEXT, RETRY, COUNT, 504, TIMEOUT_CODE
        ),
        Fault.STREAM_EMPTY: FaultRow("The stream ended without content", RETRY, RETRY, COUNT, 502, "empty_completion"),
        Fault.STREAM_STALL: FaultRow(
            "The stream fell silent after content", RAISE, RAISE, COUNT, 502, "stream_stalled"
        ),
        Fault.STREAM_BROKEN: FaultRow("The stream broke after content", RAISE, RAISE, COUNT, 502, "stream_broken"),
        Fault.STREAM_TRUNCATED: FaultRow(
            "The stream ended after content without a finish reason", RAISE, RAISE, COUNT, 502, "stream_truncated"
        ),
        Fault.ORIGIN_REFUSED: FaultRow(
            "The provider's address is not allowed", NEXT, NEXT, NONE, 502, "origin_refused", PROVIDER, True
        ),
        Fault.KEY_MISSING: FaultRow("The provider has no key", NEXT, NEXT, NONE, 502, "upstream_auth", PROVIDER, True),
        Fault.FIRE_DRILL: FaultRow(
            "A fire drill: an administrator simulates an outage, and the provider is not called",
            *(NEXT, NEXT, NONE, 503, "fire_drill", PROVIDER),
        ),
    }
)

RESILIENT_NEXT = frozenset({Fault.HTTP_401, Fault.HTTP_403, Fault.HTTP_404, Fault.HTTP_413, Fault.HTTP_422})
"""What the preset `resilient` lets go on to the next candidate, marked red."""

COOLS_WHEN_PASSED_ON = frozenset({Fault.HTTP_401, Fault.HTTP_404})
"""Our own misconfiguration, which the next request would meet again: a cooldown where a route goes on after it."""

RATE_LIMITED = frozenset({Fault.HTTP_429, Fault.HTTP_429_WAIT, Fault.HTTP_429_BAD_HEADER, Fault.HTTP_429_QUOTA})
TIMED_OUT = frozenset(
    {
        *(Fault.CONNECT_TIMEOUT, Fault.READ_TIMEOUT, Fault.TTFT_TIMEOUT, Fault.SLOW_BODY, Fault.STREAM_STALL),
        *(Fault.DEADLINE, Fault.HTTP_408, Fault.HTTP_504),
    }
)
KEY_EFFECTS: Mapping[Fault, Effect] = MappingProxyType(
    {
        **dict.fromkeys((Fault.HTTP_401, Fault.HTTP_402, Fault.HTTP_403, Fault.HTTP_429_QUOTA), Effect.LONG),
        Fault.HTTP_429: Effect.NOW,
        Fault.HTTP_429_WAIT: Effect.EXACT,
        Fault.HTTP_429_BAD_HEADER: Effect.MINUTE,
    }
)
"""What is one key's own where a provider has several: the next key is asked at once, this one rests (decision 20)."""

QUOTA_FAULTS = frozenset({Fault.HTTP_402, *RATE_LIMITED})
"""Causes of a cooldown that calling again cannot end: no last-resort try for them."""

CALLERS_FAULTS = frozenset(
    {
        *(Fault.HTTP_400, Fault.CONTEXT_LENGTH, Fault.CONTENT_POLICY, Fault.UNSUPPORTED_PARAMETER),
        *(Fault.CAPABILITY_MISMATCH, Fault.HTTP_413, Fault.HTTP_415, Fault.HTTP_422, Fault.HTTP_4XX),
    }
)
"""What a request brings on itself by what it holds or asks: it says nothing of how its provider does."""

AFTER_CONTENT = frozenset({Fault.STREAM_STALL, Fault.STREAM_BROKEN, Fault.STREAM_TRUNCATED})
"""Faults after the first content: never another candidate, whatever a route says."""
