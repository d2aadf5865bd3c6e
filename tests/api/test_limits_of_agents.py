"""An agent's limits on the agents' API, over MCP and on the agent's page.

All three count towards the same limits and report them in the same way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.models import Agent
from routing_admin.configuration.agents.actions import put_agent
from tests.cast import AgentProgram, create_key, limit_agent
from tests.console.visits import response_text
from tests.gateway.asgi_caller import Call

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("returned_quotas"),
]


def amounts(program: AgentProgram) -> dict[str, Any]:
    return {amount["meter"]: amount for amount in program.get("/agents/me").json()["limits"]["amounts"]}


def test_agent_sees_its_limits_with_remaining_amount_and_reset(text_agent: AgentProgram) -> None:
    assert text_agent.get("/agents/me").json()["limits"] is None
    limit_agent(tokensPerDay=10_000, inFlight=3)
    response = text_agent.post("/llm/send", {"prompt": "hello"})
    tokens_used = response.json()["usage"]["totalTokens"]
    own_amounts = amounts(text_agent)
    counts = {"limit": 3, "used": 0, "remaining": 3}
    assert own_amounts["inFlight"] == {
        "meter": "inFlight",
        **counts,
        "currency": None,
        "uncounted": 0,
        "resetsAt": None,
    }
    day = own_amounts["tokensPerDay"]
    assert (day["used"], day["remaining"]) == (tokens_used, 10_000 - tokens_used)
    assert datetime.fromisoformat(day["resetsAt"]) > datetime.now(UTC)
    assert response.headers["x-ratelimit-remaining-tokens"] == str(10_000 - tokens_used)


def test_agent_created_at_run_time_shares_the_budget_of_its_creator(text_agent: AgentProgram) -> None:
    limit_agent(bytesPerDay=400)
    put_agent(SYSTEM, "text-agent", "made")
    put_agent(SYSTEM, "made", "made-of-made")
    child, grandchild = (AgentProgram(name, create_key(name)) for name in ("made", "made-of-made"))
    prompt_body = {"prompt": "x" * 300, "taskType": "planning"}
    assert child.post("/llm/send", prompt_body).status_code == 200
    for program in (child, grandchild, text_agent):
        assert program.post("/llm/send", prompt_body).json()["error"] == "budget_exceeded"
    assert (
        child.post("/llm/send", prompt_body)
        .json()["message"]
        .startswith("Its creator text-agent has a daily limit for request bytes of 400")
    )
    Agent.objects.filter(agent_id="made").update(expires_at=datetime.now(UTC))
    assert grandchild.get("/agents/me").status_code == 401


@pytest.mark.parametrize("budget", ["tokensPerDay", "bytesPerDay"])
def test_send_over_a_budget_returns_429_with_retry_after(text_agent: AgentProgram, budget: str) -> None:
    limit_agent(**{budget: 5})
    refused = text_agent.post("/llm/send", {"prompt": "hello"})
    assert (refused.status_code, refused.json()["error"]) == (429, "budget_exceeded")
    assert int(refused.headers["Retry-After"]) > 0
    assert "resets at" in refused.json()["message"]
    logged = text_agent.get(f"/requests/{refused.json()['requestId']}").json()
    assert (logged["outcome"], logged["status"]) == ("budget_exceeded", 429)


def test_bytes_of_uploads_to_both_apis_count_together(text_agent: AgentProgram) -> None:
    limit_agent(bytesPerDay=2000)
    text_agent.stored("a.txt", b"x" * 500, "text/plain")
    headers = {"authorization": f"Bearer {text_agent.key}"}
    upload = {"purpose": "user_data", "file": open(__file__, "rb")}  # noqa: SIM115
    refused = Client().post("/v1/files", upload, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_exceeded")
    assert 500 < amounts(text_agent)["bytesPerDay"]["used"] < 1000
    assert text_agent.upload("b.txt", b"x" * 2000, "text/plain").status_code == 429


def test_counting_tokens_counts_as_a_request(text_agent: AgentProgram) -> None:
    """In the Messages API, the rate limit error has Anthropic's format."""
    limit_agent(requestsPerMinute=1)
    body = {"model": "task:planning", "messages": [{"role": "user", "content": "hello"}]}
    headers = {"x-api-key": text_agent.key}
    answers = [
        Client().post("/v1/messages/count_tokens", json.dumps(body), content_type="application/json", headers=headers)
        for _ in range(3)
    ]
    # Only one call may be rejected, because a new minute with a new count may begin between two calls.
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert refused[0].json()["error"]["type"] == "rate_limit_error"


async def test_mcp_calls_count_as_requests_and_are_rejected_before_mcp_reads_them(demo: None) -> None:
    key = await asyncio.to_thread(create_key, "text-agent")
    await asyncio.to_thread(limit_agent, requestsPerMinute=1)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    headers = [
        (b"host", b"127.0.0.1"),
        (b"x-api-key", key.encode()),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-length", str(len(body)).encode()),
    ]
    calls = [await Call([body], headers, path="/mcp").run() for _ in range(3)]
    assert calls[-1].status == 429
    assert json.loads(calls[-1].answer)["error"] == "rate_limit_exceeded"
    assert calls[-1].answer_headers["x-should-retry"] == "true"


def test_agent_page_shows_each_limit_and_warns_from_80_percent_on(
    admin: Client, caller: Callable[..., AgentProgram]
) -> None:
    program = caller("text-agent")
    form = {"name": "Text", "version": "1", "tokensPerDay": "100", "requestsPerMinute": "600"}
    assert admin.post("/agents/text-agent/", form).status_code == 302
    assert Agent.objects.get(agent_id="text-agent").limits == {"tokensPerDay": 100, "requestsPerMinute": 600}
    assert "running out" not in response_text(admin.get("/agents/text-agent/"))
    while program.post("/llm/send", {"prompt": "hello", "maxTokens": 1}).status_code == 200:
        pass
    page = response_text(admin.get("/agents/text-agent/"))
    assert "Tokens per day" in page
    assert "running out" in page or "used up" in page
    assert "resets at" in page


def test_dashboard_names_agents_that_used_80_percent_of_a_budget(admin: Client, text_agent: AgentProgram) -> None:
    """Exhausted rate limits are not listed, since they recover by themselves."""
    limit_agent(tokensPerDay=10**6, requestsPerMinute=1)
    text_agent.post("/llm/send", {"prompt": "hello"})
    assert "% used, resets" not in response_text(admin.get("/"))
    limit_agent(bytesPerDay=100, requestsPerMinute=1000)
    while text_agent.post("/llm/send", {"prompt": "hello"}).status_code == 200:
        pass
    page = " ".join(response_text(admin.get("/")).split())
    assert '<a href="/agents/text-agent/"><b>text-agent</b></a> Request bytes per day:' in page
    assert "% used, resets at" in page


@pytest.mark.parametrize("amount", ["0", "-1", "many", "1.5", str(10**16)])
def test_limit_that_is_not_a_whole_number_is_rejected(admin: Client, demo: None, amount: str) -> None:
    assert admin.post("/agents/text-agent/", {"name": "Text", "version": "1", "inFlight": amount}).status_code == 422
    assert Agent.objects.get(agent_id="text-agent").limits == {}
