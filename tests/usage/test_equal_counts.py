"""Every count that is based on the request log is the same on all pages and in all files, APIs and metrics."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from pydantic.alias_generators import to_camel

from capabilities.core.wire import Fault, Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.routes.queries import map_traffic
from routing_admin.core.fallback.chain import OK, Attempt, SkipReason, Try
from routing_admin.core.fallback.endings import FAILURES, RequestEnding, request_ending
from routing_admin.models import RequestLog, UsageSum
from routing_admin.platform.server.metrics import request_metrics
from routing_admin.request_log import health
from routing_admin.request_log.counting import count_entries
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.search import find
from routing_admin.request_log.search_words import parse
from routing_admin.request_log.totals import sum_matches
from tests.cast import AgentProgram
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]

OUTCOMES = {
    "ok": 9,
    "all_providers_failed": 1,
    "http_503": 1,
    "overloaded": 1,
    "internal_error": 1,
    "invalid_json": 2,
    "model_not_found": 1,
    "rate_limit_exceeded": 1,
    "client_cancelled": 2,
}
REQUESTS, FAILED, REFUSED, CANCELLED, ATTEMPTS = 19, 4, 4, 2, 20
"""Totals over `OUTCOMES`. One answer is from a fallback, so there is one more attempt than requests."""
NAMES = ("failed", "refused", "cancelled")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Set the current time to 14:45 yesterday."""
    moment = timezone.localtime().replace(hour=14, minute=45, second=0, microsecond=0) - timedelta(days=1)
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


def entry(name: str, at: datetime, outcome: str, *, fell_back: bool = False) -> Entry:
    facts = RequestFacts(name, at, "v1", agent="text-agent", task_type="planning")
    facts.outcome, facts.usage = outcome, Usage(10, 1)
    before = (Attempt("down", "m", "http_503", 503),) if fell_back else ()
    return build_entry(facts, (*before, Attempt("echo", "echo-text", outcome)))


def log_requests(now: datetime) -> list[Entry]:
    """Log requests with every kind of ending, just inside and just outside the time window."""
    start = now.replace(minute=0) - timedelta(hours=24)
    outcomes = [outcome for outcome, count in OUTCOMES.items() for _ in range(count)]
    hours = [start, now - timedelta(hours=24), now - timedelta(minutes=1), *[now - timedelta(hours=3)] * 99]
    entries = [
        entry(f"r{number}", hours[number], outcome, fell_back=number == 0) for number, outcome in enumerate(outcomes)
    ]
    write([*entries, entry("outside", start - timedelta(seconds=1), "http_503")])
    return entries


def count_found(q: str, now: datetime) -> int:
    return len(find(parse(q, now), now=now).rows)


def linked_searches(page: Page) -> dict[str, str]:
    """Map the text of each link to the request log to the search that the link opens."""
    urls = {control.text: control.attributes.get("href") or "" for control in page.controls if control.tag == "a"}
    return {
        text: parse_qs(urlsplit(url).query)["q"][0] for text, url in urls.items() if url.startswith("/requests/?q=")
    }


def test_count_of_each_ending_is_the_same_on_every_page_api_and_metric(
    admin: Client, text_agent: AgentProgram, now: datetime
) -> None:
    before = {name: read_metric(name) for name in RequestEnding}
    count_entries(log_requests(now))
    today, _yesterday = health.two_days(now)
    assert (today.total, sum(today.failed), sum(today.fell_back)) == (REQUESTS, FAILED, 1)
    traffic = map_traffic(["planning"], now)["planning"]
    assert (traffic.requests, traffic.failed, traffic.fell_back) == (REQUESTS, FAILED, 1)
    for window in ("since:24h", "since:1d"):
        counts = [count_found(f"status:{name} {window}", now) for name in ("ok", *NAMES)]
        assert counts == [REQUESTS - FAILED - REFUSED - CANCELLED, FAILED, REFUSED, CANCELLED]
    for window in ("since:24h", "since:1d agent:text-agent", "since:24h task:planning", "since:24h model:echo-text"):
        totals = admin.get("/requests/", {"q": window}).context["totals"]
        assert totals.count == f"{REQUESTS} requests"
        assert [part.text for part in totals.parts] == [
            *(f"{FAILED} failed (21.1%)", "1 answered by a fallback", f"{REFUSED} refused", f"{CANCELLED} cancelled")
        ]
    assert Page(admin.get("/requests/", {"q": "status:failed since:24h"})).shows(f"{FAILED} requests")
    sums = next(iter(csv.DictReader(io.StringIO(read_csv(admin)))))
    assert [sums[name] for name in ("requests", "failures", "refused", "cancelled", "fallbacks", "attempts")] == [
        str(number) for number in (REQUESTS, FAILED, REFUSED, CANCELLED, 1, ATTEMPTS)
    ]
    since = (now - timedelta(hours=24)).isoformat().replace("+", "%2B")
    (row,) = text_agent.get(f"/usage?groupBy=route&since={since}").json()["rows"]
    assert [row[name] for name in ("requests", "failures", "refused", "cancelled", "fallbacks", "attempts")] == [
        *(REQUESTS, FAILED, REFUSED, CANCELLED, 1, ATTEMPTS)
    ]
    counted = {name: read_metric(name) - before[name] for name in RequestEnding}
    assert counted == dict(zip(RequestEnding, (9, FAILED, REFUSED, CANCELLED), strict=True))


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("fell_back", [False, True])
def test_count_of_each_outcome_is_the_same_on_every_page_api_and_metric(
    admin: Client, text_agent: AgentProgram, now: datetime, fell_back: bool, is_streamed: bool
) -> None:
    host = Provider.objects.create(name="host", endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
    Service.objects.create(service_id="host", name="host", provider=host, model="m", price=PRICE)
    snapshot.refresh()
    outcomes = sorted({*OUTCOMES, *Fault, *SkipReason, *FAILURES})
    before = metrics_now()
    log = [priced(outcome, now, fell_back=fell_back, is_streamed=is_streamed) for outcome in outcomes]
    write(log)
    count_entries(log)
    counted = {name: number - before.get(name, 0) for name, number in metrics_now().items()}
    statuses = {"answered": "ok", **{name: name for name in NAMES}}
    listed = {
        name: len(find(parse(f"status:{status}", now), now=now, size=999).rows) for name, status in statuses.items()
    }
    assert listed == {name: counted[name] for name in statuses}
    assert sum(listed.values()) == len(outcomes)
    today, _yesterday = health.two_days(now)
    traffic = map_traffic(["planning"], now)["planning"]
    fallbacks = len(find(parse("status:fallback", now), now=now, size=999).rows)
    assert (traffic.failed, traffic.fell_back) == (listed["failed"], fallbacks)
    assert (sum(today.failed), sum(today.fell_back)) == (listed["failed"], fallbacks)
    sums = next(iter(csv.DictReader(io.StringIO(read_csv(admin)))))
    (row,) = text_agent.get("/usage?groupBy=route").json()["rows"]
    expected = {
        "requests": len(outcomes),
        "failures": listed["failed"],
        "refused": listed["refused"],
        "cancelled": listed["cancelled"],
        "fallbacks": fallbacks,
        "attempts": counted["attempts"],
        "prompt_tokens": counted["input"],
        "completion_tokens": counted["output"],
    }
    assert {name: int(sums[name]) for name in expected} == expected
    assert {name: row[to_camel(name)] for name in expected} == expected
    for window in ("since:24h", "since:24h provider:host"):
        totals = sum_matches(parse(window, now), now)
        assert {name: getattr(totals.counts, name) for name in expected} == expected
        assert Decimal(totals.counts.costs["CNY"]).scaleb(-9) == Decimal(sums["cost"])
    assert Decimal(sums["cost"]) == Decimal(row["cost"]["CNY"]) == round(Decimal(counted["cost"]), 9)


PRICE = {"currency": "CNY", "input": 2, "output": 8}


def priced(outcome: str, at: datetime, *, fell_back: bool, is_streamed: bool) -> Entry:
    """Return a request with token counts for its answer and for a failed call that was billed."""
    facts = RequestFacts(f"o-{outcome}", at, "v1", agent="text-agent", task_type="planning", stream=is_streamed)
    facts.outcome = outcome
    facts.first_content_ms = 30.0 if is_streamed else None
    has_left = outcome == "client_cancelled"
    if outcome == OK or (is_streamed and not has_left):
        facts.usage = Usage(1000, 100)
    billed = Try(0.0, 1.0, "empty_content", 200, usage=Usage(10, 1))
    before = (Attempt("host", "m", "empty_content", 200, tries=(billed,)),) if fell_back else ()
    return build_entry(facts, (*before, Attempt("host", "m", OK if is_streamed and has_left else outcome)))


def metrics_now() -> dict[str, float]:
    families = {family.name.removeprefix("routing_admin_"): family.values for family in request_metrics().families()}
    totals = dict.fromkeys((*RequestEnding, "attempts", "input", "output", "cost"), 0.0)
    for name in ("requests", "attempts", "tokens", "cost"):
        for labels, value in families[name].items():
            totals[labels[-1] if name in ("requests", "tokens") else name] += value
    return totals


def read_csv(admin: Client) -> str:
    return str(admin.get("/csv/usage/", {"by": "route", "days": "1"}).content.decode("utf-8-sig"))


def read_metric(ending: str) -> float:
    family = next(metric for metric in request_metrics().families() if metric.name == "routing_admin_requests")
    return sum(value for labels, value in family.values.items() if labels[-1] == ending)


@pytest.mark.parametrize(
    ("address", "query", "numbers"),
    [
        ("/", {}, {f"{FAILED} requests": FAILED, "1 request": 1}),
        (
            *("/usage/", {"days": "1", "by": "route"}),
            {f"{FAILED} failed": FAILED, f"{REFUSED} refused": REFUSED, f"{CANCELLED} cancelled": CANCELLED},
        ),
        ("/usage/", {"days": "1", "by": "agent"}, {str(REQUESTS): REQUESTS, str(FAILED): FAILED}),
        ("/usage/", {"days": "7", "by": "day"}, {str(FAILED + 1): FAILED + 1, str(REQUESTS + 1): REQUESTS + 1}),
        ("/routes/", {}, {"21% failed": FAILED, "5% by a fallback": 1, f"{REQUESTS} requests": REQUESTS}),
    ],
)
def test_number_on_a_page_links_to_a_search_with_the_same_count(
    admin: Client, now: datetime, address: str, query: dict[str, str], numbers: dict[str, int]
) -> None:
    log_requests(now)
    if query.get("by") == "day":  # All rows must lie within one day.
        RequestLog.objects.all().delete()
        UsageSum.objects.all().delete()
        write(
            [
                entry(f"d{minutes}", now - timedelta(minutes=minutes), outcome)
                for minutes, outcome in enumerate([*list_outcomes(), "http_503"])
            ]
        )
    links = linked_searches(Page(admin.get(address, query)))
    assert {link: count_found(links[link], now) for link in numbers} == numbers


def list_outcomes() -> list[Any]:
    return [outcome for outcome, count in OUTCOMES.items() for _ in range(count)]


def test_row_written_by_the_orm_has_the_ending_of_its_outcome() -> None:
    for outcome in OUTCOMES:
        RequestLog.objects.create(id=outcome, started_at=timezone.now(), surface="v1", outcome=outcome)
    assert dict(RequestLog.objects.values_list("outcome", "ending")) == {
        name: request_ending(name) for name in OUTCOMES
    }
