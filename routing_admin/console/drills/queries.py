"""Find fire drills and their results, and foresee the consequences of a drill."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from capabilities.core.consequence import Consequence
from routing_admin.configuration import snapshot
from routing_admin.console.base.consequences import foresee_disabling
from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.models import FireDrill
from routing_admin.request_log.drill_results import DrillResult, answers_per_minute, find_result

MAX_DRILLS = 5
"""How many drills a provider's page lists, the newest first."""


@dataclass(frozen=True, slots=True)
class DrillLine:
    """A drill and its result so far."""

    row: FireDrill
    result: DrillResult
    is_running: bool


@dataclass(frozen=True, slots=True)
class DrillForecast:
    """The consequences of a drill, the gravest first, and how many requests per minute it would affect."""

    effects: tuple[Consequence, ...]
    per_minute: float


def find_running_drill(now: datetime | None = None) -> DrillWindow | None:
    drill = snapshot.current().drill
    return drill if drill is not None and drill.lasts((now or timezone.now()).timestamp()) else None


def list_drills(provider: str) -> list[DrillLine]:
    """Return a provider's newest drills with their results. Two queries for each drill that affected requests."""
    now = timezone.now()
    rows = FireDrill.objects.filter(provider=provider).order_by("-id")[:MAX_DRILLS]
    return [
        DrillLine(row, find_result(provider, row.started_at, min(row.ends_at, now)), row.ends_at > now) for row in rows
    ]


def foresee_drill(provider: str) -> DrillForecast:
    return DrillForecast(foresee_disabling("provider", [provider]), answers_per_minute(provider, timezone.now()))


def banner_context() -> dict[str, Any]:
    now = timezone.now()
    running = find_running_drill(now)
    return {"running_drill": running, "drill_seconds": running.seconds_left(now.timestamp()) if running else 0}
