"""What to do about a request that got no answer, and the page where it is done; a table over every outcome.

What a caller brought about is for the caller to change: no line of it leads to a chain or to a provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from capabilities.core.wire import Fault
from capabilities.sentences import join_words
from routing_admin.console.requests.story import Step
from routing_admin.core.fallback.chain import ABORTED, CANCELLED, OK, SkipReason
from routing_admin.core.fallback.endings import (
    BROKEN,
    DRAINED,
    NO_ROUTE,
    OVERLOADED,
    UNAVAILABLE,
    RequestEnding,
)
from routing_admin.models import RequestLog
from routing_admin.request_log.sentences import RenderedSentence, render_logged


class Remedy(StrEnum):
    """The page on which it is done; by the name of its URL."""

    NONE = ""
    PROVIDER = "provider"
    ROUTE = "route"
    ROUTES = "routes"
    MATRIX = "matrix"


LABELS: Mapping[Remedy, str | Promise] = {
    Remedy.PROVIDER: gettext_lazy("Open %(provider)s"),
    Remedy.ROUTE: gettext_lazy("Open the route %(task)s"),
    Remedy.ROUTES: gettext_lazy("Open task routes"),
    Remedy.MATRIX: gettext_lazy("Open the capability matrix"),
}
"""What the link is called."""

Line = tuple[str | Promise, Remedy]

ADDRESS: Line = (
    gettext_lazy("The address of %(provider)s gives no usable answer. Check its base URL and test it."),
    Remedy.PROVIDER,
)
PASSING: Line = (
    gettext_lazy("%(provider)s failed temporarily. Another candidate in the chain would cover such moments."),
    Remedy.ROUTE,
)
USELESS: Line = (
    gettext_lazy("%(model)s gave no usable answer. If this happens often, test %(provider)s."),
    Remedy.PROVIDER,
)
BROKE_OFF: Line = (
    gettext_lazy(
        "The caller had already received part of the answer, so no other model was tried. It can send the request "
        "again."
    ),
    Remedy.NONE,
)
ASKED_WRONG: Line = (
    gettext_lazy("%(model)s cannot accept this request. The caller must change it."),
    Remedy.NONE,
)
LIMITED: Line = (
    gettext_lazy("%(provider)s rate-limits its calls. Another provider in the chain would cover this."),
    Remedy.ROUTE,
)
UNPAID: Line = (
    gettext_lazy("The account at %(provider)s has no credit left. Top it up there, or let another provider answer."),
    Remedy.PROVIDER,
)
NO_KEY: Line = (gettext_lazy("%(provider)s has no usable key. Add one."), Remedy.PROVIDER)
FORBIDDEN_ADDRESS: Line = (
    gettext_lazy("The address of %(provider)s is not allowed. Correct it, or allow it in the environment."),
    Remedy.PROVIDER,
)

ADVICE: Mapping[str, Line] = {
    **dict.fromkeys((Fault.DNS_ERROR, Fault.CONNECT_REFUSED, Fault.CONNECT_TIMEOUT), ADDRESS),
    **dict.fromkeys((Fault.TLS_ERROR, Fault.TLS_CERT_ERROR, Fault.REDIRECT, Fault.BAD_HTTP), ADDRESS),
    **dict.fromkeys((Fault.BAD_CONTENT_TYPE, Fault.HTTP_501, Fault.HTTP_OTHER), ADDRESS),
    **dict.fromkeys((Fault.RESET_BEFORE_HEADERS, Fault.READ_TIMEOUT, Fault.TTFT_TIMEOUT, Fault.SLOW_BODY), PASSING),
    **dict.fromkeys((Fault.HTTP_408, Fault.HTTP_409, Fault.HTTP_425, Fault.HTTP_500, Fault.HTTP_502), PASSING),
    **dict.fromkeys((Fault.HTTP_503, Fault.HTTP_504, Fault.HTTP_52X, Fault.HTTP_529, Fault.HTTP_5XX), PASSING),
    **dict.fromkeys((Fault.TRUNCATED_BODY, Fault.TOO_LARGE, Fault.BAD_JSON, Fault.BAD_SHAPE), USELESS),
    **dict.fromkeys((Fault.EMPTY_CHOICES, Fault.EMPTY_CONTENT, Fault.GENERATION_FAILED, Fault.STREAM_EMPTY), USELESS),
    **dict.fromkeys((Fault.STREAM_STALL, Fault.STREAM_BROKEN, Fault.STREAM_TRUNCATED, DRAINED), BROKE_OFF),
    **dict.fromkeys((Fault.HTTP_400, Fault.HTTP_415, Fault.HTTP_422, Fault.HTTP_4XX), ASKED_WRONG),
    **dict.fromkeys((Fault.HTTP_429, Fault.HTTP_429_WAIT, Fault.HTTP_429_BAD_HEADER), LIMITED),
    **dict.fromkeys((Fault.HTTP_402, Fault.HTTP_429_QUOTA), UNPAID),
    **dict.fromkeys((Fault.KEY_MISSING, SkipReason.NO_KEY), NO_KEY),
    **dict.fromkeys((Fault.ORIGIN_REFUSED, SkipReason.ORIGIN_REFUSED), FORBIDDEN_ADDRESS),
    Fault.FIRE_DRILL: (
        gettext_lazy(
            "A fire drill of %(provider)s was running, and no other candidate could answer. Add one from "
            "another provider."
        ),
        Remedy.ROUTE,
    ),
    Fault.HTTP_401: (gettext_lazy("%(provider)s rejects the key. Store a valid one."), Remedy.PROVIDER),
    Fault.HTTP_403: (
        gettext_lazy(
            "The key lacks permission for this at %(provider)s. Extend its permissions there, or choose another model."
        ),
        Remedy.PROVIDER,
    ),
    Fault.HTTP_404: (
        gettext_lazy("%(provider)s has no model %(model)s. Correct the name or the base URL."),
        Remedy.PROVIDER,
    ),
    Fault.DEADLINE: (
        gettext_lazy("The request ran out of time. Give the route a longer deadline or fewer retries."),
        Remedy.ROUTE,
    ),
    Fault.CONTEXT_LENGTH: (
        gettext_lazy("The request is too long for %(model)s. The caller must shorten it."),
        Remedy.NONE,
    ),
    Fault.CONTENT_POLICY: (
        gettext_lazy("The content policy of %(provider)s refused the request. The caller must ask for something else."),
        Remedy.NONE,
    ),
    Fault.UNSUPPORTED_PARAMETER: (
        gettext_lazy("The request uses something %(model)s does not accept. The caller must leave it out."),
        Remedy.NONE,
    ),
    Fault.HTTP_413: (
        gettext_lazy("The request is too large for %(provider)s. The caller must send less at a time."),
        Remedy.NONE,
    ),
    Fault.CAPABILITY_MISMATCH: (
        gettext_lazy("%(model)s cannot read what it was sent. Correct its capabilities in the matrix."),
        Remedy.MATRIX,
    ),
    SkipReason.MISSING: (
        gettext_lazy("The provider %(provider)s no longer exists. Remove this candidate from the chain."),
        Remedy.ROUTE,
    ),
    SkipReason.DISABLED: (
        gettext_lazy("%(provider)s is disabled. Enable it, or remove it from the chain."),
        Remedy.PROVIDER,
    ),
    SkipReason.DUPLICATE: (
        gettext_lazy("%(provider)s with %(model)s is in the chain twice. Remove one of them."),
        Remedy.ROUTE,
    ),
    SkipReason.CANNOT_READ: (
        gettext_lazy("%(model)s cannot read what the request contains. Add a candidate that can."),
        Remedy.ROUTE,
    ),
    SkipReason.WOULD_DROP: (
        gettext_lazy(
            "The caller does not allow leaving anything out, which %(model)s would do. The caller must ask for less."
        ),
        Remedy.NONE,
    ),
    SkipReason.TOO_LONG: (
        gettext_lazy("The request is too long for %(model)s. Another candidate in the chain takes it."),
        Remedy.NONE,
    ),
    SkipReason.OTHER_PROTOCOL: (
        gettext_lazy("The protocol of %(provider)s does not support this call. Add a candidate that speaks openai."),
        Remedy.ROUTE,
    ),
    SkipReason.OTHER_MODEL: (
        gettext_lazy("%(model)s cannot answer for another model. Add a candidate with the first one's model."),
        Remedy.ROUTE,
    ),
    SkipReason.COOLING: (
        gettext_lazy("%(provider)s was cooling down after earlier failures. Check its status and test it."),
        Remedy.PROVIDER,
    ),
    CANCELLED: (
        gettext_lazy("The caller disconnected first. If it gives up too early, raise its client's timeout."),
        Remedy.NONE,
    ),
    "model_not_found": (
        gettext_lazy("No model here has the name the caller asked for. An alias can map it to one."),
        Remedy.ROUTES,
    ),
    NO_ROUTE: (gettext_lazy("No task route takes this request. Add one, or a default."), Remedy.ROUTES),
    **dict.fromkeys(
        (BROKEN, ABORTED),
        (
            gettext_lazy("Something went wrong on our side. The server log has the details under this request id."),
            Remedy.NONE,
        ),
    ),
    UNAVAILABLE: (
        gettext_lazy("The database did not answer in time; the caller can send the request again."),
        Remedy.NONE,
    ),
    OVERLOADED: (
        gettext_lazy("Too many requests were in flight. The caller can retry. Settings show the limits."),
        Remedy.NONE,
    ),
}
"""By a fault, a skip reason, or the code of a request that reached no candidate: a sentence, and where it is done."""

KEYS_REFUSED: Line = (
    gettext_lazy("%(provider)s rejects the keys it was called with (%(keys)s). Store valid ones."),
    Remedy.PROVIDER,
)
"""Where a provider has several keys: each that was refused by its name."""

WRONG: Line = (gettext_lazy("The request is not valid. The caller must change it."), Remedy.NONE)
"""For every other code: our own checks refused what a caller sent."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do: the sentence, why, what somebody else said of it, and the page with its argument and label."""

    sentence: str
    why: str
    error: RenderedSentence
    page: Remedy
    argument: str
    label: str


def advise(row: RequestLog, attempts: Sequence[Step]) -> tuple[Advice, ...]:
    """What to do about a request without an answer, each thing once, in the order of the chain.

    Where what the request asks was refused, only who refused it counts.
    """
    failed = [step for step in attempts if step.row.outcome != OK]
    if row.ending != RequestEnding.FAILED:
        failed = failed[-1:]
    if not failed:
        return (_advice(ADVICE.get(row.outcome, WRONG), row, None, render_logged(row)),)
    found = (_advice(_line_of(step), row, step, step.error) for step in failed)
    return tuple(dict.fromkeys(found))


def _line_of(step: Step) -> Line:
    is_about_keys = step.row.outcome in (Fault.HTTP_401, Fault.HTTP_403) and step.refused_keys
    return KEYS_REFUSED if is_about_keys else ADVICE.get(step.row.outcome, WRONG)


def _advice(line: Line, row: RequestLog, step: Step | None, error: RenderedSentence) -> Advice:
    sentence, remedy = line
    provider = step.row.provider if step else ""
    keys = join_words(step.refused_keys) if step else ""
    names = {"provider": provider, "model": step.name if step else "", "task": row.task_type, "keys": keys}
    argument = {Remedy.PROVIDER: provider, Remedy.ROUTE: row.task_type}.get(remedy, "")
    if not argument and remedy in (Remedy.PROVIDER, Remedy.ROUTE):
        remedy = Remedy.NONE
    why = _("%(meaning)s (%(code)s).") % {"meaning": step.meaning or step.code, "code": step.code} if step else ""
    label = str(LABELS[remedy]) % names if remedy else ""
    return Advice(str(sentence) % names, why, error, remedy, argument, label)
