"""Find fire drills, describe their results, and predict the consequences of a drill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from capabilities.core.consequence import Consequence
from capabilities.quantities import duration_text
from capabilities.sentences import join_words
from routing_admin.configuration import snapshot
from routing_admin.console.base.consequences import find_disabling_consequences
from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.models import FireDrill
from routing_admin.request_log.drill_results import DrillResult, answers_per_minute, find_result

MAX_DRILLS = 5
"""Maximum number of drills that a provider's page lists, newest first."""


@dataclass(frozen=True, slots=True)
class DrillLine:
    """A fire drill and its result, or its result so far if it is still running."""

    row: FireDrill
    result: DrillResult
    is_running: bool


@dataclass(frozen=True, slots=True)
class DrillForecast:
    """The predicted consequences of a drill, gravest first, and the number of requests per minute it would affect."""

    effects: tuple[Consequence, ...]
    per_minute: float


def find_running_drill(now: datetime | None = None) -> DrillWindow | None:
    drill = snapshot.current().drill
    return drill if drill is not None and drill.lasts((now or timezone.now()).timestamp()) else None


def list_drills(provider: str) -> list[DrillLine]:
    """Return a provider's newest drills with their results.

    This takes two queries for each drill that affected requests.
    """
    now = timezone.now()
    rows = FireDrill.objects.filter(provider=provider).order_by("-id")[:MAX_DRILLS]
    return [
        DrillLine(row, find_result(provider, row.started_at, min(row.ends_at, now)), row.ends_at > now) for row in rows
    ]


def estimate_drill(provider: str) -> DrillForecast:
    return DrillForecast(
        find_disabling_consequences("provider", [provider]), answers_per_minute(provider, timezone.now())
    )


def banner_context() -> dict[str, Any]:
    now = timezone.now()
    running = find_running_drill(now)
    return {"running_drill": running, "drill_seconds": running.seconds_left(now.timestamp()) if running else 0}


def describe_window(started_at: datetime, ends_at: datetime) -> str:
    """Return a drill's start and end in the installation's time zone, such as `14:05:00–14:06:00`."""
    start, end = timezone.localtime(started_at), timezone.localtime(ends_at)
    return f"{start:%H:%M:%S}–{end:%H:%M:%S}"


def describe_result(result: DrillResult) -> list[str]:
    if not result.met:
        return [_("No call was affected.")]
    sentences = [
        ngettext(("%(count)s call was affected."), "%(count)s calls were affected.", result.met) % {"count": result.met}
    ]
    if result.answered:
        names = join_words([f"{name} ({count})" for name, count in result.answered])
        singular, plural = "%(count)s was answered by %(names)s.", "%(count)s were answered by %(names)s."
        sentences.append(ngettext(singular, plural, result.answers) % {"count": result.answers, "names": names})
    if result.failed:
        sentences.append(ngettext("%(count)s failed.", "%(count)s failed.", result.failed) % {"count": result.failed})
    if result.others:
        singular, plural = "%(count)s was left or refused.", "%(count)s were left or refused."
        sentences.append(ngettext(singular, plural, result.others) % {"count": result.others})
    if result.delay_ms is not None:
        sentences.append(_describe_delay(round(result.delay_ms)))
    return sentences


def _describe_delay(ms: int) -> str:
    facts = {"time": duration_text(abs(ms))}
    if ms < 0:
        return _("Median: %(time)s faster than the provider's own answers in the hour before.") % facts
    return _("Median: %(time)s slower than the provider's own answers in the hour before.") % facts


def describe_recorded_end(details: Mapping[str, Any]) -> str:
    """Describe a drill's result from its audit event's details.

    Return an empty string if the details are incomplete.
    """
    try:
        window = describe_window(datetime.fromisoformat(details["from"]), datetime.fromisoformat(details["until"]))
        delay = details["delayMs"]
        answered = tuple(details["answered"].items())
        met, failed = details["met"], details["failed"]
        others = met - failed - sum(count for _, count in answered)
        result = DrillResult(met, answered, failed, (), others, delay)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
    return " ".join([window, *describe_result(result)])
