"""The retrospective of a draft in words: how the last 24 hours' requests would have gone with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.vocabulary import Kind
from capabilities.labels import BADGES
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.routes.retrospect import AnswerShare, DraftPast, count_past, find_draft_past
from routing_admin.core.configuration.route_changes import route_changes, with_route
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.planning.past_requests import PastRequest
from routing_admin.core.planning.retrospect import DifferenceKey, DifferenceKind, PastPair, Walk, WalkEnd

Text = str | Promise

EXAMPLES = 10
"""How many requests are listed per difference."""

KINDS: Mapping[str, Text] = {
    Kind.IMAGE.value: pgettext_lazy("of a request", "image"),
    Kind.AUDIO.value: pgettext_lazy("of a request", "sound"),
    Kind.VIDEO.value: pgettext_lazy("of a request", "video"),
    Kind.DOCUMENT.value: pgettext_lazy("of a request", "document"),
    Kind.TEXT.value: pgettext_lazy("of a request", "text file"),
    Kind.OTHER.value: pgettext_lazy("of a request", "file"),
}
ENDS: Mapping[WalkEnd, tuple[str, str, Text]] = {
    WalkEnd.FIRST: ("native", "ok", gettext_lazy("answered by the first candidate")),
    WalkEnd.LATER: ("described", "warn", gettext_lazy("answered after a fallback")),
    WalkEnd.UNANSWERED: ("refused", "bad", gettext_lazy("not answered")),
    WalkEnd.UNKNOWN: ("converted", "info", gettext_lazy("not known")),
}
"""How a request ends → its part of the bar, its tone, its label."""
FORMS: Mapping[DeliveryForm, str] = {
    DeliveryForm.AS_IS: "native",
    DeliveryForm.CONVERTED: "converted",
    DeliveryForm.CUT: "cut",
    DeliveryForm.DESCRIBED: "described",
}
TONES: Mapping[DifferenceKind, str] = {
    **dict.fromkeys((DifferenceKind.FAILS, DifferenceKind.NO_READER), "bad"),
    **dict.fromkeys((DifferenceKind.LOSES_FILE, DifferenceKind.FALLS_BACK), "warn"),
    **dict.fromkeys((DifferenceKind.FIRST_CHANGES, DifferenceKind.UNKNOWN), "info"),
}
"""Tones of differences. Differences that are not listed are improvements."""


@dataclass(frozen=True, slots=True)
class PastExample:
    """A request that shows a difference: its file, if it is about a file, and its result before and with the draft."""

    request: PastRequest
    file: str
    before: Text
    after: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRow:
    """A difference as shown. `more` is the number of requests beyond the examples."""

    tone: str
    text: str
    hint: str
    examples: tuple[PastExample, ...]
    more: int


@dataclass(frozen=True, slots=True)
class PastBar:
    """A bar with its parts by class, and its legend: tone, label and number of each part."""

    label: Text
    counts: Mapping[str, int]
    legend: tuple[tuple[str, Text, int], ...]


def render_retrospective(state: Snapshot, base: RouteSpec | None, draft: RouteSpec) -> dict[str, Any]:
    """Return the template context for a draft of the route `base`. For a new route, `base` is None."""
    now = timezone.now()
    if not draft.task_type:
        return {}
    # Without changes there is nothing to compare, so only the number of requests is shown.
    if not draft.candidates or (base is not None and not route_changes(base, draft)):
        return {"past": count_past(state.configuration, draft.task_type, now)}
    draft_past = find_draft_past(state, with_route(state.configuration, draft), draft.task_type, now)
    retrospect = draft_past.retrospect
    return {
        "past": draft_past.past,
        "looked_at": retrospect.count,
        "rows": [_row(key, pairs, draft_past) for key, pairs in retrospect.differences.items()],
        "bars": _bars(draft_past),
    }


def _bars(draft_past: DraftPast) -> list[tuple[Text, list[PastBar]]]:
    end_counts, files = draft_past.retrospect.ends, draft_past.retrospect.files
    bars: list[tuple[Text, list[PastBar]]] = [(_("Requests"), _sides(ENDS, end_counts))]
    forms = {form: (word, BADGES[word][0], BADGES[word][2]) for form, word in FORMS.items()}
    # Without files there is no second bar.
    return [*bars, (pgettext("of a request", "Files"), _sides(forms, files))] if all(files) else bars


def _sides(words: Mapping[Any, tuple[str, str, Text]], sides: Iterable[Mapping[Any, int]]) -> list[PastBar]:
    labels = (_("before"), _("with this draft"))
    return [
        PastBar(
            label,
            {words[key][0]: count for key, count in side.items()},
            tuple((tone, text, side[key]) for key, (_word, tone, text) in words.items() if side.get(key)),
        )
        for label, side in zip(labels, sides, strict=True)
    ]


def _row(key: DifferenceKey, pairs: Sequence[PastPair], draft_past: DraftPast) -> PastRow:
    kind, word = key
    text = TEXTS[kind](len(pairs)) % {"count": len(pairs), "kind": KINDS.get(word, word), "name": word}
    hint = _hint(word, draft_past.shares.get(word)) if kind is DifferenceKind.UNKNOWN else ""
    examples = tuple(_example(kind, pair) for pair in pairs[:EXAMPLES])
    return PastRow(
        tone=TONES.get(kind, "ok"), text=text, hint=hint, examples=examples, more=max(0, len(pairs) - EXAMPLES)
    )


def _hint(name: str, share: AnswerShare | None) -> str:
    # Whether the model would have answered is unknown. The share of its own calls that it answered is the best hint.
    if share is None:
        return ""
    if not share.calls:
        return _("%(name)s was not called in these 24 hours.") % {"name": name}
    percent = 100 * share.answered // share.calls
    return _("%(name)s answered %(percent)s%% of its calls in these 24 hours (%(count)s).") % {
        "count": share.calls,
        "name": name,
        "percent": percent,
    }


def _example(kind: DifferenceKind, pair: PastPair) -> PastExample:
    file = "" if pair.file is None else pair.request.files[pair.file].name
    return PastExample(
        pair.request, file, _outcome_text(kind, pair.before, pair.file), _outcome_text(kind, pair.after, pair.file)
    )


def _outcome_text(kind: DifferenceKind, walk: Walk, file: int | None) -> Text:
    if kind is DifferenceKind.FIRST_CHANGES:
        return walk.first
    if kind in (DifferenceKind.HAS_READER, DifferenceKind.NO_READER):
        return _("a model reads it") if file is not None and walk.has_reader[file] else _("no model reads it")
    if file is not None:
        return _("%(name)s: %(form)s") % {"name": walk.last, "form": BADGES[FORMS[walk.forms[file]]][2]}
    if walk.end is WalkEnd.UNANSWERED:
        return ENDS[walk.end][2]
    return _("%(name)s, not known") % {"name": walk.last} if walk.end is WalkEnd.UNKNOWN else walk.last


TEXTS: Mapping[DifferenceKind, Callable[[int], str]] = {
    DifferenceKind.FAILS: lambda n: ngettext("%(count)s more fails", "%(count)s more fail", n),
    DifferenceKind.ANSWERS: lambda n: ngettext("%(count)s fewer fails", "%(count)s fewer fail", n),
    DifferenceKind.FALLS_BACK: lambda n: ngettext("%(count)s more falls back", "%(count)s more fall back", n),
    DifferenceKind.STAYS: lambda n: ngettext("%(count)s fewer falls back", "%(count)s fewer fall back", n),
    DifferenceKind.KEEPS_FILE: lambda n: ngettext(
        "%(count)s more keeps its %(kind)s", "%(count)s more keep their %(kind)s", n
    ),
    DifferenceKind.LOSES_FILE: lambda n: ngettext(
        "%(count)s now has its %(kind)s only described", "%(count)s now have their %(kind)s only described", n
    ),
    DifferenceKind.NO_READER: lambda n: ngettext(
        "%(count)s no longer reaches a model that can read its %(kind)s",
        "%(count)s no longer reach a model that can read their %(kind)s",
        n,
    ),
    DifferenceKind.HAS_READER: lambda n: ngettext(
        "%(count)s now reaches a model that can read its %(kind)s",
        "%(count)s now reach a model that can read their %(kind)s",
        n,
    ),
    DifferenceKind.FIRST_CHANGES: lambda n: ngettext(
        "%(count)s goes to %(name)s first", "%(count)s go to %(name)s first", n
    ),
    DifferenceKind.UNKNOWN: lambda n: ngettext(
        "Not known: %(count)s would reach %(name)s, which was not called then",
        "Not known: %(count)s would reach %(name)s, which was not called for them then",
        n,
    ),
}
"""Difference → its sentence for a number of requests."""
