"""What would a draft of a route have meant for the requests of the last 24 hours? Read from the log; nobody is called.

The newest requests of the route are looked at, few enough that a busy day costs no more than a quiet one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, REFUSE, SKIP, Configuration, RouteSpec
from routing_admin.core.fallback.chain import OK
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.past_requests import CandidateKey, PastRequest, PastTry, files_in
from routing_admin.core.planning.plan import NoRouteError, RoutingQuery, is_taken, plan_route, policy_of, resolve_route
from routing_admin.core.planning.retrospect import DifferenceKind, Retrospect, WalkChain, WalkPlace, look_back
from routing_admin.dispatch.decisions import decisions_of
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.health import UNASKED
from routing_admin.request_log.time_ranges import window_start

MOST = 2000
"""So many of the newest requests are looked at."""
MAX_COUNTED = 20_000
"""So many are counted; of more only that is said."""
MAX_OF_DEFAULT = 5000
"""Among so many of the newest requests to `default` those are looked for that asked for a task type without a route."""
MAX_CALLS = 2000
"""So many of a provider's newest calls say how often its models answer."""
MAX_SHARES = 3
"""Of so many models it is said how often they answer."""


@dataclass(frozen=True, slots=True)
class RoutePast:
    """The requests of a route's last 24 hours that reached a model, newest first, and how many there were in all.

    `is_more` says that there were more than `total`; `goes_to_default` that they went there, since the task type had no
    route that took them.
    """

    requests: tuple[PastRequest, ...]
    total: int
    is_more: bool = False
    goes_to_default: bool = False


@dataclass(frozen=True, slots=True)
class AnswerShare:
    """Of a model's own calls in these 24 hours: how many there were, and how many it answered."""

    calls: int
    answered: int


@dataclass(frozen=True, slots=True)
class DraftPast:
    """A draft against the past; `shares` are of the models of which it is not known whether they would have answered,
    by name, empty of calls where nobody asked them.
    """

    past: RoutePast
    retrospect: Retrospect
    shares: Mapping[str, AnswerShare]


def count_past(configuration: Configuration, task_type: str, now: datetime) -> RoutePast:
    """How many requests of the last 24 hours are a route's past, none of them read. One query."""
    rows, to_default = _rows_of(configuration, task_type, window_start(now))
    count = rows.order_by()[: MAX_COUNTED + 1].count()
    return RoutePast((), min(count, MAX_COUNTED), count > MAX_COUNTED, to_default)


def find_draft_past(state: Snapshot, draft: Configuration, name: str, now: datetime) -> DraftPast:
    """The requests of the last 24 hours for that task type, as they go by the draft instead of what is in use.

    Three queries of the log, and one for each of at most `MAX_SHARES` models nobody knows of.
    """
    past = _read_past(state.configuration, name, now)
    before, after = chain_of(state, state.configuration, name), chain_of(state, draft, name)
    retrospect = look_back(past.requests, before, after)
    unknown = [word for kind, word in retrospect.differences if kind is DifferenceKind.UNKNOWN]
    keys = {place.name: place.key for place in (*after.places, *before.places)}
    shares = {each: _find_share(keys[each], window_start(now)) for each in unknown[:MAX_SHARES]}
    return DraftPast(past, retrospect, shares)


def chain_of(state: Snapshot, configuration: Configuration, task_type: str) -> WalkChain:
    """The chain that requests for a task type walk under a configuration; an empty one where no route takes them.

    Providers, services and keys are those in use: the configuration may differ from it in its routes alone.
    """
    try:
        route = resolve_route(configuration, task_type)[0]
    except NoRouteError:
        return WalkChain()
    decisions = decisions_of(state)
    plan = plan_route(configuration, route, RoutingQuery(task_type), unusable=decisions.unusable)
    places, met = [], set[CandidateKey]()
    for each in plan.candidates:
        key = each.provider, each.model
        if each.skip is None and key not in met:
            places.append(WalkPlace(*key, decisions.endpoint(route, each, None).reader))
        else:
            places.append(WalkPlace(*key, is_callable=False))
        met.add(key)
    return WalkChain(tuple(places), policy_of(route), route.on_drop == REFUSE, route.on_overflow == SKIP)


def _rows_of(configuration: Configuration, task_type: str, since: datetime) -> tuple[QuerySet[RequestLog], bool]:
    """A route's requests since then; those that went to `default` where no route takes the task type."""
    rows = RequestLog.objects.filter(started_at__gte=since)
    route: RouteSpec | None = configuration.route(task_type)
    if task_type == DEFAULT_ROUTE or (route is not None and is_taken(route)):
        return rows.filter(task_type=task_type), False
    newest = rows.filter(task_type=DEFAULT_ROUTE).order_by("-started_at").values("pk")[:MAX_OF_DEFAULT]
    return rows.filter(pk__in=newest, matched=False, asked_model=task_name(task_type)), True


def _read_past(configuration: Configuration, task_type: str, now: datetime) -> RoutePast:
    counted = count_past(configuration, task_type, now)
    if not counted.total:
        return counted
    rows, _ = _rows_of(configuration, task_type, window_start(now))
    began = dict(rows.order_by("-started_at").values_list("pk", "started_at")[:MOST])
    attempts = AttemptLog.objects.filter(request__in=list(began)).order_by()
    if connections[LOGS].vendor == POSTGRESQL:  # which then looks into the tables of two days instead of all
        attempts = attempts.filter(at__gte=window_start(now))
    columns = ("request_id", "provider", "model", "outcome", "status", "dropped_params", "deliveries")
    by_request: dict[str, list[Any]] = {}
    for key, *values in attempts.values_list(*columns):
        by_request.setdefault(key, []).append(values)
    return replace(counted, requests=tuple(_requests(began, by_request)))


def _requests(began: Mapping[str, datetime], by_request: Mapping[str, list[Any]]) -> Iterator[PastRequest]:
    """The requests that reached a candidate, newest first; what was answered from a memory walked no chain."""
    for key, at in began.items():
        attempts = by_request.get(key)
        if attempts:
            yield PastRequest(key, at, files_in(each[-1] for each in attempts), _tries(attempts))


def _tries(attempts: Iterable[Any]) -> dict[CandidateKey, PastTry]:
    """Each candidate's attempt; where one stood twice, that which was made."""
    found: dict[CandidateKey, PastTry] = {}
    for provider, model, outcome, status, drops, _ in attempts:
        found.setdefault((provider, model), PastTry(outcome, status, bool(drops)))
    return found


def _find_share(key: CandidateKey, since: datetime) -> AnswerShare:
    """How often a model answered when it was asked; one query over its provider's newest calls."""
    provider, model = key
    rows = AttemptLog.objects.filter(provider=provider, at__gte=since).order_by("-at")
    newest = rows.values_list("model", "outcome")[:MAX_CALLS]
    outcomes = [outcome for name, outcome in newest if name == model and outcome not in UNASKED]
    return AnswerShare(len(outcomes), outcomes.count(OK))
