"""An agent's limits in one process, over real sockets. Usage is reserved before a call and settled after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from capabilities.actors import SYSTEM
from capabilities.core.exchange import ExchangeRate
from capabilities.core.services.agent_limits import Meter
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.console.settings import actions as exchange
from routing_admin.limits.uses import find_uses
from routing_admin.models import Candidate, TaskRoute
from tests.bench.upstream import NAME
from tests.cast import create_key, limit_agent
from tests.gateway.asgi_caller import COST, TOKENS, Call, chat_call, price_plain_provider
from tests.gateway.plane import logged

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("patient_calls", "returned_quotas"),
]


async def find_used() -> Mapping[Meter, int]:
    uses = await asyncio.to_thread(find_uses, ["agent:text-agent"])
    return {meter: amount for (_, meter), amount in uses.items()}


def refusal_codes(calls: list[Call]) -> set[str]:
    return {call.error_code for call in calls if call.status != 200}


async def call_concurrently(count: int, *arguments: Any) -> list[Call]:
    return list(await asyncio.gather(*(chat_call(*arguments).run() for _ in range(count))))


async def test_200_parallel_calls_never_exceed_a_rate_limit(key, loopback):
    await asyncio.to_thread(limit_agent, requestsPerMinute=37)
    async with loopback.serve():
        began = datetime.now(UTC).minute
        calls = await call_concurrently(200, key, "plain")
        minutes = 1 + (datetime.now(UTC).minute != began)
        last = await chat_call(key, "plain").run()
        while last.status != 429:
            last = await chat_call(key, "plain").run()
    assert sum(call.status == 200 for call in calls) <= 37 * minutes
    assert refusal_codes(calls) == {"rate_limit_exceeded"}
    assert last.error_code == "rate_limit_exceeded"
    assert 1 <= int(last.answer_headers["retry-after"]) <= 60
    assert last.answer_headers["x-should-retry"] == "true"
    assert "its limit of requests per minute (37)" in json.loads(last.answer)["error"]["message"]
    assert last.answer_headers["x-ratelimit-limit-requests"] == "37"
    assert last.answer_headers["x-ratelimit-remaining-requests"] == "0"


async def test_200_parallel_calls_never_exceed_a_token_budget(key, loopback):
    """Each call first reserves its maximum, so the budget suffices even if all accepted calls use their maximum."""
    await asyncio.to_thread(limit_agent, tokensPerDay=10_000)
    async with loopback.serve():
        calls = await asyncio.gather(*(chat_call(key, "plain", max_tokens=900).run() for _ in range(200)))
        answered = sum(call.status == 200 for call in calls)
        assert refusal_codes(calls) == {"budget_exceeded"}
        assert answered in range(11, 200)
        assert await find_used() == {Meter.TOKENS_PER_DAY: answered * TOKENS}


async def test_error_for_an_exhausted_budget_says_when_the_budget_resets(key, loopback):
    await asyncio.to_thread(limit_agent, tokensPerMonth=100)
    async with loopback.serve():
        call = await chat_call(key, "plain", (b"x-request-id", b"refused"), max_tokens=101).run()
    assert (call.status, call.error_code) == (429, "budget_exceeded")
    message = json.loads(call.answer)["error"]["message"]
    assert "has a monthly token limit of 100: 100 left" in message
    assert "The limit resets at 20" in message
    assert int(call.answer_headers["retry-after"]) > 0
    assert call.answer_headers["x-should-retry"] == "false"
    assert call.answer_headers["x-ratelimit-limit-tokens"] == "100"
    row = await asyncio.to_thread(logged, "refused")
    assert (row.outcome, row.status) == ("budget_exceeded", 429)


async def test_caller_is_warned_when_80_percent_of_a_budget_is_used(key, loopback):
    await asyncio.to_thread(limit_agent, tokensPerDay=90)
    async with loopback.serve():
        calls = [await chat_call(key, "plain", max_tokens=1).run() for _ in range(4)]
    assert [call.answer_headers.get("x-routing-budget-warning") for call in calls] == [
        *[None] * 3,
        "tokensPerDay=80%",
    ]
    assert [call.answer_headers["x-ratelimit-remaining-tokens"] for call in calls] == ["72", "54", "36", "18"]


@pytest.mark.parametrize("stream", [False, True])
async def test_disconnect_releases_the_reservation(key, loopback, stream):
    await asyncio.to_thread(limit_agent, tokensPerDay=5000, inFlight=1)
    async with loopback.serve():
        call = chat_call(key, "silent", stream=stream)
        running = asyncio.create_task(call.run())
        await loopback.requested.wait()
        call.disconnected.set()
        await running
        assert await find_used() == {Meter.TOKENS_PER_DAY: 0, Meter.IN_FLIGHT: 0}
        assert (await chat_call(key, "plain").run()).status == 200


async def test_interrupted_stream_counts_the_text_received_so_far(key, loopback):
    await asyncio.to_thread(limit_agent, tokensPerDay=5000)
    async with loopback.serve():
        call = chat_call(key, "stall", stream=True)
        running = asyncio.create_task(call.run())
        await call.begun.wait()
        call.disconnected.set()
        await running
        taken = (await find_used())[Meter.TOKENS_PER_DAY]
    assert 0 < taken < 100


def allow_several_choices(provider: str) -> None:
    route = TaskRoute.objects.create(task_type="several", position=99, retries=0, allow_n=True)
    Candidate.objects.create(route=route, position=1, provider=Provider.objects.get(name=provider), model=NAME)
    snapshot.refresh()


async def test_each_of_several_choices_counts_towards_the_limits(key, loopback):
    await asyncio.to_thread(allow_several_choices, "plain")
    await asyncio.to_thread(limit_agent, tokensPerDay=5000, inFlight=3)
    async with loopback.serve():
        call = await chat_call(key, "plain", n=3, task_type="several").run()
        assert call.status == 200
        assert await find_used() == {Meter.TOKENS_PER_DAY: 3 * TOKENS, Meter.IN_FLIGHT: 0}
        assert (await chat_call(key, "plain", n=3, task_type="several", stream=True).run()).status == 200
        assert await find_used() == {Meter.TOKENS_PER_DAY: 6 * TOKENS, Meter.IN_FLIGHT: 0}


async def test_several_choices_are_accepted_together_or_not_at_all(key, loopback):
    await asyncio.to_thread(allow_several_choices, "plain")
    await asyncio.to_thread(limit_agent, tokensPerDay=5000, inFlight=2)
    async with loopback.serve():
        call = await chat_call(key, "plain", n=3, task_type="several").run()
        assert (call.status, call.error_code) == (429, "rate_limit_exceeded")
        assert await find_used() == {Meter.TOKENS_PER_DAY: 0, Meter.IN_FLIGHT: 0}
        assert (await chat_call(key, "plain", n=2, task_type="several").run()).status == 200


@pytest.mark.parametrize(("provider", "stream"), [("silent", False), ("silent", True), ("stall", True)])
async def test_disconnect_ends_all_of_several_choices(key, loopback, provider, stream):
    await asyncio.to_thread(allow_several_choices, provider)
    await asyncio.to_thread(limit_agent, tokensPerDay=5000, inFlight=3)
    async with loopback.serve():
        call = chat_call(key, provider, (b"x-request-id", b"left"), n=3, task_type="several", stream=stream)
        running = asyncio.create_task(call.run())
        await (call.begun if provider == "stall" else loopback.requested).wait()
        call.disconnected.set()
        await running
        assert (await find_used())[Meter.IN_FLIGHT] == 0
    logs = [await asyncio.to_thread(logged, name) for name in ("left", "left~2", "left~3")]
    assert {(row.outcome, row.status) for row in logs} == {("client_cancelled", 499)}


@pytest.mark.parametrize(("provider", "disconnects"), [("calls", True), ("uncounted", False)])
async def test_reasoning_and_tool_calls_are_estimated_without_usage(key, loopback, provider, disconnects):
    """Without usage from the provider, 400 characters of reasoning or arguments are estimated at 100 tokens.

    The stream may be complete or cut off.
    """
    await asyncio.to_thread(limit_agent, tokensPerDay=5000)
    async with loopback.serve():
        call = chat_call(key, provider, stream=True)
        running = asyncio.create_task(call.run())
        await call.begun.wait()
        if disconnects:
            call.disconnected.set()
        await running
        taken = (await find_used())[Meter.TOKENS_PER_DAY]
    assert 200 <= taken < 250


async def test_failed_call_releases_its_reservation(key, loopback, within_one_minute):
    await asyncio.to_thread(limit_agent, tokensPerDay=5000, requestsPerMinute=10**6)
    call = chat_call(key, "plain")
    failing = Call([json.dumps({"model": "echo/echo-503", "messages": [{"role": "user", "content": "x"}]}).encode()])
    # Leave out Content-Length, because it is the length of the body of `call`.
    failing.headers = [(name, value) for name, value in call.headers if name != b"content-length"]
    assert (await failing.run()).status == 502
    assert await find_used() == {Meter.TOKENS_PER_DAY: 0, Meter.REQUESTS_PER_MINUTE: 1}


async def test_calls_beyond_the_concurrency_limit_are_refused(key, loopback):
    await asyncio.to_thread(limit_agent, inFlight=2)
    async with loopback.serve():
        silent = [chat_call(key, "silent") for _ in range(2)]
        running = [asyncio.create_task(call.run()) for call in silent]
        while (await find_used()).get(Meter.IN_FLIGHT) != 2:
            await asyncio.sleep(0)
        refused = await chat_call(key, "plain").run()
        silent[0].disconnected.set()
        await running[0]
        served = await chat_call(key, "plain").run()
        silent[1].disconnected.set()
        await running[1]
    assert (refused.status, refused.error_code, served.status) == (429, "rate_limit_exceeded", 200)


async def test_request_bytes_are_limited_per_day(key, loopback):
    await asyncio.to_thread(limit_agent, bytesPerDay=400)
    async with loopback.serve():
        first = chat_call(key, "plain")
        size = sum(len(piece) for piece in first.pieces)
        assert (await first.run()).status == 200
        assert await find_used() == {Meter.BYTES_PER_DAY: size}
        large = await chat_call(key, "plain", user="x" * 400).run()
    assert (large.status, large.error_code) == (429, "budget_exceeded")


async def test_agent_without_limits_has_no_headers_and_no_rows(key, loopback):
    await asyncio.to_thread(limit_agent, requestsPerMinute=1)
    other = await asyncio.to_thread(create_key, "vision-agent")
    async with loopback.serve():
        calls = [await chat_call(other, "plain").run() for _ in range(3)]
    assert [call.status for call in calls] == [200] * 3
    assert not any("ratelimit" in name for name in calls[0].answer_headers)
    assert await asyncio.to_thread(find_uses, ["agent:vision-agent"]) == {}


async def test_200_parallel_calls_never_exceed_a_money_budget(key, loopback):
    await asyncio.to_thread(price_plain_provider)
    await asyncio.to_thread(limit_agent, moneyPerDay="1.00", currency="USD")
    async with loopback.serve():
        calls = await asyncio.gather(*(chat_call(key, "plain", max_tokens=900).run() for _ in range(200)))
        answered = [call for call in calls if call.status == 200]
        assert refusal_codes(calls) == {"budget_exceeded"}
        assert len(answered) in range(11, 200)
        assert await find_used() == {Meter.MONEY_PER_DAY: len(answered) * COST}
        refused = await chat_call(key, "plain", max_tokens=100_000).run()
    assert "has a daily spending limit of 1.00 USD" in json.loads(refused.answer)["error"]["message"]
    assert refused.answer_headers["x-routing-budget-limit"] == "1.00"
    assert refused.answer_headers["x-routing-budget-currency"] == "USD"


def set_rate() -> None:
    exchange.set_rate(SYSTEM, ExchangeRate("USD", "CNY", "7", "2026-11-20", "bank"))


async def test_costs_in_another_currency_are_converted_by_the_exchange_rate(key, loopback):
    await asyncio.to_thread(price_plain_provider)
    await asyncio.to_thread(set_rate)
    await asyncio.to_thread(limit_agent, moneyPerMonth="0.000001", currency="CNY")
    async with loopback.serve():
        refused = await chat_call(key, "plain").run()
    assert refused.error_code == "budget_exceeded"


async def test_calls_without_a_price_or_an_exchange_rate_are_not_counted(key, loopback):
    """Different currencies are never added, and costs are never guessed."""
    await asyncio.to_thread(limit_agent, moneyPerMonth="0.000001", currency="CNY")
    async with loopback.serve():
        assert (await chat_call(key, "plain").run()).status == 200
        await asyncio.to_thread(price_plain_provider)
        assert (await chat_call(key, "plain").run()).status == 200
    assert not any((await find_used()).values())
