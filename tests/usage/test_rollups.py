"""Usage reports give exactly the same numbers whether they read roll-ups or the totals that roll-ups are made from.

A roll-up is a set of rows for an hour or a day that has ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from routing_admin.console.settings.pruning import prune_usage
from routing_admin.models import UsageRollup, UsageSum
from routing_admin.platform.databases.router import LOGS
from routing_admin.request_log import usage_rollups
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.time_ranges import hour_start
from routing_admin.request_log.usage import GROUPS, UsageReport, sum_usage
from routing_admin.request_log.usage_rollups import UsageRollups, fold
from routing_admin.request_log.usage_sums import COUNTS, day_start

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
DAYS = 4
HOURS = 12
"""Usage is created only for every n-th hour, where n is this number. Fewer hours need fewer roll-ups."""


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    moment = timezone.localtime().replace(hour=15, minute=30, second=0, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


def fill(now: datetime, rows: int = 200, seed: int = 7) -> None:
    """Create daily and hourly totals: with values in all columns, with the same names in several columns, in several
    currencies.
    """
    draw = random.Random(seed)
    names = ["", "a", "b", "中", "(other)", "x" * 60]
    sums = {}
    for _ in range(rows):
        span = draw.choice([UsageSum.HOUR, UsageSum.DAY])
        started_at = now - timedelta(hours=draw.randrange(0, DAYS * 24, HOURS))
        key = (
            hour_start(started_at) if span == UsageSum.HOUR else day_start(started_at),
            *(draw.choice(names) for _ in range(7)),
        )
        currency = draw.choice(["", "CNY", "USD"])
        sums[span, key, currency] = UsageSum(
            span=span,
            currency=currency,
            **dict(zip(("start", *usage_rollups.DIMENSIONS), key, strict=True)),
            **{name: draw.randrange(10**12) for name in COUNTS},
        )
    UsageSum.objects.bulk_create(sums.values())


def reports(now: datetime, **only: Any) -> list[UsageReport]:
    """Return reports with every grouping, for a short and a long period that end now and one that ended earlier."""
    times: list[tuple[timedelta, datetime | None]] = [
        (timedelta(days=1), None),
        (timedelta(days=DAYS), None),
        (timedelta(days=DAYS), now - timedelta(days=2)),
    ]
    return [sum_usage(now - length, group, until=until, **only) for group in GROUPS for length, until in times]


def fold_all(now: datetime) -> int:
    rollups, count = UsageRollups(), 0
    while rollups.fold_next(now):
        count += 1
    return count


def entry(name: str, at: datetime) -> Entry:
    return build_entry(RequestFacts(name, at, "v1", agent="a", task_type="b"), ())


def test_reports_from_roll_ups_equal_reports_from_sums_for_every_group_and_period(now: datetime) -> None:
    fill(now)
    before = reports(now), reports(now, agent="a"), reports(now, team="中")
    assert fold_all(now) > DAYS
    assert (reports(now), reports(now, agent="a"), reports(now, team="中")) == before
    start = day_start(now - timedelta(days=DAYS))
    rows = UsageSum.objects.filter(span=UsageSum.DAY, start__gte=start)
    total = sum_usage(now - timedelta(days=DAYS), "model").total
    assert total.requests == sum(row.requests for row in rows)
    assert total.costs == {name: sum(row.cost_nanos for row in rows if row.currency == name) for name in total.costs}


def test_ended_days_are_read_only_from_roll_ups(now: datetime) -> None:
    """However many totals there are, a monthly report reads only roll-ups and the current hour's and day's totals."""
    fill(now)
    fold_all(now)
    marks = UsageRollup.objects.filter(dimension="", span=UsageSum.DAY)
    assert set(marks.values_list("start", flat=True)) == {
        start for start in UsageSum.objects.filter(span="d").values_list("start", flat=True) if start != day_start(now)
    }
    before = sum_usage(now - timedelta(days=DAYS), "agent")
    UsageRollup.objects.filter(span="d").exclude(currency="").update(requests=0)
    after = sum_usage(now - timedelta(days=DAYS), "agent").total
    assert after.requests < before.total.requests
    assert fold_all(now) == 0


def test_late_request_is_counted_at_once_and_in_the_next_roll_up(now: datetime) -> None:
    fill(now)
    fold_all(now)
    late = now - timedelta(days=2)
    before = sum_usage(now - timedelta(days=DAYS), "agent").total.requests
    write([entry("late", late)])
    assert sum_usage(now - timedelta(days=DAYS), "agent").total.requests == before + 1
    unfolded = reports(now)
    assert fold_all(now) == 2
    assert reports(now) == unfolded


def test_current_request_is_written_without_a_query_for_roll_ups(now: datetime) -> None:
    with CaptureQueriesContext(connections[LOGS]) as queries:
        write([entry("now", now)])
    assert not [query for query in queries if "usagerollup" in query["sql"]]


@pytest.mark.parametrize("between", ["late", "other"])
def test_concurrent_write_leaves_no_incomplete_roll_up(
    now: datetime, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    """While a roll-up is computed, another process may create the same one, or a late request may change its totals."""
    fill(now)
    day = day_start(now - timedelta(days=2))
    original: Callable[..., Any] = usage_rollups.sum_up
    happened: list[str] = []

    def overtaken(span: str, start: datetime, dimension: str) -> Any:
        parts = list(original(span, start, dimension))
        if not happened:
            happened.append(between)
            write([entry("late", start)])
            if between == "other":
                fold(span, start)
        return parts

    monkeypatch.setattr(usage_rollups, "sum_up", overtaken)
    fold(UsageSum.DAY, day)
    complete = UsageRollup.objects.filter(span="d", start=day, dimension="", value="").count()
    assert complete == (1 if between == "other" else 0)
    with_sums = sum(UsageSum.objects.filter(span="d", start=day).values_list("requests", flat=True))
    fold_all(now)
    rolled = UsageRollup.objects.filter(span="d", start=day, dimension="model")
    assert sum(rolled.values_list("requests", flat=True)) == with_sums


def test_roll_ups_are_deleted_together_with_their_sums(now: datetime) -> None:
    fill(now)
    fold_all(now)
    prune_usage(now + timedelta(days=393))
    assert not UsageRollup.objects.filter(span="h").exists()
    starts = set(UsageSum.objects.values_list("start", flat=True))
    assert set(UsageRollup.objects.values_list("start", flat=True)) <= starts
    remaining = reports(now)
    UsageRollup.objects.all().delete()
    assert reports(now) == remaining
