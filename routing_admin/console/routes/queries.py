"""Queries for task routes: rows, traffic in the last day, and which routes cannot answer.

Everything else about routes is read from the snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db.models import Count, Q
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy

from capabilities.core.providers.origins import is_embedded
from capabilities.sentences import translate_sentence
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.chain import PlannedCandidate, SkipReason
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.core.planning.plan import RoutingQuery
from routing_admin.dispatch.decisions import cached_decisions
from routing_admin.models import Alias, RequestLog, TaskRoute
from routing_admin.request_log.time_ranges import window_start


@dataclass(frozen=True, slots=True)
class Traffic:
    """The number of a task type's requests in a day: all, those with a fallback, and those that failed."""

    requests: int = 0
    fell_back: int = 0
    failed: int = 0

    @property
    def share_fell_back(self) -> int:
        return self._percent(self.fell_back)

    @property
    def share_failed(self) -> int:
        return self._percent(self.failed)

    def _percent(self, part: int) -> int:
        # If there was any such request, show at least 1 %, because 0 % would hide it.
        return max(1, round(100 * part / self.requests)) if part else 0


def map_traffic(task_types: Collection[str], now: datetime) -> Mapping[str, Traffic]:
    """Map each task type with requests in the last 24 hours to its traffic.

    An index alone answers this query.
    """
    rows = RequestLog.objects.filter(task_type__in=task_types, started_at__gte=window_start(now))
    counts = (
        rows.order_by()
        .values_list("task_type")
        .annotate(
            requests=Count("*"),
            # `started_at` is in the index. For any other column, the database would have to read the rows.
            fell_back=Count("started_at", filter=Q(fell_back=True)),
            failed=Count("started_at", filter=Q(ending=RequestEnding.FAILED)),
        )
    )
    return {name: Traffic(*numbers) for name, *numbers in counts}


def find_route(task_type: str) -> TaskRoute | None:
    return TaskRoute.objects.filter(task_type=task_type).first()


def list_target_aliases(target: str) -> list[str]:
    return list(Alias.objects.filter(target=target).order_by("name").values_list("name", flat=True))


def find_route_with_chain(task_type: str) -> TaskRoute | None:
    return TaskRoute.objects.filter(task_type=task_type).prefetch_related("candidates__provider").first()


# Pages, alerts, `doctor` and `/metrics` share this definition of which task routes cannot answer, and why. Disabled
# routes are left out, because requests of their task types use the route `default`. Cooldowns are ignored, because they
# end by themselves.


UNABLE = "unable"
"""The state of an enabled route that cannot answer, as used in URLs."""
NO_CANDIDATE, SEVERAL = "no_candidate", "several"
CAUSES: Mapping[str, Promise] = {
    SkipReason.NO_KEY: gettext_lazy("no key"),
    SkipReason.DISABLED: gettext_lazy("only disabled providers"),
    SkipReason.MISSING: gettext_lazy("unknown providers"),
    SkipReason.ORIGIN_REFUSED: gettext_lazy("addresses not allowed"),
    NO_CANDIDATE: gettext_lazy("no candidate"),
    SEVERAL: gettext_lazy("several causes"),
}
"""Reasons why a route cannot answer. `SEVERAL` means that candidates are skipped for different reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStatus:
    """Whether a route can answer: the number of callable candidates, and why the others cannot be called.

    If the route cannot answer, `cause` is a key in `CAUSES`, else it is empty.
    """

    task_type: str
    ready: int
    reasons: tuple[str, ...]
    cause: str
    is_echo_only: bool


def list_statuses(state: Snapshot) -> tuple[RouteStatus, ...]:
    """Return the status of each enabled route. Routes are planned as for a request, but no model is called."""
    return _list_statuses(state, get_language())


# Snapshots are immutable, so the result is cached per snapshot and language.
@lru_cache(maxsize=4)
def _list_statuses(state: Snapshot, _language: str | None) -> tuple[RouteStatus, ...]:
    return tuple(find_status(state, route) for route in state.configuration.routes if route.enabled)


def list_unable(standings: Sequence[RouteStatus]) -> list[str]:
    """Return the task types of routes that cannot answer."""
    return [standing.task_type for standing in standings if not standing.ready]


def list_ready(state: Snapshot, route: RouteSpec) -> list[PlannedCandidate]:
    """Return the candidates of a route that a request could call."""
    return [candidate for candidate in _plan(state, route) if candidate.skip is None]


def find_status(state: Snapshot, route: RouteSpec) -> RouteStatus:
    planned = _plan(state, route)
    ready = [candidate for candidate in planned if candidate.skip is None]
    skipped = [candidate for candidate in planned if candidate.skip is not None]
    # Candidates are often skipped for the same reason, for example a missing key, so list each reason only once.
    reasons = tuple(dict.fromkeys(translate_sentence(candidate.skip_detail) or candidate.name for candidate in skipped))
    return RouteStatus(
        task_type=route.task_type,
        ready=len(ready),
        reasons=reasons,
        cause="" if ready else _cause({candidate.skip for candidate in skipped}),
        is_echo_only=all(_is_embedded(state, candidate.provider) for candidate in ready),
    )


def _cause(skips: Collection[SkipReason | None]) -> str:
    """Return the reason why all candidates are skipped, as a key in `CAUSES`.

    A candidate that is skipped as a duplicate is ignored, because its first occurrence counts.
    """
    causes = [skip for skip in skips if skip is not None and skip is not SkipReason.DUPLICATE]
    if not causes:
        return NO_CANDIDATE
    return causes[0] if len(causes) == 1 and causes[0] in CAUSES else SEVERAL


def _plan(state: Snapshot, route: RouteSpec) -> Sequence[PlannedCandidate]:
    return cached_decisions(state).plan(route, RoutingQuery(route.task_type), matched=True).candidates


def _is_embedded(state: Snapshot, provider: str) -> bool:
    spec = state.configuration.provider(provider)
    return spec is not None and is_embedded(spec.endpoint)
