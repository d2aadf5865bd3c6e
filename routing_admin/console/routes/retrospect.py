"""The retrospective of a draft: how its chain would have handled the route's requests from the last 24 hours.

Everything is read from the log, and no model is called. Only the newest requests are read, so a busy day takes no
longer than a quiet one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connections
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.vocabulary import Kind
from capabilities.labels import BADGES
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.route_changes import route_changes, with_route
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, REFUSE, SKIP, Configuration, RouteSpec
from routing_admin.core.fallback.chain import OK
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.past_requests import CandidateKey, PastRequest, PastTry, files_in
from routing_admin.core.planning.plan import (
    NoRouteError,
    RoutingQuery,
    is_taken,
    plan_route,
    resolve_route,
    route_policy,
)
from routing_admin.core.planning.retrospect import (
    DifferenceKey,
    DifferenceKind,
    PastPair,
    Retrospect,
    Walk,
    WalkCandidate,
    WalkChain,
    WalkEnd,
    compare_routes,
)
from routing_admin.dispatch.decisions import cached_decisions
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.health import NEUTRAL_OUTCOMES
from routing_admin.request_log.time_ranges import window_start

MAX_REQUESTS = 2000
"""Maximum number of requests to evaluate, newest first."""
MAX_COUNTED = 20_000
"""Maximum number of requests that are counted. If there are more, the page says "more than"."""
MAX_OF_DEFAULT = 5000
"""How many of the default route's newest requests to search for requests whose task type has no route of its own."""
MAX_CALLS = 2000
"""How many of a provider's newest calls to read when computing the share of calls that a model answered."""
MAX_SHARES = 3
"""Maximum number of models for which the share of answered calls is computed."""


@dataclass(frozen=True, slots=True)
class RoutePast:
    """A route's requests from the last 24 hours that reached a model, newest first, and their total number.

    `is_more` is true if there were more than `total`. `goes_to_default` is true if no route accepts the task type, so
    that its requests went to the default route.
    """

    requests: tuple[PastRequest, ...]
    total: int
    is_more: bool = False
    goes_to_default: bool = False


@dataclass(frozen=True, slots=True)
class AnswerShare:
    """The number of calls to a model in the last 24 hours, and how many of them it answered."""

    calls: int
    answered: int


@dataclass(frozen=True, slots=True)
class DraftPast:
    """A draft compared with past requests.

    `shares` maps each model whose outcome is unknown to the share of its recent calls that it answered.
    """

    past: RoutePast
    retrospect: Retrospect
    shares: Mapping[str, AnswerShare]


def count_past(configuration: Configuration, task_type: str, now: datetime) -> RoutePast:
    """Count a route's requests from the last 24 hours without reading them. This takes one query."""
    rows, to_default = _select_rows(configuration, task_type, window_start(now))
    count = rows.order_by()[: MAX_COUNTED + 1].count()
    return RoutePast((), min(count, MAX_COUNTED), count > MAX_COUNTED, to_default)


def find_draft_past(state: Snapshot, draft: Configuration, name: str, now: datetime) -> DraftPast:
    """Compare how the current chain and the draft handle a task type's requests from the last 24 hours.

    This takes three queries, plus one for each of up to `MAX_SHARES` models whose outcome is unknown.
    """
    past = _read_past(state.configuration, name, now)
    before, after = build_chain(state, state.configuration, name), build_chain(state, draft, name)
    retrospect = compare_routes(past.requests, before, after)
    unknown = [word for kind, word in retrospect.differences if kind is DifferenceKind.UNKNOWN]
    keys = {place.name: place.key for place in (*after.places, *before.places)}
    shares = {model_name: _find_share(keys[model_name], window_start(now)) for model_name in unknown[:MAX_SHARES]}
    return DraftPast(past, retrospect, shares)


def build_chain(state: Snapshot, configuration: Configuration, task_type: str) -> WalkChain:
    """Return the chain for a task type in a configuration, or an empty chain if no route accepts it.

    Only the routes are taken from `configuration`, all else from the configuration in use.
    """
    try:
        route = resolve_route(configuration, task_type)[0]
    except NoRouteError:
        return WalkChain()
    decisions = cached_decisions(state)
    plan = plan_route(configuration, route, RoutingQuery(task_type), unusable=decisions.unusable)
    places, seen = [], set[CandidateKey]()
    # If a candidate occurs twice in a chain, only its first occurrence is ever called.
    for candidate in plan.candidates:
        key = candidate.provider, candidate.model
        if candidate.skip is None and key not in seen:
            places.append(WalkCandidate(*key, decisions.endpoint(route, candidate, None).reader))
        else:
            places.append(WalkCandidate(*key, is_callable=False))
        seen.add(key)
    return WalkChain(tuple(places), route_policy(route), route.on_drop == REFUSE, route.on_overflow == SKIP)


def _select_rows(configuration: Configuration, task_type: str, since: datetime) -> tuple[QuerySet[RequestLog], bool]:
    rows = RequestLog.objects.filter(started_at__gte=since)
    route: RouteSpec | None = configuration.route(task_type)
    if task_type == DEFAULT_ROUTE or (route is not None and is_taken(route)):
        return rows.filter(task_type=task_type), False
    # Limit the search, because requests that used the default route may rarely have named this task type.
    newest = rows.filter(task_type=DEFAULT_ROUTE).order_by("-started_at").values("pk")[:MAX_OF_DEFAULT]
    return rows.filter(pk__in=newest, matched=False, asked_model=task_name(task_type)), True


def _read_past(configuration: Configuration, task_type: str, now: datetime) -> RoutePast:
    past = count_past(configuration, task_type, now)
    if not past.total:
        return past
    rows = _select_rows(configuration, task_type, window_start(now))[0]
    start_times = dict(rows.order_by("-started_at").values_list("pk", "started_at")[:MAX_REQUESTS])
    attempts = AttemptLog.objects.filter(request__in=list(start_times)).order_by()
    if connections[LOGS].vendor == POSTGRESQL:  # The table is partitioned by day, so this reads only two partitions.
        attempts = attempts.filter(at__gte=window_start(now))
    columns = ("request_id", "provider", "model", "outcome", "status", "dropped_params", "deliveries")
    by_request: dict[str, list[Any]] = {}
    for key, *values in attempts.values_list(*columns):
        by_request.setdefault(key, []).append(values)
    return replace(past, requests=tuple(_requests(start_times, by_request)))


def _requests(start_times: Mapping[str, datetime], by_request: Mapping[str, list[Any]]) -> Iterator[PastRequest]:
    for key, started_at in start_times.items():
        # A request without attempts, for example one answered from a cache, did not use a chain.
        attempts = by_request.get(key)
        if attempts:
            yield PastRequest(key, started_at, files_in(values[-1] for values in attempts), _tries(attempts))


def _tries(attempts: Iterable[Any]) -> dict[CandidateKey, PastTry]:
    tries: dict[CandidateKey, PastTry] = {}
    for provider, model, outcome, status, drops, _deliveries in attempts:
        # If a candidate occurs twice in a chain, only its first attempt was made.
        tries.setdefault((provider, model), PastTry(outcome, status, bool(drops)))
    return tries


def _find_share(key: CandidateKey, since: datetime) -> AnswerShare:
    provider, model = key
    rows = AttemptLog.objects.filter(provider=provider, at__gte=since).order_by("-at")
    newest = rows.values_list("model", "outcome")[:MAX_CALLS]
    outcomes = [outcome for name, outcome in newest if name == model and outcome not in NEUTRAL_OUTCOMES]
    return AnswerShare(len(outcomes), outcomes.count(OK))


Text = str | Promise

EXAMPLES = 10
"""Maximum number of requests to list as examples of a difference."""

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
"""Maps each possible end of a request to the CSS class of its bar segment, a tone and a label."""
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
"""Maps differences to tones. All other differences are improvements."""


@dataclass(frozen=True, slots=True)
class PastExample:
    """A request as an example: the file concerned, if any, and the results without and with the draft."""

    request: PastRequest
    file: str
    before: Text
    after: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRow:
    """A difference that the draft would have made. `more` is the number of requests beyond the examples."""

    tone: str
    text: str
    hint: str
    examples: tuple[PastExample, ...]
    more: int


@dataclass(frozen=True, slots=True)
class PastBar:
    """A bar: the number of requests or files by CSS class, and a legend with tone, label and number of each segment."""

    label: Text
    counts: Mapping[str, int]
    legend: tuple[tuple[str, Text, int], ...]


def render_retrospective(state: Snapshot, base: RouteSpec | None, draft: RouteSpec) -> dict[str, Any]:
    """Return the template context for the retrospective of a draft.

    `base` is the stored route, or None if the route is new.
    """
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
    # Whether the model would have answered is unknown. Its share of answered calls is the best estimate.
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
"""Maps each difference to a function that returns a sentence with the number of requests."""
