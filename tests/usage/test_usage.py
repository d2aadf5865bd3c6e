"""Usage by agent, route, provider, model and day: on the usage page, as CSV and in the agents' API."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.settings.pruning import prune_usage
from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import UsageSum
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.usage import sum_usage
from tests.cast import AgentProgram
from tests.console.page import Page
from tests.console.visits import count_queries

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
YUAN = {"currency": "CNY", "input": 2, "output": 8, "cacheRead": 0.5}
DOLLARS = {"currency": "USD", "input": 3, "output": 15}
MONTH = 28


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Set the current time to the most recent noon, far from midnight.

    There is a model with a price in yuan, one with a price in dollars, and one without a price.
    """
    for name, price in (("yuan", YUAN), ("dollars", DOLLARS), ("unpriced", {})):
        row = Provider.objects.create(name=name, endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
        Service.objects.create(service_id=name, name=name, provider=row, model="m", price=price)
    snapshot.refresh()
    now = timezone.localtime()
    moment = now.replace(hour=12, minute=0, second=0, microsecond=0)
    # If noon is still to come, a login session that begins now would already have expired by then.
    if moment > now:
        moment -= timedelta(days=1)
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


def entry(name: str, at: datetime, provider: str = "yuan", **fields: Any) -> Entry:
    usage = fields.pop("usage", Usage(1000, 100, cached_tokens=400))
    facts = RequestFacts(name, at, "v1", agent=fields.pop("agent", "ann"), task_type=fields.pop("route", "planning"))
    facts.usage = usage
    before = (Attempt("down", "m", "http_503", 503),) if fields.pop("fell_back", False) else ()
    return build_entry(facts, (*before, Attempt(provider, "m", "ok")))


def test_cost_of_a_scripted_month_equals_a_manual_sum(noon: datetime):
    days = [noon - timedelta(days=days_ago) for days_ago in range(MONTH)]
    for number, day in enumerate(days):
        write(
            [
                *(entry(f"y{number}-{hour}", day, fell_back=hour == 2) for hour in range(3)),
                entry(f"d{number}", day, "dollars", agent="bob", usage=Usage(2000, 300)),
                entry(f"u{number}", day, "unpriced"),
            ]
        )
    report = sum_usage(noon - timedelta(days=MONTH - 1), "agent")
    yuan = Decimal("0.0022") * 3 * MONTH  # 600 tokens at 2, 400 at 0.5 and 100 at 8 per million
    dollars = Decimal("0.0105") * MONTH  # 2000 tokens at 3 and 300 at 15 per million
    assert report.total.costs == {"CNY": yuan * 10**9, "USD": dollars * 10**9}
    assert report.total.savings == {"CNY": Decimal("0.0006") * 3 * MONTH * 10**9, "USD": 0}
    assert report.total.fallback_costs == {"CNY": 0, "USD": 0}
    assert (report.total.requests, report.total.unpriced, report.total.fallbacks) == (5 * MONTH, MONTH, MONTH)
    agents = dict(report.groups)
    assert (agents["ann"].costs, agents["bob"].costs) == ({"CNY": yuan * 10**9}, {"USD": dollars * 10**9})
    by_day = sum_usage(noon - timedelta(days=MONTH - 1), "day").groups
    assert [name.date() for name, _ in by_day] == [day.date() for day in days]
    assert {counts.costs["CNY"] for _, counts in by_day} == {6_600_000}


@pytest.mark.parametrize(("group", "names"), [("route", ["planning", "design"]), ("provider", ["yuan", "dollars"])])
def test_groups_are_ordered_by_cost(noon: datetime, group: str, names: list[str]):
    """The group with the highest cost is first, in the currency with the largest sum. Currencies are not added up."""
    write([entry(f"a{number}", noon) for number in range(9)] + [entry("b", noon, "dollars", route="design")])
    assert [name for name, _ in sum_usage(noon - timedelta(hours=3), group).groups] == names


def test_short_period_is_read_from_hourly_sums(noon: datetime):
    """A daily sum would also include the hours before the period."""
    write([entry("now", noon), entry("before", noon - timedelta(hours=5))])
    assert sum_usage(noon - timedelta(hours=3), "agent").total.requests == 1
    assert len(sum_usage(noon - timedelta(hours=6), "agent").series) == 2


@pytest.mark.parametrize("by", ["agent", "route", "provider", "model", "day"])
def test_usage_page_shows_costs_and_savings_in_every_grouping(viewer: Client, noon: datetime, by: str):
    write([entry("a", noon, fell_back=True), entry("b", noon, "dollars"), entry("c", noon, "unpriced")])
    page = Page(viewer.get("/usage/", {"by": by, "days": "7"}))
    for text in ("0.0022 CNY", "0.0045 USD", "1 request without a known price is missing from the cost.", "0.0006 CNY"):
        assert page.shows(text)
    assert by in [
        control.value for control in page.controls if control.tag == "option" and "selected" in control.attributes
    ]


def costs_in(page: Page) -> list[str]:
    return [control.text for control in page.controls if control.attributes.get("class") == "nowrap"]


def test_free_model_does_not_count_as_unpriced(viewer: Client, noon: datetime):
    write([entry("a", noon, "echo", usage=Usage(10, 10))])
    page = Page(viewer.get("/usage/", {"by": "provider"}))
    assert not page.shows("without a known price")
    assert "0" in costs_in(page)
    write([entry("b", noon, agent="ann")])
    costs = costs_in(Page(viewer.get("/usage/", {"by": "agent"})))
    assert "0.0022 CNY" in costs
    assert "0" not in costs


def test_usage_page_reads_only_the_sums(viewer: Client, noon: datetime):
    write([entry("a", noon)])
    assert count_queries(viewer, "/usage/", using="logs") <= 6


def test_usage_sums_are_deleted_after_their_retention(noon: datetime):
    """Hourly totals are kept for a week, and daily totals for a year and a month."""
    write([entry("a", noon), entry("b", noon - timedelta(days=8)), entry("c", noon - timedelta(days=400))])
    prune_usage(noon)
    assert [usage_sum.span for usage_sum in UsageSum.objects.order_by("start")] == ["d", "d", "h"]


def test_usage_page_states_that_there_are_no_requests(viewer: Client):
    page = Page(viewer.get("/usage/", {"by": "weather", "days": "many"}))
    assert page.shows("No requests in this period.")


def test_usage_csv_has_exact_costs_and_escapes_formulas(viewer: Client, noon: datetime):
    """A spreadsheet would execute a name that begins like a formula."""
    write([entry("a", noon, agent="=cmd()"), entry("b", noon, "dollars", agent="=cmd()")])
    answer = viewer.get("/csv/usage/", {"by": "agent", "days": "7"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="usage-by-agent-7-days.csv"' in answer["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [(row["agent"], row["currency"], row["cost"]) for row in rows] == [
        ("'=cmd()", "CNY", "0.0022"),
        ("'=cmd()", "USD", "0.0045"),
    ]
    assert [row["requests"] for row in rows] == ["2", ""]  # Only the first row of a group counts its requests.


def test_agent_usage_rows_have_costs_by_currency_and_respect_until(text_agent: AgentProgram, noon: datetime):
    calls = [
        entry("a", noon - timedelta(hours=2), agent="text-agent", fell_back=True),
        entry("b", noon - timedelta(hours=2), "dollars", agent="text-agent"),
        entry("c", noon - timedelta(hours=2), "unpriced", agent="text-agent"),
        entry("late", noon, agent="text-agent"),
    ]
    write(calls)
    stop = (noon - timedelta(hours=1)).isoformat().replace("+", "%2B")
    since = (noon - timedelta(hours=3)).isoformat().replace("+", "%2B")
    answer = text_agent.get(f"/usage?groupBy=agent&since={since}&until={stop}").json()
    (row,) = answer["rows"]
    assert (row["key"], row["requests"], row["attempts"], row["cachedTokens"]) == ("text-agent", 3, 4, 1200)
    assert (row["cost"], row["unknownCost"], row["unpriced"]) == ({"CNY": "0.0022", "USD": "0.0045"}, 1, 1)
    assert answer["until"] == (noon - timedelta(hours=1)).isoformat()
    assert answer["groups"][0]["name"] == row["key"]


def test_agent_sees_only_its_own_usage(text_agent: AgentProgram, noon: datetime):
    write([entry("a", noon, agent="text-agent"), entry("b", noon, agent="ann")])
    answer = text_agent.get("/usage?groupBy=provider&since=2020-01-01").json()
    assert [(group["name"], group["requests"]) for group in answer["groups"]] == [("yuan", 1)]
    assert answer["total"]["costs"] == [
        {"amount": "0.0022", "saved": "0.0006", "failedAttempts": "0", "currency": "CNY"}
    ]


@pytest.mark.parametrize(
    "query",
    [
        "groupBy=weather",
        "since=2026-11-02&until=2026-11-01",
        "until=soon",
        "since=soon",
        "since=2999-01-01",
        "since=2026-13-45",
    ],
)
def test_invalid_usage_query_is_rejected_with_a_message(text_agent: AgentProgram, query: str):
    answer = text_agent.get(f"/usage?{query}")
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(("groupBy must be", "since is a day", "until is a day", "until must be"))
