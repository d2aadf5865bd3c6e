"""The four numbers of the dashboard with their sparklines, in words that say nothing where nothing was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from capabilities.quantities import duration_text
from routing_admin.request_log.health import Day, FirstContent
from routing_admin.request_log.search_words import Search, moment_text
from routing_admin.request_log.window import window_start

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number as it is written, what stands beside it, its hours, and the requests it counts as a search."""

    label: str
    value: str
    beside: str
    series: Sequence[float]
    tone: str = ""
    count: str = ""
    search: str = ""


def figures_of(today: Day, yesterday: Day, first: FirstContent, now: datetime) -> tuple[Figure, ...]:
    """Requests, fallbacks, failures and the time to first content of a day, each with what it is compared to."""
    start = window_start(now)
    since = ("since", moment_text(start))
    return (
        Figure(
            _("Requests, 24 h"),
            f"{today.total:,}",
            _("%(before)s the day before") % {"before": f"{yesterday.total:,}"},
            today.requests,
            count=_("since %(time)s") % {"time": f"{localtime(start):%m-%d %H:%M}"},
            search=Search((since,)).to_text(),
        ),
        _share_figure(_("Answered by a fallback"), "fell_back", today, yesterday, ("warn", "fallback", since)),
        _share_figure(_("Failed"), "failed", today, yesterday, ("bad", "failed", since)),
        Figure(
            _("First content, median"),
            NOTHING if first.p50 is None else duration_text(first.p50),
            _("no streamed answer")
            if first.p95 is None
            else _("95%% within %(time)s") % {"time": duration_text(first.p95)},
            first.series,
        ),
    )


def _share_figure(label: str, part: str, today: Day, yesterday: Day, look: tuple[str, str, tuple[str, str]]) -> Figure:
    """A share with its count; `look` is its tone, and the status and time of the search that finds those requests."""
    hours, before = getattr(today, part), yesterday.share(getattr(yesterday, part))
    said = _("%(before)s the day before") % {"before": percent_text(before)}
    beside = _("no request the day before") if before is None else said
    tone, status, since = look
    count = ngettext("%(count)s request", "%(count)s requests", sum(hours)) % {"count": f"{sum(hours):,}"}
    search = Search((("status", status), since)).to_text()
    return Figure(label, percent_text(today.share(hours)), beside, hours, tone if any(hours) else "", count, search)


def percent_text(share: float | None) -> str:
    """A share as `4.3%`, `<0.1%`, `0%` where there was none, and a dash where there was nothing to have a share of."""
    if share is None:
        return NOTHING
    if share == 0:
        return "0%"
    return "<0.1%" if share < 0.05 else f"{share:.1f}%"
