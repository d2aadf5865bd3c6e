"""Exchange rates on the settings page, and their use in totals of usage and budgets."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from capabilities.actors import SYSTEM
from capabilities.core.prices import NANO
from capabilities.core.wire import Usage
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.history.actions import undo
from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import Revision, UsageSum
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from tests.cast import AgentProgram
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
RATE = {"currency": "usd", "rate": "7.1", "into": "CNY", "day": "2026-11-20", "source": "our bank"}


def set_rate(admin: Client, **change: str) -> Any:
    return admin.post(reverse("settings_rate_set"), {**RATE, **change}, follow=True)


@pytest.fixture
def priced_requests() -> datetime:
    """Two requests by one agent: one costs one dollar, the other two yuan."""
    for name, currency, amount in (("dollars", "USD", 1), ("yuan", "CNY", 2)):
        row = Provider.objects.create(name=name, endpoint="http://127.0.0.1:9/v1", default_model="m", key_source="none")
        price = {"currency": currency, "input": amount, "output": amount}
        Service.objects.create(service_id=name, name=name, provider=row, model="m", price=price)
    snapshot.refresh()
    now = timezone.now()
    for name in ("dollars", "yuan"):
        facts = RequestFacts(f"req_{name}", now, "v1", agent="text-agent", usage=Usage(1_000_000, 0))
        write([build_entry(facts, (Attempt(name, "m", "ok"),))])
    return now


def test_setting_an_exchange_rate_creates_one_revision_with_undo(admin: Client) -> None:
    rate = Page(set_rate(admin)).region("Exchange rates").row("1 USD = 7.1 CNY")
    assert rate.shows("our bank")
    number = Revision.objects.latest("number").number
    assert Page(admin.get(reverse("revision", args=[number]))).shows("exchange rate")
    undo(SYSTEM, number)
    assert snapshot.current().exchange.rates == ()


def test_exchange_rate_can_be_replaced_and_removed(admin: Client) -> None:
    set_rate(admin)
    set_rate(admin, rate="7.2", day="2026-11-21")
    assert [str(rate) for rate in snapshot.current().exchange.rates] == ["1 USD = 7.2 CNY"]
    admin.post(reverse("settings_rate_remove"), {"currency": "USD"})
    assert snapshot.current().exchange.rates == ()
    assert admin.post(reverse("settings_rate_remove"), {"currency": "USD"}).status_code == 404


def test_invalid_exchange_rate_shows_an_error_at_the_field(admin: Client) -> None:
    answer = set_rate(admin, rate="much")
    assert answer.status_code == 422
    assert "The rate must be a number above 0" in Page(answer).error("Rate")
    assert snapshot.current().exchange.rates == ()


def test_usage_total_is_converted_with_the_exchange_rate(admin: Client, priced_requests: datetime) -> None:
    page = Page(admin.get("/usage/", {"by": "agent"}))
    assert page.row("text-agent").shows("1.00 USD")
    assert not page.shows("9.10 CNY")
    set_rate(admin)
    page = Page(admin.get("/usage/", {"by": "agent"}))
    row = page.row("text-agent")
    assert row.shows("9.10 CNY")
    assert not row.shows("1.00 USD")
    (figure,) = [control for control in page.controls if control.attributes.get("title") == "2.00 CNY + 1.00 USD"]
    assert figure.text == "9.10 CNY"
    for expected in ("2.00 CNY + 1.00 USD", "at 1 USD = 7.1 CNY, set 2026-11-20"):
        assert page.shows(expected)


def test_savings_are_shown_as_a_total_with_the_amount_per_currency(admin: Client, priced_requests: datetime) -> None:
    set_rate(admin)
    UsageSum.objects.filter(currency="USD").update(saved_nanos=NANO)
    UsageSum.objects.filter(currency="CNY").update(saved_nanos=3 * NANO)
    page = Page(admin.get("/usage/"))
    assert page.shows("10.10 CNY")
    assert page.shows("3.00 CNY + 1.00 USD")


def test_no_total_is_shown_if_a_currency_has_no_exchange_rate(admin: Client, priced_requests: datetime) -> None:
    """A total of only the other currencies would be wrong."""
    set_rate(admin, currency="EUR")
    page = Page(admin.get("/usage/"))
    assert not page.shows("9.10 CNY")
    assert page.shows("no total, because a currency has no exchange rate")


def test_usage_groups_are_sorted_by_converted_cost(admin: Client, priced_requests: datetime) -> None:
    """A dollar is worth more than two yuan, so the dollar group is first."""
    set_rate(admin)
    rows = list(csv.DictReader(io.StringIO(admin.get("/csv/usage/?by=provider").content.decode("utf-8-sig"))))
    assert [(row["provider"], row["total_cost"], row["total_currency"]) for row in rows] == [
        ("dollars", "7.1", "CNY"),
        ("yuan", "2", "CNY"),
    ]


def test_usage_api_returns_the_total_and_the_exchange_rates(
    admin: Client, text_agent: AgentProgram, priced_requests: datetime
) -> None:
    assert text_agent.get("/usage").json()["total"]["cost"] is None
    set_rate(admin)
    usage = text_agent.get("/usage").json()
    assert usage["total"]["cost"] == {"amount": "9.1", "currency": "CNY"}
    assert usage["exchangeRates"] == [{**RATE, "currency": "USD"}]
