"""The measured effect of a revision in words: each measure before and after it, and its trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, ngettext

from capabilities.quantities import duration_text
from routing_admin.core.planning.effect import EffectLine, EffectMeasure, EffectTrend, RevisionEffect

LABELS: Mapping[EffectMeasure, str | Promise] = {
    EffectMeasure.FAILURES: gettext_lazy("failed"),
    EffectMeasure.FALLBACKS: gettext_lazy("fell back"),
    EffectMeasure.DURATION: gettext_lazy("median duration"),
}
TRENDS: Mapping[EffectTrend, tuple[str, str, str | Promise]] = {
    EffectTrend.WORSE: ("warn", "warn", gettext_lazy("worse")),
    EffectTrend.BETTER: ("ok", "check", gettext_lazy("better")),
    EffectTrend.SAME: ("", "info", gettext_lazy("no clear difference")),
}
"""Trend → tone, icon, label."""
PARTS: Mapping[EffectMeasure, str] = {EffectMeasure.FAILURES: "refused", EffectMeasure.FALLBACKS: "described"}
"""Measure → the CSS class of the bar's part (see `split`) that shows its share."""


@dataclass(frozen=True, slots=True)
class EffectSide:
    """A measure on one side of a revision: its text, and its bar's parts in thousandths. Durations have no bar."""

    text: str
    bar: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A measure as a row of the page."""

    label: str | Promise
    before: EffectSide
    after: EffectSide
    tone: str
    icon: str
    trend: str | Promise

    @property
    def sides(self) -> tuple[EffectSide, EffectSide]:
        return self.before, self.after


def length_text(length: timedelta) -> str:
    """Return the length of a window in hours, or in minutes below two hours."""
    minutes = max(1, int(length / timedelta(minutes=1)))
    if minutes < 120:
        return ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": minutes}
    return ngettext("%(count)s hour", "%(count)s hours", minutes // 60) % {"count": minutes // 60}


def effect_rows(effect: RevisionEffect) -> list[EffectRow]:
    """Return a row per measure; empty if there are too few requests for a comparison."""
    return [
        EffectRow(LABELS[line.measure], _side(line, line.before), _side(line, line.after), *TRENDS[line.trend])
        for line in effect.lines
    ]


def _side(line: EffectLine, value: float | None) -> EffectSide:
    if value is None:
        return EffectSide("–", {})
    if line.measure is EffectMeasure.DURATION:
        return EffectSide(duration_text(value), {})
    return EffectSide(_percent(value), {"native": round(1000 * (1 - value)), PARTS[line.measure]: round(1000 * value)})


def _percent(share: float) -> str:
    # Small shares keep a decimal place, so that 0.4 % is not shown as 0 %.
    percent = 100 * share
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"
