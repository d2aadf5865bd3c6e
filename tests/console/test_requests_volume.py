"""The chart above the request list counts exactly the requests that the search finds, from roll-ups or from rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.wire import Usage
from routing_admin.core.fallback.chain import OK, Attempt
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log import volume
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.search import filter_rows
from routing_admin.request_log.search_words import parse
from routing_admin.request_log.usage_rollups import usage_rollups
from routing_admin.request_log.volume import Outcome, count_volume, find_range
from tests.console.page import Control, Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
OUTCOMES = (OK, OK, OK, OK, OK, "http_503", "invalid_json", "client_cancelled")
"""Five of the eight requests are answered, one of them by a fallback.

One fails, one is rejected, and one is cancelled.
"""
EXPECTED_MIX = {Outcome.ANSWERED: 4, Outcome.FALLBACK: 1, Outcome.FAILED: 1, Outcome.REFUSED: 1, Outcome.CANCELLED: 1}
request_numbers: Iterator[int] = iter(range(100_000))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Fix the current time at 14:45 yesterday.

    On each of the last 20 days, there are eight requests at 09:10 and one at 13:45.
    """
    moment = timezone.now().astimezone(UTC).replace(hour=14, minute=45, second=0, microsecond=0) - DAY
    RequestLog.objects.all().delete()
    write(
        [
            entry
            for days in range(20)
            for entry in make_eight_entries(moment - days * DAY - timedelta(hours=5, minutes=35))
        ]
    )
    write([make_entry("bob", moment - days * DAY - HOUR) for days in range(20)])
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


def make_eight_entries(at: datetime, agent: str = "ann") -> list[Entry]:
    return [make_entry(agent, at, outcome, fell_back=number == 0) for number, outcome in enumerate(OUTCOMES)]


def make_entry(agent: str, at: datetime, outcome: str = OK, *, fell_back: bool = False) -> Entry:
    facts = RequestFacts(f"v{next(request_numbers):05}", at, "v1", agent=agent, task_type="planning")
    facts.usage, facts.outcome = Usage(10, 1), outcome
    before = (Attempt("echo", "first", "http_503", 503),) if fell_back else ()
    return build_entry(facts, (*before, Attempt("echo", "echo", outcome)))


def count_outcomes(typed: str, now: datetime, *, by_minute: bool = False) -> Counter[Outcome]:
    search = parse(typed, now)
    found = find_range(search, now)
    assert found is not None
    counted: Counter[Outcome] = Counter()
    for point in count_volume(search, *found, now, by_minute=by_minute).points.values():
        counted.update(point)
    return counted


def expected_counts(number: int, extra: int) -> Counter[Outcome]:
    whole = Counter({outcome: count * number for outcome, count in EXPECTED_MIX.items()})
    whole[Outcome.ANSWERED] += extra
    return whole


def test_chart_counts_all_requests_by_outcome(now: datetime) -> None:
    assert count_outcomes("", now) == expected_counts(20, 20)
    while usage_rollups().fold_next(now):
        pass
    assert count_outcomes("", now) == expected_counts(20, 20)
    assert count_outcomes("agent:ann", now) == expected_counts(20, 0)


@pytest.mark.parametrize("typed", ["surface:v1", "provider:echo", "agent:ann surface:v1", "model:echo"])
def test_searches_outside_the_roll_ups_are_counted_from_rows(now: datetime, typed: str) -> None:
    """Roll-ups contain neither the API surface nor the called provider, so rows are counted for these searches."""
    assert count_outcomes(typed, now) == expected_counts(20, 0 if "ann" in typed else 20)


def test_only_requests_within_the_searched_part_of_a_day_are_counted(now: datetime) -> None:
    cut = f"{now - 10 * DAY:%Y-%m-%d}T12:00"
    assert count_outcomes(f"since:{cut}", now) == expected_counts(10, 11)
    assert count_outcomes(f"until:{cut}", now) == expected_counts(10, 9)
    assert count_outcomes(f"agent:ann since:{cut} until:{now:%Y-%m-%d}T09:00", now) == expected_counts(9, 0)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("failed", {Outcome.FAILED}),
        ("fallback", {Outcome.FALLBACK}),
        ("ok", {Outcome.ANSWERED, Outcome.FALLBACK}),
        ("error", {Outcome.FAILED, Outcome.REFUSED, Outcome.CANCELLED}),
        ("503", {Outcome.FAILED}),
    ],
)
def test_status_search_counts_only_matching_outcomes(now: datetime, status: str, expected: set[Outcome]) -> None:
    search = parse(f"status:{status}", now)
    counted = count_outcomes(f"status:{status}", now)
    assert set(counted) <= expected
    assert counted.total() == filter_rows(search, now).count()


def list_bars(page: Page) -> list[Control]:
    return [item for item in page.items if item.shows("total ")]


def test_chart_bar_links_to_the_counted_requests(viewer: Client, now: datetime) -> None:
    typed, spans = "agent:ann", []
    for _step in range(3):
        bars = list_bars(Page(viewer.get("/volume/requests/", {"q": typed})))
        bar = next(bar for bar in reversed(bars) if bar.shows("total 8"))
        typed = parse_qs(urlsplit(bar.link_urls[0]).query)["q"][0]
        spans.append(next(control.text for control in bar.controls if control.tag == "b"))
        assert filter_rows(parse(typed, now), now).count() == 8
    today = f"{now:%Y-%m-%d}"
    assert spans == [today, f"{today} 09:00–10:00", f"{today} 09:10–09:15"]


def test_roll_ups_of_deleted_requests_are_not_counted(now: datetime) -> None:
    RequestLog.objects.filter(started_at__lt=now - 3 * DAY).delete()
    assert count_outcomes("", now) == expected_counts(3, 3)


def test_only_the_newest_days_of_a_large_log_are_counted(
    viewer: Client, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the log has too many rows, only those of the newest days are counted, and the chart says so."""
    monkeypatch.setattr(volume, "MAX_SCANNED", 30)
    assert count_outcomes("surface:v1", now) == expected_counts(3, 3)
    page = Page(viewer.get("/volume/requests/", {"q": "surface:v1"}))
    assert page.shows(f"Counted from {now - 2 * DAY:%Y-%m-%d} 00:00 on")


def test_request_list_loads_and_links_to_the_chart(viewer: Client, now: datetime) -> None:
    page, url = Page(viewer.get("/requests/", {"q": "agent:ann"})), "/volume/requests/?q=agent%3Aann"
    assert page.loading(url)
    assert url in page.link_urls


def test_chart_links_work_with_and_without_htmx(viewer: Client, now: datetime) -> None:
    url = "/volume/requests/?q=agent%3Aann"
    part = Page(viewer.get(url, headers={"HX-Request": "true"}))
    assert not part.is_document
    shown = [control for control in part.controls if "show=" in (control.attributes.get("hx-get") or "")]
    assert shown
    assert all(control.attributes["href"] == control.attributes["hx-get"] for control in shown)
    assert Page(viewer.get(url)).heading("Requests over time")


def test_chart_without_requests_shows_a_message(viewer: Client, now: datetime) -> None:
    assert Page(viewer.get("/volume/requests/", {"q": "agent:unknown"})).shows("No request matches")


def test_chart_of_a_new_log_covers_a_day(viewer: Client, now: datetime) -> None:
    """If the search has no time range, the chart shows 25 hours."""
    RequestLog.objects.filter(started_at__lt=now - HOUR).delete()
    assert len(list_bars(Page(viewer.get("/volume/requests/")))) == 25
    write([make_entry("ann", now - timedelta(minutes=4))])
    assert len(list_bars(Page(viewer.get("/volume/requests/", {"q": "since:10m"})))) == 2


PAGES_WITH_A_CHART = [
    ("/agents/text-agent/", "agent:text-agent"),
    ("/routes/design/", "task:design"),
    ("/providers/echo/", "provider:echo"),
    ("/services/echo-text/", "provider:echo model:echo-text"),
]


def log_call(age: timedelta) -> None:
    """Log a request by the text agent to the route `design`, which the model echo-text answered."""
    at, called = timezone.now() - age, {"provider": "echo", "model": "echo-text"}
    facts = {"surface": "v1", "outcome": "ok", "agent": "text-agent", "task_type": "design"}
    row = RequestLog.objects.create(id="seen", started_at=at, **facts, **called)
    AttemptLog.objects.create(request=row, position=0, at=at, outcome="ok", **called)


@pytest.mark.parametrize(("address", "term"), PAGES_WITH_A_CHART)
def test_pages_load_the_request_chart_before_the_forms(address: str, term: str, admin: Client) -> None:
    log_call(HOUR)
    page = Page(admin.get(address))
    chart = page.control("over-time")
    columns = next(
        control for control in page.controls if (control.attributes.get("class") or "").startswith("cols aside")
    )
    assert page.controls.index(chart) < page.controls.index(columns)
    (url,) = [control.attributes["hx-get"] for control in chart.controls if "hx-get" in control.attributes]
    assert parse_qs(urlsplit(url).query)["q"] == [f"{term} since:7d"]
    part = Page(admin.get(url, headers={"hx-target": "over-time", "hx-request": "true"}))
    assert not part.is_document
    searches = [parse_qs(urlsplit(url).query).get("q", [""])[0] for url in part.link_urls]
    assert sum(search.startswith(f"{term} since:") for search in searches) >= 3
    chosen = [control for control in part.controls if control.attributes.get("aria-current") == "true"]
    assert len(chosen) == 2  # One is the selected time range, the other the selected kind of value.


def test_collapsed_chart_is_one_line_with_totals_and_trend(admin: Client) -> None:
    log_call(HOUR)
    page = Page(admin.get("/routes/design/"))
    (summary,) = [
        control for control in page.controls if control.tag == "summary" and control.control("over-time-strip")
    ]
    assert summary.control("over-time") is None
    url = summary.control("over-time-strip").attributes["hx-get"]
    strip = Page(admin.get(url, headers={"hx-target": "over-time-strip", "hx-request": "true"}))
    assert strip.text == "1 request · 0 failed (0%) · 7 days"
    assert [control for control in strip.controls if control.tag == "polyline"]
    assert strip.link_urls == []  # The line itself is the button that shows the chart.


@pytest.mark.parametrize(("address", "term"), PAGES_WITH_A_CHART[:3])
def test_chart_of_a_rarely_called_entry_covers_a_month(address: str, term: str, admin: Client) -> None:
    """The chart for one entry covers a fixed month, so that the whole log need not be searched for a call.

    A page without requests reserves no space for the chart.
    """
    assert Page(admin.get(address)).shows("No requests in the last 30 days.")
    log_call(timedelta(days=20))
    loaded = [control.attributes.get("hx-get") or "" for control in Page(admin.get(address)).controls]
    assert any(f"?q={quote(term)}%20since%3A30d" in url for url in loaded)
    RequestLog.objects.update(started_at=timezone.now() - timedelta(days=31))
    AttemptLog.objects.update(at=timezone.now() - timedelta(days=31))
    page = Page(admin.get(address))
    assert page.control("over-time") is None
    assert page.shows("Last request:")


def test_day_with_too_many_requests_is_counted_from_the_newest_hours(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rows read for a chart is limited, but a chart is never empty."""
    monkeypatch.setattr(volume, "MAX_SCANNED", 1)
    search = parse("provider:echo since:10d", now)
    found = find_range(search, now)
    assert found is not None
    counted = count_volume(search, *found, now, by_minute=False)
    assert counted.since < found[1]


def test_chart_bar_at_the_search_limit_links_only_to_the_counted_requests(now: datetime, admin: Client) -> None:
    bars = list_bars(Page(admin.get("/volume/requests/", {"q": "since:5d until:2h"})))
    searches = [parse_qs(urlsplit(url).query)["q"][0] for bar in bars for url in bar.link_urls]
    untils = {search.partition("until:")[2] for search in searches}
    assert untils
    assert max(untils) <= f"{timezone.localtime(now - 2 * HOUR):%Y-%m-%dT%H:%M}"
