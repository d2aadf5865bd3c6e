"""A limit's windows (minutes, days, months) follow each other without gaps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.limits.shares import Period, window_at

ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe")
moments = st.datetimes(datetime(2017, 1, 1), datetime(2035, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))
periods = st.sampled_from([Period.MINUTE, Period.DAY, Period.MONTH])


@given(moments, periods, st.sampled_from(ZONES).map(ZoneInfo))
def test_window_ends_where_the_next_begins(now, period, zone):
    window = window_at(period, now, zone)
    assert not window.is_over(now)
    assert window_at(period, window.ends_at - timedelta(microseconds=1), zone) == window
    following = window_at(period, window.ends_at, zone)
    assert following.name > window.name
    assert window.is_over(window.ends_at)


@pytest.mark.parametrize(
    ("zone", "day", "ends"),
    [
        ("UTC", "2026-11-22", "2026-11-23T00:00:00+00:00"),
        ("Asia/Shanghai", "2026-11-23", "2026-11-23T16:00:00+00:00"),
        ("America/New_York", "2026-11-22", "2026-11-23T05:00:00+00:00"),
    ],
)
def test_day_begins_in_the_time_zone_of_the_installation(zone, day, ends):
    """At 20:00 UTC, the next day has already begun in Shanghai."""
    window = window_at(Period.DAY, datetime(2026, 11, 22, 20, tzinfo=UTC), ZoneInfo(zone))
    assert (window.name, window.ends_at.isoformat()) == (day, ends)


def test_month_window_ends_at_the_start_of_the_next_month():
    ends = [
        window_at(Period.MONTH, datetime(2026, month, 15, tzinfo=UTC), UTC).ends_at.isoformat() for month in (2, 12)
    ]
    assert ends == ["2026-03-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00"]


def test_window_of_calls_in_flight_never_ends():
    window = window_at(Period.NOW, datetime(2026, 1, 1, tzinfo=UTC), UTC)
    assert window.ends_at is None
    assert not window.is_over(datetime(3000, 1, 1, tzinfo=UTC))
