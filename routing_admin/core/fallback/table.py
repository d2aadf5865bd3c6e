"""The fault table: one row contains all consequences of a fault. A test checks that every `Fault` has a row.

The column `strict` is the simple rule of the original programs (seeds). The column `seed` refines it for faults after
which a retry of the same candidate cannot help. `docs/faults.md` is generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.translatable import translatable
from capabilities.core.wire import Fault
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.core.fallback.remedies import (
    ADDRESS,
    ASKED_WRONG,
    BROKE_OFF,
    FORBIDDEN_ADDRESS,
    LIMITED,
    NO_KEY,
    PASSING,
    UNPAID,
    USELESS,
    Advice,
    Remedy,
)


class Action(StrEnum):
    """What to do after a failure: retry, call the next candidate, or return an error immediately."""

    RETRY = "retry"
    NEXT = "next"
    RAISE = "raise"


class Effect(StrEnum):
    """Effect of a failure on the cooldown of its candidate.

    `count` starts a cooldown after the third failure in a row, `now` immediately. `minute` starts a cooldown of one
    minute, `long` one of ten minutes, and `exact` one that lasts as long as the provider asked for.
    """

    NONE = "none"
    COUNT = "count"
    NOW = "now"
    MINUTE = "minute"
    LONG = "long"
    EXACT = "exact"


class Scope(StrEnum):
    """What a cooldown applies to: one of the provider's models, or the whole provider."""

    MODEL = "model"
    PROVIDER = "provider"


class Group(StrEnum):
    """Names that a route's rules can use for groups of faults.

    Rules can also use three-digit statuses and the faults' own codes.
    """

    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    RATE_LIMIT = "429"
    BAD_REQUEST = "400"
    TIMEOUT = "timeout"
    NETWORK = "network"
    AUTH = "auth"
    CONTEXT_LENGTH = "context_length"
    CONTENT_POLICY = "content_policy"
    QUOTA = "quota"
    EMPTY = "empty"


RETRY, NEXT, RAISE = Action.RETRY, Action.NEXT, Action.RAISE
NONE, COUNT, NOW, MINUTE, LONG, EXACT = tuple(Effect)
PROVIDER = Scope.PROVIDER
OWN_STATUS = 0
"""Value of `status` if the caller receives the status of the provider's response."""

UNREACHABLE_CODE = "upstream_unreachable"
TIMEOUT_CODE = "upstream_timeout"
BAD = "bad_upstream_response"
BUSY = "upstream_error"
EMPTY_CODE = "empty_completion"
LIMIT_CODE = "upstream_429"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault; each row sets only the fields that differ from the defaults."""

    meaning: str
    advice: Advice
    """How to correct the cause if a request ends with this fault."""

    _: KW_ONLY
    seed: Action = RETRY
    strict: Action | None = None
    """Actions under the presets `strict` and `resilient`; None means the same action as under `seed`. `resilient` falls
    back even after some refusals, and flags these attempts for an administrator.
    """
    resilient: Action | None = None

    effect: Effect = COUNT
    """Effect of the fault on the candidate's cooldown."""
    cools_when_passed_on: bool = False
    """Whether the cause lies in this installation's configuration, so that the next request would fail in the same way.
    The candidate then cools down if the route falls back.
    """
    scope: Scope = Scope.MODEL
    key_effect: Effect = NONE
    """What the fault does to the cooldown of the key in use, if the provider has several keys. Unless it is `NONE`
    (the key is not the cause), another key is tried next.
    """

    status: int = 502
    code: str = BUSY
    """HTTP status and code that the caller receives if this fault ends the request."""
    exhausted: int = 502
    """HTTP status if all candidates of a chain ended with this fault: 429 for rate limits, 504 for timeouts."""

    groups: tuple[Group, ...] = ()
    """Groups that also match this fault in a route's rules, in addition to its own code."""
    is_callers: bool = False
    """Whether the request's contents cause the fault, so that it says nothing about the provider's health."""
    after_content: bool = False
    """Whether the fault occurs after the first content. No further candidate is called then, whatever the route's rules
    say.
    """

    alert: bool = False
    """Whether the attempt is flagged for an administrator."""
    alert_kind: AlertKind | None = None

    message: str = ""
    """Message for a fault that the gateway itself detects; the default is `meaning`. A fault in a provider's response
    has the message from the provider instead.
    """

    @property
    def is_out_of_quota(self) -> bool:
        """Whether the candidate is blocked until a limit or quota resets, so even a last resort should not call it."""
        return Group.RATE_LIMIT in self.groups or Group.QUOTA in self.groups


# fmt: off
TABLE: Mapping[str, FaultRow] = MappingProxyType({
    Fault.DNS_ERROR: FaultRow(
        translatable("The provider's host name does not resolve"), ADDRESS,
        effect=NOW, scope=PROVIDER, code=UNREACHABLE_CODE, groups=(Group.NETWORK,),
        message=translatable("The provider's host name does not resolve."),
    ),
    Fault.CONNECT_REFUSED: FaultRow(
        translatable("Nothing is listening at the provider's address"), ADDRESS,
        effect=NOW, scope=PROVIDER, code=UNREACHABLE_CODE, groups=(Group.NETWORK,),
        message=translatable("Nothing is listening at the provider's address."),
    ),
    Fault.CONNECT_TIMEOUT: FaultRow(
        translatable("No connection in time"), ADDRESS,
        scope=PROVIDER, status=504, code=TIMEOUT_CODE, exhausted=504, groups=(Group.TIMEOUT,),
        message=translatable("No connection to the provider in time."),
    ),
    Fault.TLS_ERROR: FaultRow(
        translatable("The encrypted connection could not be set up"), ADDRESS,
        scope=PROVIDER, code=UNREACHABLE_CODE, groups=(Group.NETWORK,),
        message=translatable("The encrypted connection to the provider could not be set up."),
    ),
    Fault.TLS_CERT_ERROR: FaultRow(
        translatable("The provider's certificate is not valid"), ADDRESS,
        seed=NEXT, effect=NOW, scope=PROVIDER, code="tls_verify", alert=True,
        message=translatable("The provider's certificate is not valid."),
    ),
    Fault.RESET_BEFORE_HEADERS: FaultRow(
        translatable("The connection broke before an answer"), PASSING,
        code=UNREACHABLE_CODE, groups=(Group.NETWORK,),
        message=translatable("The provider closed the connection before it answered."),
    ),
    Fault.READ_TIMEOUT: FaultRow(
        translatable("Connected, but no response in time"), PASSING,
        seed=NEXT, strict=RETRY, status=504, code=TIMEOUT_CODE, exhausted=504, groups=(Group.TIMEOUT,),
        message=translatable("The provider sent no response in time."),
    ),
    Fault.DEADLINE: FaultRow(
        translatable("The request ran out of time"),
        Advice(translatable(
            "The request ran out of time. Give the route a longer deadline or fewer retries."
        ), Remedy.ROUTE),
        seed=RAISE, effect=NONE, status=504, code="deadline_exceeded", exhausted=504,
        message=translatable("The request ran out of time."),
    ),
    Fault.TRUNCATED_BODY: FaultRow(
        translatable("The answer broke off before the end"), USELESS,
        code=BAD, groups=(Group.NETWORK,),
        message=translatable("The provider's answer broke off before the end."),
    ),
    Fault.SLOW_BODY: FaultRow(
        translatable("The answer came too slowly"), PASSING,
        seed=NEXT, strict=RETRY, status=504, code=TIMEOUT_CODE, exhausted=504, groups=(Group.TIMEOUT,),
        message=translatable("The provider's answer came too slowly."),
    ),
    Fault.TOO_LARGE: FaultRow(
        translatable("The answer is far too large"), USELESS,
        seed=NEXT, effect=NOW, code="response_too_large",
        message=translatable("The provider's answer is too large."),
    ),
    Fault.REDIRECT: FaultRow(
        translatable("The provider redirected the call; redirects are never followed"), ADDRESS,
        seed=NEXT, effect=NOW, scope=PROVIDER, code="redirect_refused", alert=True,
        message=translatable(
            "The provider answered with a redirect, and redirects are not followed. Correct its endpoint."
        ),
    ),
    Fault.BAD_HTTP: FaultRow(
        translatable("The answer is not valid HTTP"), ADDRESS,
        code=BAD, groups=(Group.NETWORK,),
        message=translatable("The provider's answer is not valid HTTP."),
    ),
    Fault.BAD_CONTENT_TYPE: FaultRow(
        translatable("Status 200 with a web page instead of JSON"), ADDRESS,
        seed=NEXT, strict=RETRY, effect=NOW, code=BAD,
        message=translatable("The provider's answer uses an encoding that was not requested."),
    ),
    Fault.BAD_JSON: FaultRow(translatable("Status 200 with JSON that does not parse"), USELESS, code=BAD),
    Fault.BAD_SHAPE: FaultRow(
        translatable("Status 200 with JSON that is not an answer"), USELESS,
        seed=NEXT, strict=RETRY, code=BAD,
    ),
    Fault.EMPTY_CHOICES: FaultRow(
        translatable("An answer without any choices"), USELESS,
        code=EMPTY_CODE, groups=(Group.EMPTY,),
    ),
    Fault.EMPTY_CONTENT: FaultRow(
        translatable("An empty answer"), USELESS,
        seed=NEXT, strict=RETRY, code=EMPTY_CODE, groups=(Group.EMPTY,),
        message=translatable("The provider's answer is empty."),
    ),
    Fault.GENERATION_FAILED: FaultRow(
        translatable("The model reported that its answer failed"), USELESS,
        seed=NEXT, effect=NONE, code=BAD,
    ),
    Fault.HTTP_400: FaultRow(
        translatable("The provider rejects the request as invalid"), ASKED_WRONG,
        seed=RAISE, effect=NONE, status=400, code="upstream_400", groups=(Group.CLIENT_ERROR, Group.BAD_REQUEST),
        is_callers=True,
    ),
    Fault.CONTEXT_LENGTH: FaultRow(
        translatable("The request is longer than the model can read"),
        Advice(translatable("The request is too long for %(model)s. The caller must shorten it.")),
        seed=RAISE, effect=NONE, status=400, code="context_length_exceeded",
        groups=(Group.CLIENT_ERROR, Group.BAD_REQUEST, Group.CONTEXT_LENGTH), is_callers=True,
    ),
    Fault.CONTENT_POLICY: FaultRow(
        translatable("The provider's content policy refused"),
        Advice(translatable(
            "The content policy of %(provider)s refused the request. The caller must ask for something else."
        )),
        seed=RAISE, effect=NONE, status=400, code="content_filter",
        groups=(Group.CLIENT_ERROR, Group.BAD_REQUEST, Group.CONTENT_POLICY), is_callers=True,
    ),
    Fault.UNSUPPORTED_PARAMETER: FaultRow(
        translatable(
            "The model refuses a parameter; retried without it (a token limit: under its other name) and remembered"
        ),
        Advice(translatable("The request uses something %(model)s does not accept. The caller must leave it out.")),
        seed=RAISE, effect=NONE, status=400, code="unsupported_parameter",
        groups=(Group.CLIENT_ERROR, Group.BAD_REQUEST), is_callers=True,
    ),
    Fault.CAPABILITY_MISMATCH: FaultRow(
        translatable("The model cannot read a kind of content; retried with a description of it"),
        Advice(translatable(
            "%(model)s cannot read what it was sent. Correct its capabilities in the matrix."
        ), Remedy.MATRIX),
        seed=NEXT, effect=NONE, code="capability_mismatch", groups=(Group.CLIENT_ERROR,), is_callers=True,
    ),
    Fault.HTTP_401: FaultRow(
        translatable("The provider rejects the key"),
        Advice(translatable("%(provider)s rejects the key. Store a valid one."), Remedy.PROVIDER),
        seed=RAISE, resilient=NEXT, effect=NONE, cools_when_passed_on=True, scope=PROVIDER, key_effect=LONG,
        code="upstream_auth", groups=(Group.CLIENT_ERROR, Group.AUTH), alert=True, alert_kind=AlertKind.KEY_REFUSED,
    ),
    Fault.HTTP_402: FaultRow(
        translatable("The provider requires payment"), UNPAID,
        seed=NEXT, effect=LONG, scope=PROVIDER, key_effect=LONG, code="upstream_payment_required",
        groups=(Group.CLIENT_ERROR, Group.QUOTA), alert=True, alert_kind=AlertKind.BALANCE_GONE,
    ),
    Fault.HTTP_403: FaultRow(
        translatable("The provider forbids this call"),
        Advice(translatable(
            "The key lacks permission for this at %(provider)s. Extend its permissions there, or choose another model."
        ), Remedy.PROVIDER),
        seed=RAISE, resilient=NEXT, effect=NONE, scope=PROVIDER, key_effect=LONG, code="upstream_forbidden",
        groups=(Group.CLIENT_ERROR, Group.AUTH), alert=True, alert_kind=AlertKind.KEY_REFUSED,
    ),
    # By default 404, 413, 415 and 422 are returned to the caller, because the request or the configuration is wrong. An
    # answer from another provider would hide that.
    Fault.HTTP_404: FaultRow(
        translatable("The provider has no such model or path"),
        Advice(translatable("%(provider)s has no model %(model)s. Correct the name or the base URL."), Remedy.PROVIDER),
        seed=RAISE, resilient=NEXT, effect=NONE, cools_when_passed_on=True, status=404, code="upstream_404",
        groups=(Group.CLIENT_ERROR,), alert=True, alert_kind=AlertKind.RETIRED_MODEL,
    ),
    Fault.HTTP_408: FaultRow(
        translatable("The provider timed out waiting for the request"), PASSING,
        status=504, code=TIMEOUT_CODE, exhausted=504, groups=(Group.CLIENT_ERROR, Group.TIMEOUT),
    ),
    Fault.HTTP_409: FaultRow(translatable("The provider reports a conflict"), PASSING, groups=(Group.CLIENT_ERROR,)),
    Fault.HTTP_413: FaultRow(
        translatable("The request is too large for the provider"),
        Advice(translatable("The request is too large for %(provider)s. The caller must send less at a time.")),
        seed=RAISE, resilient=NEXT, effect=NONE, status=413, code="upstream_413", groups=(Group.CLIENT_ERROR,),
        is_callers=True,
    ),
    Fault.HTTP_415: FaultRow(
        translatable("The provider does not accept this media type"), ASKED_WRONG,
        seed=RAISE, effect=NONE, status=415, code="upstream_415", groups=(Group.CLIENT_ERROR,), is_callers=True,
    ),
    Fault.HTTP_422: FaultRow(
        translatable("The provider cannot process the request"), ASKED_WRONG,
        seed=RAISE, resilient=NEXT, effect=NONE, status=422, code="upstream_422", groups=(Group.CLIENT_ERROR,),
        is_callers=True,
    ),
    Fault.HTTP_425: FaultRow(translatable("The provider says: too early"), PASSING, groups=(Group.CLIENT_ERROR,)),
    Fault.HTTP_429: FaultRow(
        translatable("The provider rate-limits the calls"), LIMITED,
        key_effect=NOW, status=429, code=LIMIT_CODE, exhausted=429, groups=(Group.RATE_LIMIT,),
    ),
    Fault.HTTP_429_WAIT: FaultRow(
        translatable("The provider rate-limits the calls and names a long wait"), LIMITED,
        seed=NEXT, strict=RETRY, effect=EXACT, key_effect=EXACT, status=429, code=LIMIT_CODE, exhausted=429,
        groups=(Group.RATE_LIMIT,),
    ),
    Fault.HTTP_429_BAD_HEADER: FaultRow(
        translatable("The provider rate-limits the calls and names an implausible wait"), LIMITED,
        effect=MINUTE, key_effect=MINUTE, status=429, code=LIMIT_CODE, exhausted=429, groups=(Group.RATE_LIMIT,),
    ),
    Fault.HTTP_429_QUOTA: FaultRow(
        translatable("The account's quota is used up"), UNPAID,
        seed=NEXT, strict=RETRY, effect=LONG, scope=PROVIDER, key_effect=LONG, status=429, code=LIMIT_CODE,
        exhausted=429, groups=(Group.RATE_LIMIT, Group.QUOTA), alert=True, alert_kind=AlertKind.BALANCE_GONE,
    ),
    Fault.HTTP_4XX: FaultRow(
        translatable("The provider refuses the request"), ASKED_WRONG,
        seed=RAISE, effect=NONE, status=OWN_STATUS, code="upstream_4xx", groups=(Group.CLIENT_ERROR,), is_callers=True,
    ),
    Fault.HTTP_500: FaultRow(translatable("The provider had an internal error"), PASSING, groups=(Group.SERVER_ERROR,)),
    Fault.HTTP_501: FaultRow(
        translatable("The provider does not support this call"), ADDRESS,
        seed=NEXT, strict=RETRY, groups=(Group.SERVER_ERROR,),
    ),
    Fault.HTTP_502: FaultRow(translatable("The provider's gateway failed"), PASSING, groups=(Group.SERVER_ERROR,)),
    Fault.HTTP_503: FaultRow(translatable("The provider is unavailable"), PASSING, groups=(Group.SERVER_ERROR,)),
    Fault.HTTP_504: FaultRow(
        translatable("The provider's gateway timed out"), PASSING,
        status=504, code=TIMEOUT_CODE, exhausted=504, groups=(Group.SERVER_ERROR, Group.TIMEOUT),
    ),
    Fault.HTTP_52X: FaultRow(
        translatable("The provider's edge cannot reach it"), PASSING,
        effect=NOW, groups=(Group.SERVER_ERROR,),
    ),
    Fault.HTTP_529: FaultRow(
        translatable("The provider is overloaded"), PASSING,
        seed=NEXT, strict=RETRY, effect=NOW, groups=(Group.SERVER_ERROR,),
    ),
    Fault.HTTP_5XX: FaultRow(
        translatable("The provider failed with another 5xx"), PASSING,
        groups=(Group.SERVER_ERROR,),
    ),
    Fault.HTTP_OTHER: FaultRow(translatable("An unexpected status"), ADDRESS, seed=NEXT, code=BAD),
    Fault.TTFT_TIMEOUT: FaultRow(
        translatable("The stream started, but no content came in time"), PASSING,
        seed=NEXT, strict=RETRY, status=504, code=TIMEOUT_CODE, exhausted=504, groups=(Group.TIMEOUT,),
        message=translatable("The provider started a stream but sent no content in time."),
    ),
    Fault.STREAM_EMPTY: FaultRow(
        translatable("The stream ended without content"), USELESS,
        code=EMPTY_CODE, groups=(Group.EMPTY,),
        message=translatable("The provider's stream ended without content."),
    ),
    # The caller has already received part of the answer, which no other candidate can continue.
    Fault.STREAM_STALL: FaultRow(
        translatable("The stream fell silent after content"), BROKE_OFF,
        seed=RAISE, code="stream_stalled", exhausted=504, after_content=True,
        message=translatable("The provider's stream fell silent."),
    ),
    Fault.STREAM_BROKEN: FaultRow(
        translatable("The stream broke after content"), BROKE_OFF,
        seed=RAISE, code="stream_broken", after_content=True,
        message=translatable("The provider's stream broke."),
    ),
    Fault.STREAM_TRUNCATED: FaultRow(
        translatable("The stream ended after content without a finish reason"), BROKE_OFF,
        seed=RAISE, code="stream_truncated", after_content=True,
    ),
    Fault.ORIGIN_REFUSED: FaultRow(
        translatable("The provider's address is not allowed"), FORBIDDEN_ADDRESS,
        seed=NEXT, effect=NONE, scope=PROVIDER, code="origin_refused", alert=True,
        message=translatable(
            "No request can be built for the provider: its endpoint, proxy or key is not usable. Correct it on its "
            "page."
        ),
    ),
    Fault.KEY_MISSING: FaultRow(
        translatable("The provider has no key"), NO_KEY,
        seed=NEXT, effect=NONE, scope=PROVIDER, code="upstream_auth", alert=True,
    ),
    Fault.FIRE_DRILL: FaultRow(
        translatable("A fire drill: an administrator simulates an outage, and the provider is not called"),
        Advice(translatable(
            "A fire drill of %(provider)s was running, and no other candidate could answer. Add one from another "
            "provider."
        ), Remedy.ROUTE),
        seed=NEXT, effect=NONE, scope=PROVIDER, status=503, code="fire_drill", groups=(Group.SERVER_ERROR,),
    ),
})
# fmt: on
"""The rows by fault. Outcomes that are not faults have no row."""

GROUPS: Mapping[str, frozenset[Fault]] = MappingProxyType(
    {group.value: frozenset(fault for fault in Fault if group in TABLE[fault].groups) for group in Group}
)
CALLERS_FAULTS = frozenset(fault for fault in Fault if TABLE[fault].is_callers)


def is_key_fault(outcome: str) -> bool:
    """Return whether an outcome concerns only a single key, so that another key of the provider may work."""
    row = TABLE.get(outcome)
    return row is not None and row.key_effect is not Effect.NONE
