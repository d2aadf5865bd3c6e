"""Charts for a request search: how many requests match over time, by outcome, and how long the answers took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.quantities import duration_text
from capabilities.sentences import join_sentences
from routing_admin.console.base.tags.charting import Bucket, Chart, Series, Step, list_starts
from routing_admin.request_log.latencies import Histogram, Latency, quantile
from routing_admin.request_log.latency_series import read_latencies
from routing_admin.request_log.search_words import Search, moment_text
from routing_admin.request_log.time_ranges import DAY
from routing_admin.request_log.volume import Outcome, count_volume, find_range

NAMES: Mapping[Outcome, tuple[str | Promise, str]] = {
    Outcome.ANSWERED: (gettext_lazy("Answered"), "ok"),
    Outcome.FALLBACK: (gettext_lazy("Answered by fallback"), "warn"),
    Outcome.REFUSED: (pgettext_lazy("call", "Refused"), "c0"),
    Outcome.CANCELLED: (gettext_lazy("Cancelled"), "pale"),
    Outcome.FAILED: (gettext_lazy("Failed"), "bad"),
}
"""Names and colours of outcomes, from the top of a bar to its foot.

Failures are at the foot, where they are easiest to compare.
"""
STEPS = (
    (timedelta(minutes=150), Step.MINUTES),
    (timedelta(hours=31), Step.HOUR),
    (timedelta(days=31), Step.DAY),
    (timedelta(weeks=30), Step.WEEK),
)
"""Maximum time range for each bucket length, chosen so that a chart has no more than about thirty buckets."""
MAX_SPAN = timedelta(days=900)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The time span of a chart. Its buckets begin at `shown`, but only requests from `start` on are counted."""

    search: Search
    now: datetime
    shown: datetime
    start: datetime
    stop: datetime
    step: Step
    starts: Sequence[datetime]

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    def bucket_index(self, at: datetime) -> int:
        """Return the index of the bucket that contains a time.

        A time before the first bucket counts as part of the first bucket.
        """
        return min(max(0, bisect_right(self.starts, at) - 1), self.count - 1)

    def list_buckets(self, counted_since: datetime) -> list[Bucket]:
        return [
            Bucket(
                start=begin,
                stop=end,
                url=_bucket_url(
                    self.search,
                    max(begin, self.shown),
                    min(end, self.stop) if min(end, self.stop) < self.now else None,
                ),
                is_partial=_is_partial(begin, end, self.start, self.stop, counted_since),
            )
            for begin, end in pairwise(self.starts)
        ]


def _frame(search: Search, now: datetime) -> Frame | None:
    found = find_range(search, now)
    if found is None:
        return None
    start, stop = max(found[0], now - MAX_SPAN), found[1]
    # If the log is younger than a day, show a whole day instead of a few minutes.
    shown = start if search.get("since") else min(start, stop - DAY)
    step = next((step for longest, step in STEPS if stop - shown <= longest), Step.MONTH)
    starts = list_starts(shown, stop - timedelta(microseconds=1), step)
    return Frame(search=search, now=now, shown=shown, start=start, stop=stop, step=step, starts=starts)


def draw_volume(search: Search, now: datetime) -> Chart | None:
    """Return the chart of a search, or None if no request matches."""
    frame = _frame(search, now)
    if frame is None:
        return None
    volume = count_volume(search, frame.start, frame.stop, now, by_minute=frame.step is Step.MINUTES)
    values = {outcome: [0.0] * frame.count for outcome in NAMES}
    for at, point in volume.points.items():
        for outcome, count in point.items():
            values[outcome][frame.bucket_index(at)] += count
    if not any(map(any, values.values())):
        return None
    return Chart(
        label=_("Requests over time by outcome"),
        unit=_("requests"),
        step=frame.step,
        buckets=frame.list_buckets(volume.since),
        series=[
            Series(name=str(name), tone=tone, values=values[outcome], url=_outcome_url(search, outcome))
            for outcome, (name, tone) in NAMES.items()
            if any(values[outcome])
        ],
        write=lambda value: f"{value:,.0f}",
        note=_count_note(volume.since, frame.start),
    )


LATENCIES: Mapping[Latency, str | Promise] = {
    Latency.FIRST: gettext_lazy("First content"),
    Latency.WHOLE: gettext_lazy("Whole answer"),
}
SHARES = ((0.95, gettext_lazy("95% within"), "pale"), (0.5, gettext_lazy("Median"), "c1"))
"""Percentiles with their names and colours, from the top of a bar down."""


def draw_latencies(search: Search, latency: Latency, now: datetime) -> Chart | None:
    """Return the chart of response times, or None if no matching request was answered."""
    frame = _frame(search, now)
    if frame is None:
        return None
    read = read_latencies(search, latency, frame.start, frame.stop, now, by_minute=frame.step is Step.MINUTES)
    histograms = [Histogram() for _ in range(frame.count)]
    for at, histogram in read.points.items():
        histograms[frame.bucket_index(at)].update(histogram)
    whole = sum(histograms, Histogram())
    if not whole:
        return None
    shown = [[quantile(histogram, share) if histogram else 0.0 for histogram in histograms] for share, *_ in SHARES]
    heights = [[high - low for high, low in zip(*shown, strict=True)], shown[1]]
    return Chart(
        label=_("%(what)s over time") % {"what": LATENCIES[latency]},
        unit=_("seconds"),
        step=frame.step,
        buckets=frame.list_buckets(read.since),
        series=[
            Series(
                name=str(name),
                tone=tone,
                values=[value / 1000 for value in values],
                shown=[value / 1000 for value in texts],
                total=quantile(whole, share) / 1000,
            )
            for (share, name, tone), values, texts in zip(SHARES, heights, shown, strict=True)
        ],
        write=lambda seconds: duration_text(seconds * 1000) if seconds else NOTHING,
        is_whole=False,
        adds_up=False,
        note=join_sentences(
            [_("Answered requests only; percentiles are accurate to 5%."), _count_note(read.since, frame.start)]
        ),
    )


NOTHING = "–"


def _is_partial(begin: datetime, end: datetime, start: datetime, stop: datetime, counted_since: datetime) -> bool:
    """Return whether part of a bucket is outside the search's time range, or outside the time that is counted."""
    return begin < start < end or end > stop or (start < counted_since and begin < counted_since)


def _bucket_url(search: Search, since: datetime, until: datetime | None) -> str:
    narrowed = search.having("since", moment_text(since)).having("until", moment_text(until) if until else "")
    return _search_url(narrowed)


def _outcome_url(search: Search, outcome: Outcome) -> str:
    # Answers of the first candidate have no link: the search `status:ok` would also match requests that were answered
    # after a fallback.
    if outcome is Outcome.ANSWERED or search.get("status") == outcome.value:
        return ""
    return _search_url(search.having("status", outcome.value))


def _search_url(search: Search) -> str:
    return f"{reverse('requests')}?{urlencode({'q': search.to_text()}, safe=':')}"


def _count_note(since: datetime, start: datetime) -> str:
    if since <= start:
        return ""
    text = _("Counted from %(time)s on, because this filter is counted request by request.")
    return text % {"time": f"{timezone.localtime(since):%Y-%m-%d %H:%M}"}
