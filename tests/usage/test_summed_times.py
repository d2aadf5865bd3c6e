"""In every time zone, a time range is split into whole days, whole hours, and the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.models import UsageSum
from routing_admin.request_log.summed_times import HOURS_UP_TO, period_end, period_start, split_range
from routing_admin.request_log.usage_sums import HOUR_RETENTION

NOW = datetime(2026, 11, 4, 14, 45, tzinfo=UTC)
"""This is three days after New York set its clocks back."""
AGO = st.integers(0, 20 * 24 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))
ZONES = st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"])


@given(zone=ZONES, ends=st.tuples(AGO, AGO | st.none()), is_picky=st.booleans())
def test_split_covers_the_time_range_exactly_once(
    zone: str, ends: tuple[datetime, datetime | None], is_picky: bool
) -> None:
    """Hours whose totals were already deleted are not used. The rest is read from log rows."""
    start, stop = (min(ends[0], ends[1]), max(ends[0], ends[1])) if ends[1] else ends
    with timezone.override(zone):
        parts = split_range(start, stop, NOW, (lambda _span, starts: starts[::2]) if is_picky else None)
        summed = [(at, period_end(span, at)) for span, starts in parts.starts.items() for at in starts]
        assert all(period_start(span, at) == at for span, starts in parts.starts.items() for at in starts)
        pieces = sorted([*summed, *parts.rest])
        assert [begin for begin, _end in pieces[1:]] == [end for _begin, end in pieces[:-1]]
        if pieces:
            assert pieces[0][0] == start
            assert pieces[-1][1] == stop if stop else pieces[-1][1] > NOW
        assert all(at > NOW - HOUR_RETENTION for at in parts.starts.get(UsageSum.HOUR, ()))
        if (stop or NOW) - start > HOURS_UP_TO and not is_picky and zone == "UTC":
            assert all(end - begin < timedelta(days=1) for begin, end in parts.rest)
