"""What requests cost stands in their rows, and in the sums of their hour and day, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import override_settings

from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import RequestLog, UsageSum
from routing_admin.request_log.entries import Entry, RequestFacts, entry_of
from routing_admin.request_log.insertion import rows_of, write, write_missing
from routing_admin.request_log.spool import Spool
from routing_admin.request_log.usage_sums import day_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
NOON = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
COUNTED = Usage(1000, 100, cached_tokens=400)


@pytest.fixture
def priced(demo: None) -> None:
    """A provider whose model an administrator has priced in yuan, and one that a list prices in dollars."""
    own = Provider.objects.create(name="own", endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
    price = {"currency": "CNY", "input": 2, "output": 8, "cacheRead": 0.5}
    Service.objects.create(service_id="own", name="own", provider=own, model="m", price=price)
    Provider.objects.create(
        name="listed", endpoint="https://api.openai.com/v1", default_model="gpt-4o", key_source="none"
    )
    snapshot.refresh()


def entry(name: str, provider: str = "own", model: str = "m", usage: Usage = COUNTED, at: datetime = NOON) -> Entry:
    facts = RequestFacts(name, at, "v1", agent="ann", task_type="planning", usage=usage)
    return entry_of(facts, (Attempt("down", "m", "http_503", 503), Attempt(provider, model, "ok")))


def test_a_request_costs_what_the_administrator_says(priced: None):
    """600 at 2, 400 at 0.5 and 100 at 8 yuan a million; the cache saved 400 at 1.5."""
    write([entry("r")])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.saved_nanos, row.currency) == (2_200_000, 600_000, "CNY")


def test_else_what_a_list_says_of_that_host(priced: None):
    """GPT-4o at OpenAI's own address: 2.5, 1.25 from the cache, 10 out."""
    write([entry("r", "listed", "gpt-4o")])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.currency) == (3_000_000, "USD")


@pytest.mark.parametrize(
    ("provider", "model", "usage"), [("own", "other", COUNTED), ("own", "m", Usage()), ("nobody", "m", COUNTED)]
)
def test_what_nobody_prices_or_counts_is_unknown(priced: None, provider: str, model: str, usage: Usage):
    """Unknown, which is not nothing."""
    write([entry("r", provider, model, usage)])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.saved_nanos, row.currency) == (None, None, "")
    assert {each.unpriced for each in UsageSum.objects.all()} == {int(usage.prompt_tokens is not None)}


def test_the_embedded_provider_costs_nothing(demo: None):
    """It answers in this process; that is known, so none of its requests is without a price."""
    write([entry("r", "echo", "echo-text")])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.currency) == (0, "XXX")
    assert [each.unpriced for each in UsageSum.objects.all()] == [0, 0]


def test_an_administrators_price_of_the_embedded_provider_counts(demo: None):
    """Who wants to see budgets at work can give it one."""
    price = {"currency": "USD", "input": 1, "output": 1}
    Service.objects.filter(provider__name="echo", model="echo-text").update(price=price)
    snapshot.refresh()
    write([entry("r", "echo", "echo-text")])
    assert RequestLog.objects.get(pk="r").currency == "USD"


def test_sums_grow_with_every_batch(priced: None):
    """Per hour and per day, each currency for itself."""
    write([entry("a"), entry("b"), entry("c", "listed", "gpt-4o")])
    write([entry("d", at=NOON + timedelta(hours=1))])
    hours = UsageSum.objects.filter(span=UsageSum.HOUR, currency="CNY").order_by("start")
    assert [(each.requests, each.cost_nanos) for each in hours] == [(2, 4_400_000), (1, 2_200_000)]
    day = UsageSum.objects.get(span=UsageSum.DAY, currency="CNY")
    assert (day.requests, day.prompt_tokens, day.completion_tokens, day.cached_tokens) == (3, 3000, 300, 1200)
    assert (day.cost_nanos, day.saved_nanos, day.fallbacks, day.fallback_nanos) == (6_600_000, 1_800_000, 3, 6_600_000)
    assert UsageSum.objects.get(span=UsageSum.DAY, currency="USD").cost_nanos == 3_000_000


def test_what_is_written_twice_is_counted_once(priced: None):
    """Entries that waited on disk may be there already."""
    rows = rows_of([entry("a"), entry("b")])
    write_missing(rows)
    write_missing(rows)
    assert UsageSum.objects.get(span=UsageSum.DAY).requests == 2


def test_rows_that_an_earlier_version_left_on_disk_are_taken(priced: None, tmp_path: Path):
    """They say nothing of costs."""
    spool = Spool(tmp_path / "spool")
    new = {"cost_nanos", "saved_nanos", "currency"}
    spool.append([({k: v for k, v in row.items() if k not in new}, tries) for row, tries in rows_of([entry("a")])])
    spool.close()
    Spool(tmp_path / "spool").drain(write_missing)
    assert RequestLog.objects.get(pk="a").cost_nanos is None


@override_settings(TIME_ZONE="Asia/Shanghai")
def test_a_day_is_the_installations():
    """It begins at midnight where the administrators are."""
    assert day_of(datetime(2026, 11, 20, 17, tzinfo=UTC)) == datetime(2026, 11, 20, 16, tzinfo=UTC)
