"""The chart of usage: a metric over time, stacked by group, and its change since the previous period.

Everything is computed from a usage report and its time series, without queries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from capabilities.core.exchange import ExchangeTable
from capabilities.core.prices import NANO, NO_CURRENCY, money_text
from routing_admin.console.base.tags.charting import (
    MAX_SERIES,
    OTHER_TONE,
    TONES,
    Bucket,
    Chart,
    Mark,
    Series,
    Step,
    list_starts,
)
from routing_admin.request_log.usage import Counts, UsageReport, weight_in
from routing_admin.request_log.usage_series import Points, UsageSeries
from routing_admin.request_log.usage_sums import OTHERS

COST, TOKENS, REQUESTS, FAILURES = "cost", "tokens", "requests", "failures"
METRICS: Mapping[str, str | Promise] = {
    COST: gettext_lazy("Cost"),
    TOKENS: gettext_lazy("Tokens"),
    REQUESTS: gettext_lazy("Requests"),
    FAILURES: gettext_lazy("Failed requests"),
}
UNITS: Mapping[str, str | Promise] = {
    TOKENS: gettext_lazy("tokens"),
    REQUESTS: gettext_lazy("requests"),
    FAILURES: gettext_lazy("failed requests"),
}
CONVERTED = "all"
"""Value of the currency filter that selects all currencies, with their amounts converted to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A metric in a chart. `weigh` returns its value for a group, and `write` formats a value.

    Money is in units of its currency.
    """

    metric: str
    unit: str
    weigh: Callable[[Counts], float]
    write: Callable[[float], str]


def list_currencies(total: Counts, exchange: ExchangeTable) -> dict[str, str]:
    """Return the selectable currencies with labels. `CONVERTED` is first if all can be converted to one currency."""
    currencies = {name: name for name in sorted(total.costs) if name != NO_CURRENCY}
    if len(currencies) > 1 and exchange.total(total.costs) is not None:
        return {CONVERTED: _("all, in %(currency)s") % {"currency": exchange.into}, **currencies}
    return currencies


def choose_currency(chosen: str, total: Counts, exchange: ExchangeTable) -> str:
    """Return the requested currency if offered, else `CONVERTED` if offered, else the currency with the largest sum."""
    currencies = list_currencies(total, exchange)
    if chosen in currencies or not currencies:
        return chosen if currencies else ""
    return CONVERTED if CONVERTED in currencies else weight_in(total, ExchangeTable())[0]


def build_measure(metric: str, currency: str, exchange: ExchangeTable) -> Measure:
    if metric != COST:
        return Measure(metric=metric, unit=str(UNITS[metric]), weigh=COUNTED[metric], write=_write_count)
    into = exchange.into if currency == CONVERTED else currency

    def weigh(counts: Counts) -> float:
        nanos = exchange.total(counts.costs) if currency == CONVERTED else counts.costs.get(currency)
        return max(nanos or 0, 0) / NANO

    def write(value: float) -> str:
        return money_text(round(value * NANO), into or NO_CURRENCY)

    return Measure(metric=metric, unit=into, weigh=weigh, write=write)


COUNTED: Mapping[str, Callable[[Counts], float]] = {
    TOKENS: lambda counts: counts.prompt_tokens + counts.completion_tokens,
    REQUESTS: lambda counts: counts.requests,
    FAILURES: lambda counts: counts.failures,
}


def _write_count(value: float) -> str:
    return f"{value:,.0f}"


def list_largest(groups: Iterable[tuple[str, Counts]], measure: Measure) -> list[str]:
    """Return the names of the groups that get a colour of their own, largest first."""
    weighed = [(measure.weigh(counts), name) for name, counts in groups if name != OTHERS]
    return [name for weight, name in sorted(weighed, key=lambda pair: -pair[0])[:MAX_SERIES] if weight > 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLinks:
    """Builds the links in a chart: to the requests between two times (None means now), and to those of a group."""

    between: Callable[[datetime, datetime | None], str]
    group: Callable[[str], str]
    name: Callable[[str], str]


def draw_usage(
    report: UsageReport,
    series: UsageSeries,
    names: Sequence[str],
    measure: Measure,
    addresses: ChartLinks,
    *,
    step: Step,
    label: str,
    marks: Sequence[tuple[datetime, Mark]] = (),
) -> Chart:
    """Return the chart of a report. The largest groups, `names`, have colours of their own.

    Without `names`, the chart has a single colour.
    """
    starts = list_starts(report.since, report.until - timedelta(microseconds=1), step)
    totals = _sum_buckets(dict(report.series), starts, measure)
    stacked = [
        Series(
            name=addresses.name(name),
            tone=tone,
            values=_sum_buckets(series.groups.get(name, {}), starts, measure),
            url=addresses.group(name),
        )
        for name, tone in zip(names, TONES, strict=False)
    ]
    rest = [max(0.0, total - sum(one.values[at] for one in stacked)) for at, total in enumerate(totals)]
    if not names:
        stacked = [Series(name=str(METRICS[measure.metric]), tone=TONES[0], values=totals)]
    elif any(rest) and (others := sum(measure.weigh(counts) > 0 for _, counts in report.groups) - len(names)) > 0:
        name = ngettext("%(count)s other", "%(count)s others", others) % {"count": f"{others:,}"}
        stacked.append(Series(name=name, tone=OTHER_TONE, values=rest))
    return Chart(
        label=label,
        unit=measure.unit,
        step=step,
        buckets=_buckets(starts, report, addresses, marks),
        series=stacked,
        write=measure.write,
        is_whole=measure.metric != COST,
        before=_sum_buckets(series.before, starts, measure) if series.before else (),
        before_name=_("the period before"),
        empty=_("Nothing to show in this period."),
    )


def _sum_buckets(points: Points, starts: Sequence[datetime], measure: Measure) -> list[float]:
    """Return the sum for each bucket. The last item of `starts` is the end of the last bucket."""
    values = [0.0] * (len(starts) - 1)
    for moment, counts in points.items():
        at = bisect_right(starts, moment) - 1
        if 0 <= at < len(values):
            values[at] += measure.weigh(counts)
    return values


def _buckets(
    starts: Sequence[datetime],
    report: UsageReport,
    addresses: ChartLinks,
    marks: Sequence[tuple[datetime, Mark]],
) -> list[Bucket]:
    now, marked = timezone.now(), dict[int, list[Mark]]()
    for moment, mark in marks:
        marked.setdefault(bisect_right(starts, moment) - 1, []).append(mark)
    return [
        Bucket(
            start=start,
            stop=stop,
            url=addresses.between(
                max(start, report.since), None if min(stop, report.until) >= now else min(stop, report.until)
            ),
            is_partial=start < report.since or stop > report.until or stop > now,
            mark=_combine_marks(marked.get(at, [])),
        )
        for at, (start, stop) in enumerate(pairwise(starts))
    ]


def _combine_marks(marks: Sequence[Mark]) -> Mark | None:
    """Combine a bucket's marks into one: the last, with the number of others added to its text.

    Return None if there are no marks.
    """
    if len(marks) < 2:
        return marks[0] if marks else None
    facts = {"newest": marks[-1].text, "count": len(marks) - 1}
    return Mark(text=_("%(newest)s, and %(count)s more before it") % facts, url=marks[-1].url)


LATEST_START_DIVISOR = 10
"""The change is shown only if the log contains requests from the first tenth (1 / 10) of the previous period."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a number differs from that of the previous period: a signed percentage, and an explanation."""

    text: str
    explanation: str


def find_change(report: UsageReport, series: UsageSeries, measure: Measure) -> Change | None:
    """Compare the complete hours or days of a report with the previous period.

    Return None if the previous period has no requests, or if the log does not reach back to its beginning.
    """
    points = dict(report.series)
    if not series.before or min(series.before) > report.since + (report.until - report.since) / LATEST_START_DIVISOR:
        return None
    by_hour = timezone.now() - report.since <= timedelta(days=2, hours=1)
    length = timedelta(hours=1) if by_hour else timedelta(days=1)
    complete = timezone.now() - length
    sums = [
        sum(measure.weigh(counts) for start, counts in found.items() if start <= complete)
        for found in (points, series.before)
    ]
    if not sums[1]:
        return None
    percent = 100 * (sums[0] - sums[1]) / sums[1]
    facts = {"now": measure.write(sums[0]), "before": measure.write(sums[1])}
    explanation = (
        _("%(now)s in complete hours, %(before)s in the same hours before") % facts
        if by_hour
        else _("%(now)s on complete days, %(before)s on the same days before") % facts
    )
    return Change(f"{percent:+,.1f}%".replace("-", "−"), explanation)
