"""Under a spending limit, calls without a known price pass uncounted, are refused, or count at a set price."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest
from django.core.management import call_command
from django.test import Client

from capabilities.core.services.agent_limits import AgentLimits, Meter, UnpricedPolicy, parse_limits
from capabilities.models import Agent
from routing_admin.console.agents.forms import AgentForm
from routing_admin.console.base.api import limit_fields
from routing_admin.limits.uses import find_uses
from routing_admin.models import LabelBudget
from routing_admin.request_log.journal import journal
from tests.cast import limit_agent
from tests.console.page import Page
from tests.gateway.asgi_caller import TOKENS, chat_call, price_plain_provider
from tests.gateway.plane import logged

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("patient_calls", "returned_quotas"),
]
BUDGET = {"moneyPerMonth": "1", "currency": "USD"}


async def find_used() -> Mapping[tuple[str, Meter], int]:
    return await asyncio.to_thread(find_uses, ["agent:text-agent"])


async def test_uncounted_call_is_reported_in_a_header_on_the_page_and_by_doctor(
    key, loopback, admin: Client, capsys: pytest.CaptureFixture[str]
):
    await asyncio.to_thread(limit_agent, **BUDGET)
    async with loopback.serve():
        whole = await chat_call(key, "plain").run()
        streamed = await chat_call(key, "plain", stream=True).run()
    for call in (whole, streamed):
        assert (call.status, call.answer_headers["x-routing-budget-uncounted"]) == (200, "moneyPerMonth")
    assert not any((await find_used()).values())
    await asyncio.to_thread(journal().flush)
    page = Page(await asyncio.to_thread(admin.get, "/agents/text-agent/"))
    assert page.shows("2 calls without a known price passed uncounted.")
    await asyncio.to_thread(call_command, "doctor")
    assert "warn budgets: agent:text-agent moneyPerMonth: 2 calls without a known price" in capsys.readouterr().out


async def test_budget_that_refuses_unpriced_calls_says_how_to_set_a_price(key, loopback):
    await asyncio.to_thread(limit_agent, **BUDGET, unpriced="refuse")
    async with loopback.serve():
        call = await chat_call(key, "plain", (b"x-request-id", b"unpriced")).run()
    assert (call.status, call.error_code) == (429, "budget_unpriced")
    message = json.loads(call.answer)["error"]["message"]
    assert "This agent has a spending limit in USD that refuses calls without a known price" in message
    assert "set a price on the page of its model service" in message
    assert call.answer_headers["x-should-retry"] == "false"
    assert "retry-after" not in call.answer_headers
    row = await asyncio.to_thread(logged, "unpriced")
    assert (row.outcome, row.ending) == ("budget_unpriced", "refused")
    assert not any((await find_used()).values())


async def test_budget_counts_unpriced_tokens_at_its_own_price(key, loopback):
    await asyncio.to_thread(limit_agent, **BUDGET, unpriced="count", unpricedPrice="1000")
    async with loopback.serve():
        call = await chat_call(key, "plain", max_tokens=10).run()
        assert (call.status, "x-routing-budget-uncounted" in call.answer_headers) == (200, False)
        assert await find_used() == {("agent:text-agent", Meter.MONEY_PER_MONTH): TOKENS * 1_000_000}
        refused = await chat_call(key, "plain", max_tokens=1000).run()
    assert refused.error_code == "budget_exceeded"


@pytest.mark.parametrize("policy", [{"unpriced": "refuse"}, {"unpriced": "count", "unpricedPrice": "1000"}])
async def test_priced_call_counts_at_its_own_price_under_every_unpriced_policy(key, loopback, policy: dict[str, str]):
    """The limit's price applies only to calls that have none."""
    await asyncio.to_thread(price_plain_provider)
    await asyncio.to_thread(limit_agent, **BUDGET, **policy)
    async with loopback.serve():
        assert (await chat_call(key, "plain", max_tokens=10).run()).status == 200
    assert await find_used() == {("agent:text-agent", Meter.MONEY_PER_MONTH): 11 * 10_000 + 7 * 100_000}


def test_free_call_does_not_count_as_unpriced(text_agent):
    """The built-in echo provider is free in every currency."""
    limit_agent(**BUDGET, unpriced="refuse")
    answer = text_agent.post("/llm/send", {"prompt": "hello", "taskType": "planning"})
    assert answer.status_code == 200


def test_policy_for_unpriced_calls_is_read_from_the_row():
    """If the row has no `unpriced`, as in rows from before the policy existed, calls pass."""
    assert parse_limits(BUDGET) == AgentLimits(models=None, maximums={Meter.MONEY_PER_MONTH: 10**9}, currency="USD")
    refusing, counting = (
        parse_limits(BUDGET | {"unpriced": "refuse"}),
        parse_limits(BUDGET | {"unpriced": "count", "unpricedPrice": "2.5"}),
    )
    assert refusing is not None
    assert counting is not None
    assert refusing.unpriced is UnpricedPolicy.REFUSE
    assert counting.own_price is not None
    assert counting.own_price.tiers[0].rates.output == 2_500_000


def test_agent_form_accepts_a_policy_for_unpriced_calls(demo: None):
    row, counting = Agent.objects.get(agent_id="text-agent"), BUDGET | {"unpriced": "count"}
    data = {"name": row.name, "service": row.service.service_id, "version": row.version, **counting}
    assert [*AgentForm(data, instance=row).errors] == ["unpricedPrice"]
    assert AgentForm(data | {"unpricedPrice": "2.5"}, instance=row).is_valid()
    assert row.limits == counting | {"unpricedPrice": "2.5"}
    assert limit_fields(row.limits) == {"models": "", **row.limits}


def test_budgets_page_accepts_a_policy_for_unpriced_calls(admin: Client, demo: None):
    data = {"kind": "team", "name": "search", "moneyPerDay": "5", "currency": "USD"}
    admin.post("/usage/budgets/save/", {**data, "unpriced": "refuse", "unpricedPrice": "3"})
    assert LabelBudget.objects.get().limits == {"moneyPerDay": "5", "currency": "USD", "unpriced": "refuse"}
    answer = admin.post("/usage/budgets/save/", {**data, "unpriced": "count"})
    assert answer.status_code == 422
    assert Page(answer).shows("Enter the price that calls without a known price count at.")
