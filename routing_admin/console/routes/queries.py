"""What do the pages of task routes need to know? The row of one, and the last day's traffic of those on a page.

What they show of all routes beside that stands in the snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import Alias, RequestLog, TaskRoute
from routing_admin.request_log.window import window_start


@dataclass(frozen=True, slots=True)
class Traffic:
    """A task type's requests of a day: all, those that another candidate answered, those that failed for good."""

    requests: int = 0
    fell_back: int = 0
    failed: int = 0

    @property
    def share_fell_back(self) -> int:
        """Percent of all requests; at least 1 where there were any."""
        return self._percent(self.fell_back)

    @property
    def share_failed(self) -> int:
        """Percent of all requests; at least 1 where there were any."""
        return self._percent(self.failed)

    def _percent(self, part: int) -> int:
        return max(1, round(100 * part / self.requests)) if part else 0


def map_traffic(task_types: Collection[str], now: datetime) -> Mapping[str, Traffic]:
    """The last 24 hours of these task types, without those nobody asked for; one query that reads an index only."""
    asked = RequestLog.objects.filter(task_type__in=task_types, started_at__gte=window_start(now))
    counts = (
        asked.order_by()
        .values_list("task_type")
        .annotate(
            requests=Count("*"),
            fell_back=Count("started_at", filter=Q(fell_back=True)),
            failed=Count("started_at", filter=Q(ending=RequestEnding.FAILED)),
        )
    )
    return {name: Traffic(*numbers) for name, *numbers in counts}


def find_route(task_type: str) -> TaskRoute | None:
    """The row of that task type's route; None when there is none."""
    return TaskRoute.objects.filter(task_type=task_type).first()


def list_aliases_of(target: str) -> list[str]:
    """The aliases that lead to a name."""
    return list(Alias.objects.filter(target=target).order_by("name").values_list("name", flat=True))


def find_route_with_chain(task_type: str) -> TaskRoute | None:
    """The same with its candidates and their providers read; three queries."""
    return TaskRoute.objects.filter(task_type=task_type).prefetch_related("candidates__provider").first()
