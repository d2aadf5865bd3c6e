"""Lay out a chart of stacked bars over time, with round axis values. All its content is also available as text.

Horizontal values are percentages of the width and vertical values are pixels, so that text is not distorted at any
width. Only the bars and the line of the previous period are stretched, because they contain no text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from routing_admin.request_log.time_ranges import hour_start

MAX_SERIES = 6
"""Maximum number of series with a colour of their own. Any further series are combined into one."""
TONES = tuple(f"c{number}" for number in range(1, MAX_SERIES + 1))
"""Colours of the series, starting with the largest series."""
OTHER_TONE = "c0"

HEAD, MARKS, FOOT = 12, 18, 22
"""Heights in pixels: space above the top gridline, space for event marks if there are any, and space below the axis."""
UNITS = 10
"""Width of a bucket in the drawing's coordinates. A bar is eight of these units wide."""
MIN_HEIGHT = 1.5
"""Minimum height of a bar's segment in pixels, so that one failure among thousands is visible."""
MAX_INTERVALS, MIN_INTERVALS = 5, 3
MAX_LABELS = 8
MAX_NAME = 32
"""Maximum number of characters of a displayed name. Longer names are shortened in the middle."""
EDGE_PERCENT = 4
"""Labels closer than this to an end of the axis, in percent of its length, are aligned inwards."""


class Step(Enum):
    """The length of a chart's buckets. For `MINUTES` it is five minutes."""

    MINUTES = "minutes"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An event that is marked in a bucket, such as a new revision."""

    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The time span that one bar covers.

    `is_partial` is true if only part of it is counted, for example because it has not ended.
    """

    start: datetime
    stop: datetime
    url: str
    is_partial: bool = False
    mark: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A series of a stacked bar chart: the height of its segment in each bar.

    If `Chart.adds_up` is false, these heights are not the values themselves: the values are in `shown`, and `total` is
    the value for the whole period.
    """

    name: str
    tone: str
    values: Sequence[float]
    url: str = ""
    shown: Sequence[float] | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What a chart shows. `write` formats a value, and `is_whole` is true if values are counts.

    `adds_up` is false if values, such as percentiles, cannot be added.
    """

    label: str
    unit: str
    step: Step
    buckets: Sequence[Bucket]
    series: Sequence[Series]
    write: Callable[[float], str]
    is_whole: bool = True
    adds_up: bool = True
    before: Sequence[float] = ()
    before_name: str = ""
    empty: str = ""
    note: str = ""


SHORT_STEPS = frozenset({Step.MINUTES, Step.HOUR})
FIVE_MINUTES = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of the gridlines: from zero upwards, at equal distances."""

    values: tuple[float, ...]

    @property
    def top(self) -> float:
        return self.values[-1]


def round_axis(largest: float, *, is_whole: bool = True) -> Axis:
    """Return an axis of four to six gridlines at multiples of 1, 2, 2.5 or 5 × 10ⁿ, up to at least `largest`."""
    step = _round_step(largest, is_whole=is_whole) if largest > 0 else 1.0
    count = max(MIN_INTERVALS, math.ceil(largest / step - 1e-9))
    return Axis(tuple(round(index * step, 12) for index in range(count + 1)))


def _round_step(largest: float, *, is_whole: bool) -> float:
    if is_whole and largest <= MAX_INTERVALS:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(largest / MAX_INTERVALS))
    steps = [factor * scale for factor in (1.0, 2.0, 2.5, 5.0, 10.0)]
    return next(step for step in steps if largest / step <= MAX_INTERVALS + 1e-9 and not (is_whole and step % 1))


SCALES = (("B", 1e9), ("M", 1e6), ("k", 1e3))
CHINESE_SCALES = ((" 亿", 1e8), (" 万", 1e4))
PLAIN_BELOW = 10_000


def axis_texts(axis: Axis) -> list[str]:
    """Return the axis values as short texts with the same unit: `0`, `2.5k`, `5k`; in Chinese `0`, `0.5 万`."""
    scales = CHINESE_SCALES if (get_language() or "").startswith("zh") else SCALES
    suffix, scale = next((pair for pair in scales if axis.top >= max(pair[1], PLAIN_BELOW)), ("", 1.0))
    return [f"{value / scale:,.10g}{suffix if value else ''}" for value in axis.values]


def write_span(bucket: Bucket, step: Step) -> str:
    """Return a bucket's time span in local time: `2026-11-26 14:00–15:00`, `2026-11-26` or `2026-11`."""
    start = timezone.localtime(bucket.start)
    if step in SHORT_STEPS:
        stop = timezone.localtime(bucket.stop)
        return f"{start:%Y-%m-%d %H:%M}–{stop:%H:%M}"
    if step is Step.WEEK:
        last = timezone.localtime(bucket.stop - timedelta(microseconds=1))
        return f"{start:%Y-%m-%d} – {last:%m-%d}"
    return f"{start:%Y-%m-%d}" if step is Step.DAY else f"{start:%Y-%m}"


def _hour_labels(starts: Sequence[datetime]) -> list[tuple[int, str]]:
    hours = (starts[-1] - starts[0]) / timedelta(hours=1) + 1
    every = next(length for length in (1, 2, 3, 4, 6, 12, 24) if hours / length <= MAX_LABELS or length == 24)
    return [
        (index, f"{start:%H:%M}" if start.hour else f"{start:%m-%d}")
        for index, start in enumerate(starts)
        if start.hour % every == 0
    ]


def _minute_labels(starts: Sequence[datetime]) -> list[tuple[int, str]]:
    every = 15 if len(starts) <= 24 else 30
    return [(index, f"{start:%H:%M}") for index, start in enumerate(starts) if start.minute % every == 0]


def _day_labels(starts: Sequence[datetime]) -> list[tuple[int, str]]:
    if len(starts) <= 2 * MAX_LABELS:
        return _spread([f"{start:%m-%d}" for start in starts])
    return [(index, f"{start:%m-%d}") for index, start in enumerate(starts) if start.weekday() == 0]


def _spread(texts: Sequence[str]) -> list[tuple[int, str]]:
    every = -(-len(texts) // MAX_LABELS)
    return [(index, text) for index, text in enumerate(texts) if index % every == 0]


def label_times(buckets: Sequence[Bucket], step: Step) -> list[tuple[int, str]]:
    """Return the labels as (index of the bucket, text). A label marks a full hour, a day, a week or a month."""
    starts = [timezone.localtime(bucket.start) for bucket in buckets]
    if not starts:
        return []
    if step in SHORT_STEPS:
        return _hour_labels(starts) if step is Step.HOUR else _minute_labels(starts)
    if step is Step.DAY:
        return _day_labels(starts)
    return _spread([f"{start:%m-%d}" if step is Step.WEEK else f"{start:%Y-%m}" for start in starts])


RATE_NAMES = {
    Step.MINUTES: lambda unit: _("%(unit)s per 5 minutes") % {"unit": unit},
    Step.HOUR: lambda unit: _("%(unit)s per hour") % {"unit": unit},
    Step.DAY: lambda unit: _("%(unit)s per day") % {"unit": unit},
    Step.WEEK: lambda unit: _("%(unit)s per week") % {"unit": unit},
    Step.MONTH: lambda unit: _("%(unit)s per month") % {"unit": unit},
}


def list_starts(since: datetime, now: datetime, step: Step) -> list[datetime]:
    """Return the start times of the buckets from `since` to `now`, followed by the end time of the last one."""
    starts = [_bucket_start(since, step)]
    while starts[-1] <= now:
        starts.append(_next_start(starts[-1], step))
    return starts


def _bucket_start(moment: datetime, step: Step) -> datetime:
    if step in SHORT_STEPS:
        hour = hour_start(moment)
        return hour if step is Step.HOUR else hour + (moment - hour) // FIVE_MINUTES * FIVE_MINUTES
    day = timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)
    if step is Step.WEEK:
        return _midnight(day - timedelta(days=day.weekday()))
    return _midnight(day.replace(day=1)) if step is Step.MONTH else day


def _next_start(start: datetime, step: Step) -> datetime:
    if step in SHORT_STEPS:
        return start + (timedelta(hours=1) if step is Step.HOUR else FIVE_MINUTES)
    if step is Step.MONTH:
        return _midnight((start + timedelta(days=32)).replace(day=1))
    return _midnight(start + timedelta(days=7 if step is Step.WEEK else 1))


def _midnight(moment: datetime) -> datetime:
    # Determine the UTC offset again, because it may have changed since the previous bucket.
    return timezone.make_aware(moment.replace(hour=0, tzinfo=None))


@dataclass(frozen=True, slots=True)
class Gridline:
    y: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLabel:
    x: str
    text: str
    anchor: str
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Path:
    tone: str
    shape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    tone: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A bucket as text: its total, and its nonzero segments, topmost first."""

    bucket: Bucket
    title: str
    total: str
    parts: tuple[Part, ...]
    cells: tuple[str, ...]
    before: str
    is_far: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """An entry of the legend: the name of a series, shortened and in full, and its total."""

    tone: str
    name: str
    whole: str
    total: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A laid-out chart, as templates/components/chart.html expects it."""

    chart: Chart
    unit: str
    height: int
    width: int
    gridlines: tuple[Gridline, ...]
    times: tuple[TimeLabel, ...]
    paths: tuple[Path, ...]
    line: str
    columns: tuple[Column, ...]
    legend: tuple[LegendEntry, ...]
    before_total: str
    is_empty: bool
    is_partial: bool
    zone: str

    @property
    def has_marks(self) -> bool:
        return any(column.bucket.mark for column in self.columns)


def fold_series(series: Sequence[Series]) -> list[Series]:
    """Return the first `MAX_SERIES` series, followed by one that combines all others."""
    own = [one for one in series if one.tone != OTHER_TONE]
    rest = [*own[MAX_SERIES:], *(one for one in series if one.tone == OTHER_TONE)]
    if len(rest) < 2:
        return list(series)
    others = replace(rest[-1], tone=OTHER_TONE, url="", values=_sum(rest))
    return [*own[:MAX_SERIES], replace(others, name=str(_("others")))]


def _sum(series: Iterable[Series]) -> list[float]:
    return [sum(values) for values in zip(*(one.values for one in series), strict=True)]


def shorten(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[:17]}…{name[-14:]}"


def draw(chart: Chart, height: int) -> Drawing:
    """Lay out a chart with bars up to `height` pixels high. The first series is drawn topmost in each bar."""
    series = fold_series(chart.series)
    totals = _sum(series) or [0.0] * len(chart.buckets)
    axis = round_axis(max([*totals, *chart.before], default=0), is_whole=chart.is_whole)
    base = HEAD + height + (MARKS if any(bucket.mark for bucket in chart.buckets) else 0)
    count = max(1, len(chart.buckets))
    texts = axis_texts(axis)
    scale = height / axis.top
    heights = [0.0] * len(chart.buckets)
    paths = [Path(one.tone, _path(one.values, heights, base, scale)) for one in reversed(series)]
    return Drawing(
        chart=replace(chart, series=series),
        unit=RATE_NAMES[chart.step](chart.unit) if chart.adds_up else chart.unit,
        height=base + FOOT,
        width=count * UNITS,
        gridlines=tuple(
            Gridline(f"{base - value * scale:.1f}", text) for value, text in zip(axis.values, texts, strict=True)
        ),
        times=tuple(_time_labels(chart, count)),
        paths=tuple(path for path in paths if path.shape),
        line=" ".join(
            f"{(index + 0.5) * UNITS:g},{base - value * scale:.1f}" for index, value in enumerate(chart.before)
        ),
        columns=tuple(_columns(chart, series, totals)),
        legend=tuple(
            LegendEntry(
                tone=one.tone,
                name=shorten(one.name),
                whole=one.name,
                total=chart.write(sum(one.values) if one.total is None else one.total),
                url=one.url,
            )
            for one in series
        ),
        before_total=chart.write(sum(chart.before)) if chart.before else "",
        is_empty=not any(totals),
        is_partial=any(bucket.is_partial for bucket in chart.buckets),
        zone=timezone.get_current_timezone_name(),
    )


def _path(values: Sequence[float], heights: list[float], base: float, scale: float) -> str:
    """Return the SVG path of the segments of a series on top of `heights`, and add the segments to `heights`."""
    pieces = []
    for index, value in enumerate(values):
        if value <= 0:
            continue
        bottom = base - heights[index]
        heights[index] += max(MIN_HEIGHT, value * scale)
        top = base - heights[index]
        pieces.append(f"M{index * UNITS + 1} {_round(bottom)}V{_round(top)}h8V{_round(bottom)}z")
    return "".join(pieces)


def _round(number: float) -> str:
    return f"{round(number, 1):g}"


def _time_labels(chart: Chart, count: int) -> Iterator[TimeLabel]:
    # The label of a bucket of up to an hour is at the bucket's start, any other label below the middle of its bar.
    offset = 0.0 if chart.step in SHORT_STEPS else 0.5
    labels = label_times(chart.buckets, chart.step)
    for number, (index, text) in enumerate(labels):
        x = 100 * (index + offset) / count
        anchor = "start" if x < EDGE_PERCENT else "end" if x > 100 - EDGE_PERCENT else "middle"
        yield TimeLabel(x=f"{x:.2f}%", text=text, anchor=anchor, is_optional=len(labels) > 4 and number % 2 == 1)


def table_rows(chart: Chart) -> Iterator[list[str]]:
    """Yield the chart as table rows: the column names, then the start and the unformatted values of each bucket."""
    yield [_("Time"), *(one.name for one in chart.series)]
    for index, bucket in enumerate(chart.buckets):
        values = ((one.shown or one.values)[index] for one in chart.series)
        yield [timezone.localtime(bucket.start).isoformat(), *(f"{value:.12g}" for value in values)]


def _columns(chart: Chart, series: Sequence[Series], totals: Sequence[float]) -> Iterator[Column]:
    for index, (bucket, total) in enumerate(zip(chart.buckets, totals, strict=True)):
        texts = [chart.write((one.shown or one.values)[index]) for one in series]
        yield Column(
            bucket=bucket,
            title=write_span(bucket, chart.step),
            total=chart.write(total) if chart.adds_up else "",
            parts=tuple(
                Part(tone=one.tone, name=shorten(one.name), text=text)
                for one, text in zip(series, texts, strict=True)
                if one.values[index]
            ),
            cells=tuple(texts),
            before=chart.write(chart.before[index]) if chart.before else "",
            is_far=index >= len(chart.buckets) / 2,
        )
