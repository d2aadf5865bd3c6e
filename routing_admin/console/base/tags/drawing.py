"""Geometry of SVG drawings, computed here so that templates need no style attributes or scripts.

Horizontal values are percentages of the width with two decimals, and vertical values are pixels. Colours are CSS
classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

ROW_HEIGHT = 42
"""Height of a candidate's row in a waterfall chart, in pixels."""

HEAD_HEIGHT = 24
"""Height of the area for the ticks above the first candidate, in pixels."""

MIN_WIDTH = 0.4
"""Minimum width of a bar in percent, so that even a very short time is visible."""

GAP = 0.6
"""Gap between two segments of a split bar, in percent."""

OUTCOME_TONES: Mapping[str, str] = {
    "native": "ok",
    "converted": "info",
    "cut": "warn",
    "described": "warn",
    "refused": "bad",
    "omitted": "bad",
}
"""Maps each form of file delivery to its tone, in the order of the segments in a split bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A time span in milliseconds. Its tone is `ok`, `info`, `warn`, `bad`, or `own` (the gateway's own processing)."""

    start: float
    end: float
    tone: str = "ok"
    early: bool = False
    """Whether the span is before the first content of the answer. Such a bar is drawn paler."""


@dataclass(frozen=True, slots=True)
class Track:
    """A row of a waterfall chart: a candidate, or the time in which no candidate was called.

    The gaps between a candidate's bars are waiting times. `number` is the candidate's position in the chain; without
    it, candidates are numbered in order.
    """

    label: str
    bars: tuple[Bar, ...]
    is_attempt: bool = True
    number: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    x: str
    label: str
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle. `x` and `width` are in percent, `y` is in pixels."""

    tone: str
    x: str
    width: str
    y: int = 0
    early: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A dashed line for a waiting time. `y` is in pixels, and the ends are in percent of the width."""

    start: str
    end: str
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallRow:
    """A laid-out track. `number` is empty if the track is not a candidate but, for example, a call to a describer."""

    number: str
    label: str
    x: str
    y: int
    anchor: str
    boxes: tuple[Box, ...]
    waits: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A laid-out timeline, as templates/components/waterfall.html expects it."""

    height: int
    ticks: tuple[Tick, ...]
    rows: tuple[WaterfallRow, ...]

    @property
    def tones(self) -> frozenset[str]:
        return frozenset(box.tone for row in self.rows for box in row.boxes)

    @property
    def has_waits(self) -> bool:
        return any(row.waits for row in self.rows)


def percent(part: float, whole: float) -> float:
    """Return `part` as a percentage of `whole`, from 0 to 100, or 0 if `whole` is 0."""
    return max(0.0, min(100.0, 100 * part / whole)) if whole > 0 else 0.0


def spark_points(values: Sequence[float]) -> str:
    """Return the points of a sparkline in a 100 × 32 box. The line is flat for zeros or a single value."""
    series = list(values) if len(values) > 1 else [*values, *values] or [0, 0]
    top = max(series)
    last = len(series) - 1
    heights = [30 - 26 * value / top if top > 0 else 30 for value in series]
    return " ".join(f"{100 * index / last:.1f},{height:.1f}" for index, height in enumerate(heights))


def split_boxes(counts: Mapping[str, int]) -> tuple[Box, ...]:
    present = [(tone, counts[name]) for name, tone in OUTCOME_TONES.items() if counts.get(name, 0) > 0]
    whole = sum(count for _, count in present)
    room = 100 - GAP * (len(present) - 1)
    boxes: list[Box] = []
    x = 0.0
    for tone, count in present:
        width = room * count / whole
        boxes.append(Box(tone=tone, x=f"{x:.2f}%", width=f"{width:.2f}%"))
        x += width + GAP
    return tuple(boxes)


def tick_step(total: float) -> float:
    """Return a step of 1, 2 or 5 × 10ⁿ milliseconds that divides `total` into two to five steps."""
    if total <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(total / 5))
    return next(step * scale for step in (1.0, 2.0, 5.0, 10.0) if total / (step * scale) <= 5)


def _tick_label(milliseconds: float, step: float) -> str:
    return f"{milliseconds:g} ms" if step < 100 else f"{milliseconds / 1000:g} s"


def _ticks(total: float) -> tuple[Tick, ...]:
    step = tick_step(total)
    # A small constant compensates for rounding if `total` is a multiple of the step.
    count = int(total / step + 1e-9) + 1
    return tuple(
        Tick(f"{percent(index * step, total):.2f}%", _tick_label(index * step, step), 3 if index else 0)
        for index in range(count)
        # Omit a tick near the right edge, where its label would be cut off.
        if index == 0 or percent(index * step, total) < 95
    )


def _row(index: int, number: str, track: Track, total: float) -> WaterfallRow:
    top = HEAD_HEIGHT + ROW_HEIGHT * index
    boxes = []
    for bar in track.bars:
        width = max(MIN_WIDTH, percent(bar.end - bar.start, total))
        x = min(percent(bar.start, total), 100 - width)
        boxes.append(Box(tone=bar.tone, x=f"{x:.2f}%", width=f"{width:.2f}%", y=top + 17, early=bar.early))
    waits = [
        Line(f"{percent(previous.end, total):.2f}%", f"{percent(following.start, total):.2f}%", top + 23)
        for previous, following in zip(track.bars, track.bars[1:], strict=False)
        if track.is_attempt and following.start > previous.end
    ]
    start = percent(track.bars[0].start, total) if track.bars else 0.0
    # Labels of bars near the right edge extend to the left, because otherwise they would be cut off.
    anchor = "end" if start > 65 else "start"
    label_x = f"{100.0 if anchor == 'end' else start:.2f}%"
    return WaterfallRow(
        number=number, label=track.label, x=label_x, y=top + 11, anchor=anchor, boxes=tuple(boxes), waits=tuple(waits)
    )


def waterfall(tracks: Sequence[Track], total: float | None = None) -> Waterfall:
    """Return the timeline of a request. `total` is its length in milliseconds, by default the end of the last bar."""
    end_times = [bar.end for track in tracks for bar in track.bars]
    whole = max(1.0, total or max(end_times, default=0.0))
    numbers = accumulate(int(track.is_attempt) for track in tracks)
    rows = tuple(
        _row(index, str(track.number or number) if track.is_attempt else "", track, whole)
        for index, (number, track) in enumerate(zip(numbers, tracks, strict=True))
    )
    return Waterfall(HEAD_HEIGHT + ROW_HEIGHT * len(rows), _ticks(whole), rows)
