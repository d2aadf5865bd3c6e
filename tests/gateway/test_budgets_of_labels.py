"""A budget of a team, project or end user limits the calls of all agents and keys together."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.core.services.agent_limits import Meter
from capabilities.core.services.agents import LabelKind
from capabilities.errors import InvalidError
from routing_admin.configuration import integrity
from routing_admin.console.history.actions import undo
from routing_admin.console.usage.actions import save_budget
from routing_admin.limits.reservations import keeper
from routing_admin.limits.rows import MAX_USERS, OTHER_USERS, CountedUsers
from routing_admin.limits.uses import find_uses
from routing_admin.models import AuditEvent, LabelBudget
from tests.cast import create_key, limit_agent
from tests.console.visits import response_text
from tests.gateway.asgi_caller import COST, TOKENS, chat_call, price_plain_provider
from tests.gateway.plane import chat_body, post

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("patient_calls", "returned_quotas"),
]


def budget(kind: LabelKind, name: str, **limits: Any) -> int | None:
    return save_budget(SYSTEM, kind, name, limits).revision


async def test_200_parallel_calls_of_two_agents_exceed_neither_team_nor_agent_budgets(loopback):
    """A team's spending limit covers both agents together, in addition to an agent's token limit and keys' rate limits.

    Unused reservations are released from all of these limits.
    """
    await asyncio.to_thread(price_plain_provider)
    await asyncio.to_thread(budget, LabelKind.TEAM, "search", moneyPerDay="1.00", currency="USD")
    await asyncio.to_thread(limit_agent, "text-agent", tokensPerDay=10**6, inFlight=150)
    terms = {"team": "search", "limits": {"requestsPerMinute": 10**6}}
    keys = [await asyncio.to_thread(create_key, agent, terms=terms) for agent in ("text-agent", "vision-agent")]
    async with loopback.serve():
        calls = await asyncio.gather(
            *(chat_call(keys[number % 2], "plain", max_tokens=900).run() for number in range(200))
        )
        answered = sum(call.status == 200 for call in calls)
        uses = await asyncio.to_thread(find_uses, ["label:team=search", "agent:text-agent"])
    # 1.00 USD covers eleven calls that each reserve 900 output tokens at 100 USD per million.
    assert 11 <= answered < 200
    assert uses["label:team=search", Meter.MONEY_PER_DAY] == answered * COST
    assert uses["agent:text-agent", Meter.TOKENS_PER_DAY] % TOKENS == 0
    assert uses["agent:text-agent", Meter.IN_FLIGHT] == 0
    refused = next(call for call in calls if call.error_code == "budget_exceeded")
    assert json.loads(refused.answer)["error"]["message"].startswith(
        "The team search has a daily spending limit of 1.00 USD"
    )
    assert int(refused.answer_headers["retry-after"]) > 0
    assert refused.answer_headers["x-routing-budget-limit"] == "1.00"


@pytest.mark.parametrize("provider", ["silent", "stall"])
async def test_cancelled_call_releases_its_reservations(key, loopback, provider):
    await asyncio.to_thread(limit_agent, "text-agent", tokensPerDay=5000)
    await asyncio.to_thread(budget, LabelKind.TEAM, "search", tokensPerDay=5000)
    await asyncio.to_thread(budget, LabelKind.USER, "text-agent", tokensPerDay=5000)
    async with loopback.serve():
        call = chat_call(key, provider, stream=True, user="eve", metadata={"team": "search"})
        running = asyncio.create_task(call.run())
        await (loopback.requested if provider == "silent" else call.begun).wait()
        call.disconnected.set()
        await running
        names = ["agent:text-agent", "label:team=search", "user:text-agent=eve"]
        used = await asyncio.to_thread(find_uses, names)
    amounts = [used[name, Meter.TOKENS_PER_DAY] for name in names]
    assert len(set(amounts)) == 1
    assert amounts[0] < 100
    assert amounts[0] == 0 or provider == "stall"


async def test_user_budget_applies_to_each_end_user_separately(key, loopback):
    await asyncio.to_thread(budget, LabelKind.USER, "text-agent", tokensPerDay=20)
    async with loopback.serve():
        first = await chat_call(key, "plain", max_tokens=1, user="eve").run()
        second = await chat_call(key, "plain", max_tokens=1, user="eve").run()
        other = await chat_call(key, "plain", max_tokens=1, user="艾达").run()
        anonymous = await chat_call(key, "plain", max_tokens=1).run()
    assert first.answer_headers["x-routing-budget-warning"] == "user=eve tokensPerDay=90%"
    assert other.answer_headers["x-routing-budget-warning"].startswith("user=%E8%89%BE%E8%BE%BE tokensPerDay=")
    assert [call.status for call in (first, second, other, anonymous)] == [200, 429, 200, 200]
    assert json.loads(second.answer)["error"]["message"].startswith("The end user eve has a daily token limit of 20")
    assert not any("budget" in name for name in anonymous.answer_headers)


def test_end_users_beyond_the_maximum_share_one_budget() -> None:
    """Callers choose the names of end users.

    Beyond the maximum number of end users, new names share one counter, and known names keep theirs.
    """
    users = CountedUsers()
    names = [users.counted_name("a", f"u{number}") for number in range(MAX_USERS + 2)]
    assert names[-2:] == [OTHER_USERS, OTHER_USERS]
    assert (users.counted_name("a", "u0"), users.counted_name("b", "new")) == ("u0", "new")


def test_project_budget_applies_at_once_and_can_be_undone(demo: None) -> None:
    key = create_key("text-agent", terms={"project": "atlas"})
    revision = budget(LabelKind.PROJECT, "atlas", tokensPerDay=1)
    assert revision is not None
    refused = post(key, chat_body("hi", model="task:planning"))
    assert (refused.status_code, "The project atlas has a daily token limit of 1:" in refused.content.decode()) == (
        429,
        True,
    )
    sent = Client().post(
        "/api/v1/llm/send", {"prompt": "hi"}, "application/json", headers={"authorization": f"Bearer {key}"}
    )
    assert (sent.status_code, sent.json()["error"]) == (429, "budget_exceeded")
    assert AuditEvent.objects.filter(action="budget.save", object_name="project:atlas").count() == 1
    assert integrity.configuration() == []
    undo(SYSTEM, revision)
    assert post(key, chat_body("hi", model="task:planning")).status_code == 200
    assert not LabelBudget.objects.exists()
    keeper().stop()


def test_budget_without_a_limit_or_for_an_unknown_agent_is_refused(demo: None) -> None:
    with pytest.raises(InvalidError):
        budget(LabelKind.TEAM, "search")
    with pytest.raises(InvalidError):
        budget(LabelKind.USER, "unknown", tokensPerDay=1)


def test_budgets_page_creates_and_removes_budgets(admin: Client, demo: None) -> None:
    assert "No budget yet" in response_text(admin.get("/usage/budgets/"))
    form = {"kind": "team", "name": "search", "tokensPerMonth": "100", "moneyPerDay": "2.5", "currency": "CNY"}
    assert admin.post("/usage/budgets/save/", form).status_code == 302
    assert LabelBudget.objects.get().limits == {"tokensPerMonth": 100, "moneyPerDay": "2.5", "currency": "CNY"}
    page = response_text(admin.get("/usage/budgets/"))
    assert "0 / 100" in page
    assert "2.50 CNY" in page
    for wrong in ({"tokensPerMonth": "-1"}, {"name": "a\nb" * 50}, {"kind": "all"}, {"kind": "user"}):
        assert admin.post("/usage/budgets/save/", {**form, **wrong}).status_code == 422
    assert admin.post("/usage/budgets/delete/", {"label": "team:search"}).status_code == 302
    assert not LabelBudget.objects.exists()


def test_dashboard_names_labels_with_a_nearly_exhausted_budget(admin: Client, demo: None) -> None:
    budget(LabelKind.TEAM, "search", tokensPerDay=10_000)
    key = create_key("text-agent", terms={"team": "search"})
    assert "<b>search</b>" not in admin.get("/").content.decode()
    budget(LabelKind.TEAM, "search", tokensPerDay=20)
    while post(key, chat_body("hi", model="task:planning", max_tokens=1)).status_code == 200:
        pass
    page = admin.get("/").content.decode()
    assert '<a href="/usage/budgets/"><b>search</b></a>' in page
    keeper().stop()
