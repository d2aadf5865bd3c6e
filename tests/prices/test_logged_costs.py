"""A request's cost is stored in its log row, and counted once in the hourly and once in the daily usage totals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import override_settings

from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import Attempt, Try
from routing_admin.models import AttemptLog, RequestLog, UsageSum
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import build_rows, write, write_missing
from routing_admin.request_log.spool import Spool
from routing_admin.request_log.usage_sums import day_start

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
NOON = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
COUNTED = Usage(1000, 100, cached_tokens=400)


@pytest.fixture
def priced(demo: None) -> None:
    """Create a model that an administrator priced in yuan, and a model that a price list prices in dollars."""
    own = Provider.objects.create(name="own", endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
    price = {"currency": "CNY", "input": 2, "output": 8, "cacheRead": 0.5}
    Service.objects.create(service_id="own", name="own", provider=own, model="m", price=price)
    Provider.objects.create(
        name="listed", endpoint="https://api.openai.com/v1", default_model="gpt-4o", key_source="none"
    )
    snapshot.refresh()


def entry(name: str, provider: str = "own", model: str = "m", usage: Usage = COUNTED, at: datetime = NOON) -> Entry:
    facts = RequestFacts(name, at, "v1", agent="ann", task_type="planning", usage=usage)
    return build_entry(facts, (Attempt("down", "m", "http_503", 503), Attempt(provider, model, "ok")))


def test_request_cost_uses_the_price_from_the_administrator(priced: None):
    """The administrator's prices apply: 600 input tokens at 2, 400 cached ones at 0.5 and 100 output tokens at 8 yuan
    per million.
    """
    write([entry("r")])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.saved_nanos, row.currency) == (2_200_000, 600_000, "CNY")


def test_request_cost_uses_the_list_price_without_an_administrator_price(priced: None):
    """Per million tokens, the price list states 2.5 for input, 1.25 for cached input and 10 for output."""
    write([entry("r", "listed", "gpt-4o")])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.currency) == (3_000_000, "USD")


@pytest.mark.parametrize(
    ("endpoint", "model", "nanos"),
    [
        ("https://api.mistral.ai/v1", "mistral-large-latest", 470_000),
        ("https://api.mistral.ai/v1", "magistral-medium-latest", 2_500_000),
        ("https://api.mistral.ai/v1", "mistral-medium-3-5", 1_710_000),
    ],
    ids=["two against one", "the first", "agreed"],
)
def test_request_cost_uses_the_price_list_chosen_for_a_contested_price(
    demo: None, endpoint: str, model: str, nanos: int
):
    """The first price list applies unless two others agree on another price. Cached tokens without their own price cost
    as much as other input tokens.
    """
    Provider.objects.create(name="listed", endpoint=endpoint, default_model=model, key_source="none")
    snapshot.refresh()
    write([entry("r", "listed", model)])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.currency) == (nanos, "USD")


@pytest.mark.parametrize(
    ("provider", "model", "usage"), [("own", "other", COUNTED), ("own", "m", Usage()), ("unknown", "m", COUNTED)]
)
def test_cost_is_none_without_price_or_counts(priced: None, provider: str, model: str, usage: Usage):
    write([entry("r", provider, model, usage)])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.saved_nanos, row.currency) == (None, None, "")
    assert {usage_sum.unpriced for usage_sum in UsageSum.objects.all()} == {int(usage.prompt_tokens is not None)}


@pytest.mark.parametrize(("usage", "nanos"), [(Usage(1000), 2_000_000), (Usage(None, 100), 800_000)])
def test_cost_is_computed_from_only_input_or_only_output_tokens(priced: None, usage: Usage, nanos: int):
    write([entry("r", usage=usage)])
    assert RequestLog.objects.get(pk="r").cost_nanos == nanos


def test_embedded_provider_is_free_of_charge(demo: None):
    """The embedded provider runs in the server's process and costs nothing, so its requests do not count as
    unpriced.
    """
    write([entry("r", "echo", "echo-text")])
    row = RequestLog.objects.get(pk="r")
    assert (row.cost_nanos, row.currency) == (0, "XXX")
    assert [usage_sum.unpriced for usage_sum in UsageSum.objects.all()] == [0, 0]


def test_administrator_price_applies_to_the_embedded_provider(demo: None):
    """An administrator may give the embedded provider a price, for example to try out budgets."""
    price = {"currency": "USD", "input": 1, "output": 1}
    Service.objects.filter(provider__name="echo", model="echo-text").update(price=price)
    snapshot.refresh()
    write([entry("r", "echo", "echo-text")])
    assert RequestLog.objects.get(pk="r").currency == "USD"


def test_usage_sums_grow_with_every_batch(priced: None):
    """For each currency, there is one sum per hour and one per day."""
    write([entry("a"), entry("b"), entry("c", "listed", "gpt-4o")])
    write([entry("d", at=NOON + timedelta(hours=1))])
    hours = UsageSum.objects.filter(span=UsageSum.HOUR, currency="CNY").order_by("start")
    assert [(usage_sum.requests, usage_sum.cost_nanos) for usage_sum in hours] == [(2, 4_400_000), (1, 2_200_000)]
    day = UsageSum.objects.get(span=UsageSum.DAY, currency="CNY")
    assert (day.requests, day.prompt_tokens, day.completion_tokens, day.cached_tokens) == (3, 3000, 300, 1200)
    assert (day.cost_nanos, day.saved_nanos, day.fallbacks, day.fallback_nanos) == (6_600_000, 1_800_000, 3, 0)
    assert UsageSum.objects.get(span=UsageSum.DAY, currency="USD").cost_nanos == 3_000_000


WASTE = Usage(500, 10)


def failed_entry(*attempts: Attempt, answered: bool = True) -> Entry:
    facts = RequestFacts("r", NOON, "v1", agent="ann", task_type="planning", usage=COUNTED if answered else Usage())
    if not answered:
        facts.outcome, facts.status = "upstream_exhausted", 502
    return build_entry(facts, (*attempts, Attempt("own", "m", "ok")) if answered else attempts)


def billed_attempt(provider: str, model: str) -> Attempt:
    """Return an attempt that was billed although its answer was empty."""
    return Attempt(provider, model, "empty_content", tries=(Try(0.0, 5.0, "empty_content", 200, usage=WASTE),))


def test_failed_attempt_has_its_own_cost(priced: None):
    write([failed_entry(billed_attempt("listed", "gpt-4o"))])
    first, last = AttemptLog.objects.order_by("position")
    assert (first.prompt_tokens, first.completion_tokens) == (500, 10)
    assert (first.cost_nanos, first.currency) == (
        1_350_000,
        "USD",
    )  # The cost of 500 tokens at 2.5 and 10 tokens at 10 per million.
    assert (last.prompt_tokens, last.cost_nanos, last.currency) == (1000, 2_200_000, "CNY")
    assert RequestLog.objects.get(pk="r").cost_nanos == 2_200_000


def test_cost_of_a_failed_attempt_is_added_to_the_sums_of_its_provider(priced: None):
    write([failed_entry(billed_attempt("listed", "gpt-4o"))])
    waste = UsageSum.objects.get(span=UsageSum.DAY, provider="listed")
    assert (waste.requests, waste.prompt_tokens, waste.cost_nanos, waste.fallback_nanos) == (0, 500, *[1_350_000] * 2)
    answer = UsageSum.objects.get(span=UsageSum.DAY, provider="own")
    assert (answer.requests, answer.cost_nanos, answer.fallback_nanos) == (1, 2_200_000, 0)


def test_attempt_cost_includes_its_failed_try(priced: None):
    """An attempt's cost includes its failed call. The request's cost includes only the call that answered."""
    tries = (Try(0.0, 5.0, "empty_content", 200, usage=WASTE), Try(9.0, 5.0, "ok"))
    facts = RequestFacts("r", NOON, "v1", usage=COUNTED)
    write([build_entry(facts, (Attempt("own", "m", "ok", tries=tries),))])
    assert (RequestLog.objects.get().cost_nanos, AttemptLog.objects.get().cost_nanos) == (2_200_000, 3_280_000)
    day = UsageSum.objects.get(span=UsageSum.DAY)
    assert (day.requests, day.cost_nanos, day.fallback_nanos, day.prompt_tokens) == (1, 3_280_000, 1_080_000, 1500)


def test_usage_sums_include_the_attempt_costs_of_an_unanswered_request(priced: None):
    """An unanswered request's row has no cost, but its attempts and the totals do.

    Several attempts without a price count as one unpriced request.
    """
    write(
        [
            failed_entry(
                billed_attempt("own", "m"),
                billed_attempt("unknown", "m"),
                billed_attempt("unknown", "n"),
                answered=False,
            )
        ]
    )
    assert RequestLog.objects.get(pk="r").cost_nanos is None
    days = UsageSum.objects.filter(span=UsageSum.DAY)
    assert {
        (usage_sum.provider, usage_sum.model, usage_sum.requests, usage_sum.cost_nanos, usage_sum.unpriced)
        for usage_sum in days
    } == {
        ("", "", 1, 0, 0),
        ("own", "m", 0, 1_080_000, 0),
        ("unknown", "(other)", 0, 0, 1),
    }


def test_log_entry_written_twice_is_counted_once(priced: None):
    """An entry is written twice if the process crashed while it emptied the spool."""
    rows = build_rows([entry("a"), entry("b")])
    write_missing(rows)
    write_missing(rows)
    assert UsageSum.objects.get(span=UsageSum.DAY).requests == 2


def test_spooled_rows_of_an_earlier_version_are_written(priced: None, tmp_path: Path):
    spool = Spool(tmp_path / "spool")
    # An earlier version did not write these columns.
    new = {"cost_nanos", "saved_nanos", "currency"}
    spool.append([({k: v for k, v in row.items() if k not in new}, tries) for row, tries in build_rows([entry("a")])])
    spool.close()
    Spool(tmp_path / "spool").drain(write_missing, lambda line: None)
    assert RequestLog.objects.get(pk="a").cost_nanos is None


@override_settings(TIME_ZONE="Asia/Shanghai")
def test_day_begins_at_midnight_in_the_configured_time_zone():
    assert day_start(datetime(2026, 11, 20, 17, tzinfo=UTC)) == datetime(2026, 11, 20, 16, tzinfo=UTC)


def test_usage_sum_at_its_maximum_does_not_fail_the_batch(priced: None):
    """A sum that is too large for its column is capped, so that the row can still be written."""
    write([entry("a")])
    UsageSum.objects.update(cost_nanos=2**63 - 1, saved_nanos=2**63 - 1)
    write([entry("b")])
    assert RequestLog.objects.count() == 2
    assert {usage_sum.cost_nanos for usage_sum in UsageSum.objects.all()} == {2**62 + 2_200_000}
