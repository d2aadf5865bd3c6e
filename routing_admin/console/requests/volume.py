"""The chart above the list of requests: how many match the search over time, by outcome."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from routing_admin.console.base.tags.charting import Bucket, Chart, Series, Step, list_starts
from routing_admin.request_log.search_words import Search, moment_text
from routing_admin.request_log.time_ranges import DAY
from routing_admin.request_log.volume import Outcome, Volume, count_volume, find_range

NAMES: Mapping[Outcome, tuple[str | Promise, str]] = {
    Outcome.ANSWERED: (gettext_lazy("Answered"), "ok"),
    Outcome.FALLBACK: (gettext_lazy("Answered by fallback"), "warn"),
    Outcome.REFUSED: (pgettext_lazy("call", "Refused"), "c0"),
    Outcome.CANCELLED: (gettext_lazy("Cancelled"), "pale"),
    Outcome.FAILED: (gettext_lazy("Failed"), "bad"),
}
"""Names and colours, from the top of a bar to the axis: what failed stands on the axis, where it is compared best."""
STEPS = (
    (timedelta(minutes=150), Step.MINUTES),
    (timedelta(hours=31), Step.HOUR),
    (timedelta(days=31), Step.DAY),
    (timedelta(weeks=30), Step.WEEK),
)
"""Longest range of each step, so that a chart has about thirty buckets at most."""
LONGEST = timedelta(days=900)


def draw_volume(search: Search, now: datetime) -> Chart | None:
    """Return the chart of a search, or None if it matches nothing that the log has."""
    found = find_range(search, now)
    if found is None:
        return None
    start, stop = max(found[0], now - LONGEST), found[1]
    # A log that is younger than a day is shown as a day, not as a few minutes.
    shown = start if search.get("since") else min(start, stop - DAY)
    step = next((step for longest, step in STEPS if stop - shown <= longest), Step.MONTH)
    volume = count_volume(search, start, stop, now, by_minute=step is Step.MINUTES)
    starts = list_starts(shown, stop - timedelta(microseconds=1), step)
    values = {outcome: [0.0] * (len(starts) - 1) for outcome in NAMES}
    for at, point in volume.points.items():
        # The first sum may begin before the oldest request.
        place = max(0, bisect_right(starts, at) - 1)
        for outcome, count in point.items():
            values[outcome][min(place, len(starts) - 2)] += count
    if not any(map(any, values.values())):
        return None
    return Chart(
        label=_("Requests over time by outcome"),
        unit=_("requests"),
        step=step,
        buckets=[
            Bucket(
                start=begin,
                stop=end,
                url=_narrow(search, max(begin, shown), min(end, stop) if min(end, stop) < now else None),
                is_partial=_is_partial(begin, end, start, stop, volume.since),
            )
            for begin, end in pairwise(starts)
        ],
        series=[
            Series(name=str(name), tone=tone, values=values[outcome], url=_only(search, outcome))
            for outcome, (name, tone) in NAMES.items()
            if any(values[outcome])
        ],
        write=lambda value: f"{value:,.0f}",
        note=_note(volume, start),
    )


def _is_partial(begin: datetime, end: datetime, start: datetime, stop: datetime, counted_since: datetime) -> bool:
    """Return whether a bucket is cut by the search's range, or was not counted completely."""
    return begin < start < end or end > stop or (start < counted_since and begin < counted_since)


def _narrow(search: Search, since: datetime, until: datetime | None) -> str:
    narrowed = search.having("since", moment_text(since)).having("until", moment_text(until) if until else "")
    return _address(narrowed)


def _only(search: Search, outcome: Outcome) -> str:
    # `status:ok` would find answers of fallbacks, too.
    if outcome is Outcome.ANSWERED or search.get("status") == outcome.value:
        return ""
    return _address(search.having("status", outcome.value))


def _address(search: Search) -> str:
    return f"{reverse('requests')}?{urlencode({'q': search.to_text()}, safe=':')}"


def _note(volume: Volume, start: datetime) -> str:
    if volume.since <= start:
        return ""
    text = _("Counted from %(time)s on, because this filter is counted request by request.")
    return text % {"time": f"{timezone.localtime(volume.since):%Y-%m-%d %H:%M}"}
