"""Advice on a failed request: what to do about it, and the page on which to do it.

If the caller is at fault, only the caller can act, so the advice links to no chain or provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from capabilities.core.translatable import translatable
from capabilities.sentences import join_words, translate_sentence
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
from routing_admin.core.fallback.remedies import BROKE_OFF, FORBIDDEN_ADDRESS, NO_KEY, Advice, Remedy
from routing_admin.core.fallback.table import GROUPS, TABLE, Group
from routing_admin.models import RequestLog
from routing_admin.request_log.sentences import RenderedSentence, render_logged

LABELS: Mapping[Remedy, str | Promise] = {
    Remedy.PROVIDER: gettext_lazy("Open %(provider)s"),
    Remedy.ROUTE: gettext_lazy("Open the route %(task)s"),
    Remedy.ROUTES: gettext_lazy("Open task routes"),
    Remedy.MATRIX: gettext_lazy("Open the capability matrix"),
}
"""Labels of the links to the pages that the advice names."""

ADVICE: Mapping[str, Advice] = {
    **{fault: row.advice for fault, row in TABLE.items()},
    DRAINED: BROKE_OFF,
    SkipReason.NO_KEY: NO_KEY,
    SkipReason.ORIGIN_REFUSED: FORBIDDEN_ADDRESS,
    SkipReason.MISSING: Advice(
        translatable("The provider %(provider)s no longer exists. Remove this candidate from the chain."),
        Remedy.ROUTE,
    ),
    SkipReason.DISABLED: Advice(
        translatable("%(provider)s is disabled. Enable it, or remove it from the chain."),
        Remedy.PROVIDER,
    ),
    SkipReason.DUPLICATE: Advice(
        translatable("%(provider)s with %(model)s is in the chain twice. Remove one of them."),
        Remedy.ROUTE,
    ),
    SkipReason.CANNOT_READ: Advice(
        translatable("%(model)s cannot read what the request contains. Add a candidate that can."),
        Remedy.ROUTE,
    ),
    SkipReason.WOULD_DROP: Advice(
        translatable(
            "The caller does not allow leaving anything out, which %(model)s would do. The caller must ask for less."
        )
    ),
    SkipReason.TOO_LONG: Advice(
        translatable("The request is too long for %(model)s. Another candidate in the chain takes it.")
    ),
    SkipReason.OTHER_PROTOCOL: Advice(
        translatable("The protocol of %(provider)s does not support this call. Add a candidate that speaks openai."),
        Remedy.ROUTE,
    ),
    SkipReason.OTHER_MODEL: Advice(
        translatable("%(model)s cannot answer for another model. Add a candidate with the first one's model."),
        Remedy.ROUTE,
    ),
    SkipReason.COOLING: Advice(
        translatable("%(provider)s was cooling down after earlier failures. Check its status and test it."),
        Remedy.PROVIDER,
    ),
    CANCELLED: Advice(
        translatable("The caller disconnected first. If it gives up too early, raise its client's timeout.")
    ),
    "model_not_found": Advice(
        translatable("No model here has the name the caller asked for. An alias can map it to one."),
        Remedy.ROUTES,
    ),
    NO_ROUTE: Advice(translatable("No task route takes this request. Add one, or a default."), Remedy.ROUTES),
    **dict.fromkeys(
        (BROKEN, ABORTED),
        Advice(translatable("Something went wrong on our side. The server log has the details under this request id.")),
    ),
    UNAVAILABLE: Advice(translatable("The database did not answer in time; the caller can send the request again.")),
    OVERLOADED: Advice(
        translatable("Too many requests were in flight. The caller can retry. Settings show the limits.")
    ),
}
"""Advice by fault or skip reason or, if no candidate was called, by error code."""

KEYS_REFUSED = Advice(
    translatable("%(provider)s rejects the keys it was called with (%(keys)s). Store valid ones."),
    Remedy.PROVIDER,
)
"""Advice for a provider with several keys, which names the rejected keys."""

INVALID_REQUEST = Advice(translatable("The request is not valid. The caller must change it."))
"""Advice for all other error codes, which mean that the gateway itself rejected the request as invalid."""


@dataclass(frozen=True, slots=True)
class RenderedAdvice:
    """Advice as the page shows it: what to do, the provider's own message, and a link with its argument and label."""

    sentence: str
    error: RenderedSentence
    page: Remedy
    argument: str
    label: str


def advise(row: RequestLog, attempts: Sequence[Step]) -> tuple[RenderedAdvice, ...]:
    """Return the advice for an unanswered request, without duplicates, in the order of the chain."""
    failed = [step for step in attempts if step.row.outcome != OK]
    # If a candidate rejected the request itself, only that candidate's advice applies.
    if row.ending != RequestEnding.FAILED:
        failed = failed[-1:]
    if not failed:
        return (_advice(ADVICE.get(row.outcome, INVALID_REQUEST), row, None, render_logged(row)),)
    rendered = (_advice(_select_advice(step), row, step, _distinct_error(step)) for step in failed)
    return tuple(dict.fromkeys(rendered))


def _distinct_error(step: Step) -> RenderedSentence:
    # An error message that only repeats what its code means is omitted.
    is_repeated = not step.error.quoted and step.error.ours.rstrip(".。") == step.meaning.rstrip(".。")
    return RenderedSentence() if is_repeated else step.error


def _select_advice(step: Step) -> Advice:
    is_about_keys = step.row.outcome in GROUPS[Group.AUTH] and step.refused_keys
    return KEYS_REFUSED if is_about_keys else ADVICE.get(step.row.outcome, INVALID_REQUEST)


def _advice(advice: Advice, row: RequestLog, step: Step | None, error: RenderedSentence) -> RenderedAdvice:
    remedy = advice.page
    provider = step.row.provider if step else ""
    keys = join_words(step.refused_keys) if step else ""
    names = {"provider": provider, "model": step.name if step else "", "task": row.task_type, "keys": keys}
    argument = {Remedy.PROVIDER: provider, Remedy.ROUTE: row.task_type}.get(remedy, "")
    # If the log does not name the provider or the route, there is no page to link to.
    if not argument and remedy in (Remedy.PROVIDER, Remedy.ROUTE):
        remedy = Remedy.NONE
    label = str(LABELS[remedy]) % names if remedy else ""
    return RenderedAdvice(translate_sentence(advice.sentence) % names, error, remedy, argument, label)
