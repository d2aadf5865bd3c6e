"""The four numbers of the dashboard with their sparklines, in words that say nothing where nothing was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from capabilities.quantities import duration_text
from routing_admin.request_log.health import Day, FirstContent

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number as it is written, what stands beside it, and its hours."""

    label: str
    value: str
    beside: str
    series: Sequence[float]
    tone: str = ""


def figures_of(today: Day, yesterday: Day, first: FirstContent) -> tuple[Figure, ...]:
    """Requests, fallbacks, failures and the time to first content of a day, each with what it is compared to."""
    return (
        Figure(
            _("Requests, 24 h"),
            f"{today.total:,}",
            _("%(before)s the day before") % {"before": f"{yesterday.total:,}"},
            today.requests,
        ),
        _share_figure(_("Answered by a fallback"), "fell_back", today, yesterday, "warn"),
        _share_figure(_("Failed"), "failed", today, yesterday, "bad"),
        Figure(
            _("First content, median"),
            NOTHING if first.p50 is None else duration_text(first.p50),
            _("no streamed answer")
            if first.p95 is None
            else _("95%% within %(time)s") % {"time": duration_text(first.p95)},
            first.series,
        ),
    )


def _share_figure(label: str, part: str, today: Day, yesterday: Day, tone: str) -> Figure:
    hours, before = getattr(today, part), yesterday.share(getattr(yesterday, part))
    said = _("%(before)s the day before") % {"before": percent_text(before)}
    beside = _("no request the day before") if before is None else said
    return Figure(label, percent_text(today.share(hours)), beside, hours, tone if any(hours) else "")


def percent_text(share: float | None) -> str:
    """A share as `4.3%`, `<0.1%`, `0%` where there was none, and a dash where there was nothing to have a share of."""
    if share is None:
        return NOTHING
    if share == 0:
        return "0%"
    return "<0.1%" if share < 0.05 else f"{share:.1f}%"
