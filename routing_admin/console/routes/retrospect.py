"""The retrospective of a draft: how a route's requests of the last 24 hours would have gone along the draft's chain.

Everything is read from the log, and no model is called. Only the newest requests are read, so that a busy day costs
no more than a quiet one.
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
"""How many of the newest requests are evaluated."""
MAX_COUNTED = 20_000
"""How many requests are counted at most. Beyond that, the page says "more than"."""
MAX_OF_DEFAULT = 5000
"""How many of the newest requests to `default` are searched for those that named a task type without a route."""
MAX_CALLS = 2000
"""How many of a provider's newest calls are used to compute the share that a model answered."""
MAX_SHARES = 3
"""For how many models that share is looked up."""


@dataclass(frozen=True, slots=True)
class RoutePast:
    """The requests of a route's last 24 hours that reached a model, newest first, and the total number.

    `is_more` is true if there were more than `total`. `goes_to_default` is true if no route accepts the task type, so
    that its requests went to the default route.
    """

    requests: tuple[PastRequest, ...]
    total: int
    is_more: bool = False
    goes_to_default: bool = False


@dataclass(frozen=True, slots=True)
class AnswerShare:
    """The number of calls to a model in the last 24 hours, and how many it answered."""

    calls: int
    answered: int


@dataclass(frozen=True, slots=True)
class DraftPast:
    """A draft compared with the past. `shares` are, by name, those of the models whose outcome is unknown."""

    past: RoutePast
    retrospect: Retrospect
    shares: Mapping[str, AnswerShare]


def count_past(configuration: Configuration, task_type: str, now: datetime) -> RoutePast:
    """Count the requests of a route's last 24 hours without reading them. One query."""
    rows, to_default = _rows_of(configuration, task_type, window_start(now))
    count = rows.order_by()[: MAX_COUNTED + 1].count()
    return RoutePast((), min(count, MAX_COUNTED), count > MAX_COUNTED, to_default)


def find_draft_past(state: Snapshot, draft: Configuration, name: str, now: datetime) -> DraftPast:
    """Evaluate a task type's requests of the last 24 hours with the configuration in use and with the draft.

    Three queries, and another for each of at most `MAX_SHARES` models whose outcome is unknown.
    """
    past = _read_past(state.configuration, name, now)
    before, after = chain_of(state, state.configuration, name), chain_of(state, draft, name)
    retrospect = look_back(past.requests, before, after)
    unknown = [word for kind, word in retrospect.differences if kind is DifferenceKind.UNKNOWN]
    keys = {place.name: place.key for place in (*after.places, *before.places)}
    shares = {model_name: _find_share(keys[model_name], window_start(now)) for model_name in unknown[:MAX_SHARES]}
    return DraftPast(past, retrospect, shares)


def chain_of(state: Snapshot, configuration: Configuration, task_type: str) -> WalkChain:
    """Return the chain for a task type in a configuration, or an empty chain if no route accepts it.

    Only the routes are taken from `configuration`. Everything else comes from the configuration in use.
    """
    try:
        route = resolve_route(configuration, task_type)[0]
    except NoRouteError:
        return WalkChain()
    decisions = decisions_of(state)
    plan = plan_route(configuration, route, RoutingQuery(task_type), unusable=decisions.unusable)
    places, seen = [], set[CandidateKey]()
    # If a candidate occurs twice, only the first occurrence is ever called.
    for candidate in plan.candidates:
        key = candidate.provider, candidate.model
        if candidate.skip is None and key not in seen:
            places.append(WalkPlace(*key, decisions.endpoint(route, candidate, None).reader))
        else:
            places.append(WalkPlace(*key, is_callable=False))
        seen.add(key)
    return WalkChain(tuple(places), policy_of(route), route.on_drop == REFUSE, route.on_overflow == SKIP)


def _rows_of(configuration: Configuration, task_type: str, since: datetime) -> tuple[QuerySet[RequestLog], bool]:
    rows = RequestLog.objects.filter(started_at__gte=since)
    route: RouteSpec | None = configuration.route(task_type)
    if task_type == DEFAULT_ROUTE or (route is not None and is_taken(route)):
        return rows.filter(task_type=task_type), False
    # The search is bounded, because few of the requests to the default route may have named this task type.
    newest = rows.filter(task_type=DEFAULT_ROUTE).order_by("-started_at").values("pk")[:MAX_OF_DEFAULT]
    return rows.filter(pk__in=newest, matched=False, asked_model=task_name(task_type)), True


def _read_past(configuration: Configuration, task_type: str, now: datetime) -> RoutePast:
    past = count_past(configuration, task_type, now)
    if not past.total:
        return past
    rows, _ = _rows_of(configuration, task_type, window_start(now))
    start_times = dict(rows.order_by("-started_at").values_list("pk", "started_at")[:MOST])
    attempts = AttemptLog.objects.filter(request__in=list(start_times)).order_by()
    if connections[LOGS].vendor == POSTGRESQL:  # the table is partitioned by day, so only two partitions are read
        attempts = attempts.filter(at__gte=window_start(now))
    columns = ("request_id", "provider", "model", "outcome", "status", "dropped_params", "deliveries")
    by_request: dict[str, list[Any]] = {}
    for key, *values in attempts.values_list(*columns):
        by_request.setdefault(key, []).append(values)
    return replace(past, requests=tuple(_requests(start_times, by_request)))


def _requests(start_times: Mapping[str, datetime], by_request: Mapping[str, list[Any]]) -> Iterator[PastRequest]:
    for key, started_at in start_times.items():
        # A request without attempts, such as one answered from a cache, did not use a chain.
        attempts = by_request.get(key)
        if attempts:
            yield PastRequest(key, started_at, files_in(values[-1] for values in attempts), _tries(attempts))


def _tries(attempts: Iterable[Any]) -> dict[CandidateKey, PastTry]:
    tries: dict[CandidateKey, PastTry] = {}
    for provider, model, outcome, status, drops, _ in attempts:
        # If a candidate occurs twice, only its first attempt was made.
        tries.setdefault((provider, model), PastTry(outcome, status, bool(drops)))
    return tries


def _find_share(key: CandidateKey, since: datetime) -> AnswerShare:
    provider, model = key
    rows = AttemptLog.objects.filter(provider=provider, at__gte=since).order_by("-at")
    newest = rows.values_list("model", "outcome")[:MAX_CALLS]
    outcomes = [outcome for name, outcome in newest if name == model and outcome not in UNASKED]
    return AnswerShare(len(outcomes), outcomes.count(OK))
