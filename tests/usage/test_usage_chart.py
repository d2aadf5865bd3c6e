"""The usage page's chart: its series, its numbers, and the comparison with the previous period."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.exchange import ExchangeRate, ExchangeTable
from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.usage.charts import build_measure, choose_currency, list_currencies
from routing_admin.console.usage.periods import read_period
from routing_admin.core.fallback.chain import Attempt
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.search import find
from routing_admin.request_log.search_words import parse
from routing_admin.request_log.usage import Counts, list_times, sum_usage
from routing_admin.request_log.usage_rollups import usage_rollups
from routing_admin.request_log.usage_series import sum_series
from tests.console.page import Control, Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
DAY = timedelta(days=1)


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Set the current time to the most recent noon. A token costs a hundredth of a dollar with one model, and of a yuan
    with the other.
    """
    for name, currency in (("dollars", "USD"), ("yuan", "CNY")):
        row = Provider.objects.create(name=name, endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
        price = {"currency": currency, "input": 10_000, "output": 10_000}
        Service.objects.create(service_id=name, name=name, provider=row, model="m", price=price)
    snapshot.refresh()
    now = timezone.now()
    moment = now.astimezone(UTC).replace(hour=12, minute=30, second=0, microsecond=0)
    moment -= DAY if moment > now else timedelta()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


numbers: Iterator[int] = iter(range(100_000))


def entries(count: int, at: datetime, agent: str, provider: str = "dollars", outcome: str = "ok") -> list[Entry]:
    made = []
    for _ in range(count):
        facts = RequestFacts(f"{agent}-{next(numbers)}", at, "v1", agent=agent, task_type="planning")
        facts.usage, facts.outcome = Usage(70, 30), outcome
        made.append(build_entry(facts, (Attempt(provider, "m", outcome),)))
    return made


def read_legend(page: Page) -> list[tuple[str, str]]:
    """Return the name and total of each series in the legend."""
    return [
        (name.text, total.text)
        for colour, name, total in zip(page.controls, page.controls[1:], page.controls[2:], strict=False)
        if (colour.attributes.get("class") or "").startswith("swatch") and total.tag == "b"
    ]


def list_bars(page: Page) -> list[Control]:
    return [item for item in page.items if item.shows("total ")]


def test_chart_shows_the_six_largest_agents_and_sums_up_the_others(viewer: Client, noon: datetime) -> None:
    for number in range(8):
        write(entries(10 - number, noon, f"agent-{number}"))
    page = Page(viewer.get("/usage/", {"days": "7", "metric": "requests"}))
    assert read_legend(page) == [
        *((f"agent-{number}", f"{10 - number}") for number in range(6)),
        ("2 others", "7"),
    ]


def test_each_metric_can_be_chosen(viewer: Client, noon: datetime) -> None:
    write([*entries(3, noon, "ann"), *entries(1, noon, "bob", outcome="http_503")])
    expected = {"cost": "ann 3.00 USD", "tokens": "ann 300", "requests": "ann 3", "failures": "bob 1"}
    for metric, first in expected.items():
        page = Page(viewer.get("/usage/", {"days": "1", "metric": metric}))
        assert " ".join(read_legend(page)[0]) == first
    page = Page(viewer.get("/usage/", {"days": "1"}))
    assert page.shows("400")
    assert page.shows("280 input, 0 of them cached, and 120 output") or any(
        control.attributes.get("title") == "280 input, 0 of them cached, and 120 output" for control in page.controls
    )


def test_currencies_are_chosen_or_converted() -> None:
    total = Counts(costs={"USD": 2_000_000_000, "CNY": 5_000_000_000})
    rates = ExchangeTable((ExchangeRate("CNY", "USD", "0.2", "2026-11-01", "bank"),))
    assert list_currencies(total, ExchangeTable()) == {"CNY": "CNY", "USD": "USD"}
    assert choose_currency("", total, ExchangeTable()) == "CNY"
    assert choose_currency("USD", total, ExchangeTable()) == "USD"
    assert list_currencies(total, rates) == {"all": "all, in USD", "CNY": "CNY", "USD": "USD"}
    assert choose_currency("EUR", total, rates) == "all"
    converted = build_measure("cost", "all", rates)
    assert (converted.weigh(total), converted.write(3.0)) == (3.0, "3.00 USD")


def test_bar_links_to_a_search_for_its_requests(viewer: Client, noon: datetime) -> None:
    write([*entries(4, noon - timedelta(hours=3), "ann"), *entries(2, noon - timedelta(hours=2), "ann")])
    page = Page(viewer.get("/usage/", {"days": "1", "metric": "requests"}))
    bars = [bar for bar in list_bars(page) if not bar.shows("total 0")]
    counted = [len(find(parse(read_query(bar.link_urls[0]))).rows) for bar in bars]
    assert counted == [4, 2]
    assert all(bar.shows(f"total {count}") for bar, count in zip(bars, counted, strict=True))


def read_query(url: str) -> str:
    return parse_qs(urlsplit(url).query)["q"][0]


def test_change_compares_only_complete_days(viewer: Client, noon: datetime) -> None:
    """Today is incomplete, so today and the same day of the previous period do not count. 6 after 4 is +50%.

    If the log does not cover the previous period, there is no comparison.
    """
    write([*entries(6, noon - DAY, "ann"), *entries(50, noon, "ann")])
    write([*entries(3, noon - 8 * DAY, "ann"), *entries(70, noon - 7 * DAY, "ann")])
    assert Page(viewer.get("/usage/", {"days": "7", "metric": "requests"})).shows("on the period before") is None
    write(entries(1, noon - 13 * DAY, "ann"))
    page = Page(viewer.get("/usage/", {"days": "7", "metric": "requests"}))
    (change,) = [
        control for control in page.controls if (control.attributes.get("title") or "").startswith("6 on complete days")
    ]
    assert change.attributes["title"] == "6 on complete days, 4 on the same days before"
    assert change.text == "+50.0% on the period before"


@pytest.mark.parametrize("only", [{}, {"team": ""}])
def test_series_from_roll_ups_equal_series_from_sums(noon: datetime, only: dict[str, str]) -> None:
    for days in range(12):
        write([*entries(days + 1, noon - days * DAY, "ann"), *entries(2, noon - days * DAY, "bob", "yuan")])
    since = sum_usage(noon - 5 * DAY, "agent").since

    def read() -> Any:
        times = list_times(since, before=6 * DAY, is_filtered=bool(only))
        series = sum_series(times, since, 6 * DAY, "agent", ["ann", "bob"], **only)
        return {name: dict(points) for name, points in series.groups.items()}, dict(series.before)

    unfolded = read()
    while usage_rollups().fold_next(noon):
        pass
    assert read() == unfolded
    assert [counts.requests for _, counts in sorted(unfolded[0]["ann"].items())] == [6, 5, 4, 3, 2, 1]
    assert [counts.requests for _, counts in sorted(unfolded[1].items())] == [14, 13, 12, 11, 10, 9]


def test_revision_is_marked_in_the_chart_with_a_link(viewer: Client, noon: datetime) -> None:
    write(entries(1, noon, "ann"))
    page = Page(viewer.get("/usage/", {"days": "365"}))
    marks = [control for control in page.controls if (control.attributes.get("title") or "").startswith("Revision ")]
    assert marks
    assert all(mark.tag == "a" and re.fullmatch(r"/history/\d+/", mark.attributes["href"] or "") for mark in marks)


def test_arbitrary_date_range_can_be_chosen(viewer: Client, noon: datetime) -> None:
    for number in range(6):
        write(entries(number + 1, noon - number * DAY, f"agent-{number}"))
    days = {"from": f"{noon - 3 * DAY:%Y-%m-%d}", "to": f"{noon - 2 * DAY:%Y-%m-%d}"}
    page = Page(viewer.get("/usage/", {**days, "metric": "requests"}))
    assert read_legend(page) == [("agent-3", "4"), ("agent-2", "3")]
    bars = list_bars(page)
    assert len(bars) == 2
    assert len(find(parse(read_query(bars[0].link_urls[0]), noon)).rows) == 4
    (link,) = [url for url in page.link_urls if url.startswith("/csv/usage/") and url.endswith("chart=1")]
    lines = viewer.get(link).content.decode("utf-8-sig").split()
    assert [line.split(",")[1:] for line in lines] == [["agent-3", "agent-2"], ["4", "0"], ["0", "3"]]
    # The parameter `days` takes precedence over `from` and `to`.
    week = Page(viewer.get("/usage/", {**days, "days": "7", "metric": "requests"}))
    assert ("agent-0", "1") in read_legend(week)


@pytest.mark.parametrize(
    ("params", "length"),
    [
        ({"from": "2026-10-05", "to": "2026-10-01"}, 5),
        ({"from": "2026-10-01"}, 30),
        ({"to": "2026-10-30"}, 30),
        ({"from": "2026-13-99", "to": "soon"}, 30),
        ({"from": "0001-01-01", "to": "9999-12-31"}, None),
        ({"days": "9999999"}, 30),
    ],
)
def test_any_date_input_yields_a_valid_period(params: dict[str, str], length: int | None, noon: datetime) -> None:
    period = read_period(params)
    assert period.since < (period.until or noon)
    assert length is None or period.length == length * DAY
