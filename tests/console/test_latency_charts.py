"""Charts of response times: percentiles computed from histograms in roll-ups equal those computed from rows."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from unittest.mock import ANY

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.console.requests.volume import draw_latencies
from routing_admin.models import RequestLog, UsageRollup
from routing_admin.request_log import latency_series, volume
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.health import quantile as exact_quantile
from routing_admin.request_log.insertion import write
from routing_admin.request_log.latencies import Latency, quantile
from routing_admin.request_log.search_words import parse
from routing_admin.request_log.usage_rollups import UsageRollups
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
NOW = datetime(2026, 11, 25, 14, 45, tzinfo=UTC)
HOURS = 80


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    return NOW


@pytest.fixture
def logged_requests(now: datetime) -> None:
    """Requests from three days that took between a millisecond and ten minutes. Most of them were answered."""
    draw = random.Random(5)
    entries = []
    for number in range(300):
        at = now - timedelta(hours=draw.uniform(0, HOURS))
        facts: dict[str, Any] = {"agent": draw.choice(["ann", "bob"]), "task_type": draw.choice(["", "plan"])}
        whole = 10 ** draw.uniform(0, 5.8)
        outcome = "ok" if draw.random() < 0.9 else "http_500"
        first = whole / 3 if draw.random() < 0.6 else None
        entries.append(
            build_entry(
                RequestFacts(
                    f"r{number}", at, "v1", outcome=outcome, duration_ms=whole, first_content_ms=first, **facts
                ),
                (),
            )
        )
    write(entries)


def fold_all(now: datetime) -> None:
    rollups = UsageRollups()
    while rollups.fold_next(now):
        pass


def percentiles(text: str, latency: Latency, now: datetime) -> list[tuple[float, ...]]:
    chart = draw_latencies(parse(text, now), latency, now)
    assert chart is not None
    return list(zip(*(series.shown or () for series in chart.series), strict=True))


@given(st.lists(st.integers(1, 10**7), min_size=1), st.sampled_from([0.5, 0.95]))
def test_histogram_percentile_error_is_at_most_five_percent(times: list[int], share: float) -> None:
    buckets = Counter(int(f"{str(ms)[:2]:0<{len(str(ms))}}") for ms in times)
    exact = exact_quantile(sorted(times), share)
    assert abs(quantile(buckets, share) - exact) <= max(0.5, exact * 0.05)


def test_percentiles_from_roll_ups_equal_percentiles_from_rows(logged_requests: None, now: datetime) -> None:
    searches = list(product(["", "agent:ann", "task:plan", "agent:bob since:1d", "status:answered"], Latency))
    before = {search: percentiles(*search, now) for search in searches}
    fold_all(now)
    assert UsageRollup.objects.exclude(latencies=None).exists()
    assert {search: percentiles(*search, now) for search in searches} == before


def test_complete_hours_and_days_are_read_from_roll_ups_only(
    logged_requests: None, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_all(now)
    read: list[tuple[datetime, datetime]] = []
    original = latency_series.read_rows

    def record_range(latency: Any, search: Any, times: Any, *others: Any) -> Any:
        read.append(times)
        return original(latency, search, times, *others)

    monkeypatch.setattr(latency_series, "read_rows", record_range)
    percentiles("since:2d", Latency.WHOLE, now)
    assert all(stop - start <= timedelta(hours=3) for start, stop in read)


def test_requests_in_roll_ups_do_not_count_toward_the_row_limit(
    logged_requests: None, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only requests that are read as rows count toward the limit, so a low limit does not change the chart."""
    fold_all(now)
    whole = draw_latencies(parse("since:79h", now), Latency.WHOLE, now)
    monkeypatch.setattr(volume, "MAX_SCANNED", 40)
    assert draw_latencies(parse("since:79h", now), Latency.WHOLE, now) == replace(whole, write=ANY)


def test_percentiles_include_only_answered_requests(logged_requests: None, now: datetime) -> None:
    rows = RequestLog.objects.filter(agent="ann", ending="answered", first_content_ms__isnull=False)
    exact = sorted(rows.values_list("first_content_ms", flat=True))
    chart = draw_latencies(parse("agent:ann", now), Latency.FIRST, now)
    assert chart is not None
    high, median = (series.total or 0 for series in chart.series)
    assert median * 1000 == pytest.approx(exact_quantile(exact, 0.5), rel=0.05)
    assert high * 1000 == pytest.approx(exact_quantile(exact, 0.95), rel=0.05)
    assert draw_latencies(parse("status:failed", now), Latency.FIRST, now) is None


def test_chart_can_show_response_times_and_be_saved_as_csv(
    logged_requests: None, now: datetime, viewer: Client
) -> None:
    page = Page(viewer.get("/volume/requests/", {"q": "agent:ann"}))
    link = page.link("First content")
    assert link is not None
    switched = Page(viewer.get(link.attributes["href"]))
    assert switched.link("95% within") is None
    assert "95% within" in switched.columns
    assert "Sum" not in [*switched.columns, *switched.rows]
    file = viewer.get(link.attributes["href"] + "&format=csv")
    head, *rows = csv.reader(io.StringIO(file.content.decode("utf-8-sig")))
    assert head == ["Time", "95% within", "Median"]
    assert [float(row[2]) <= float(row[1]) for row in rows] == [True] * len(rows)
    counts = csv.reader(io.StringIO(viewer.get("/volume/requests/?format=csv").content.decode("utf-8-sig")))
    assert sum(float(cell) for row in list(counts)[1:] for cell in row[1:]) == RequestLog.objects.count()
