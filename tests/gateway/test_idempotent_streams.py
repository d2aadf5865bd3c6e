"""`Idempotency-Key` during calls: streams, disconnecting clients, concurrent calls."""

from __future__ import annotations

import asyncio
import json

import pytest

from routing_admin.models import IdempotencyRecord
from tests.gateway.asgi_caller import Loopback, chat_call

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])
KEY = (b"idempotency-key", b"k")


async def test_replayed_stream_has_the_same_bytes_and_headers(key: str, loopback: Loopback) -> None:
    async with loopback.serve():
        first = await chat_call(key, "stream", KEY, stream=True).run()
        replay = await chat_call(key, "stream", KEY, stream=True).run()
    assert (first.status, replay.status) == (200, 200)
    assert b"[DONE]" in first.answer
    assert replay.answer == first.answer
    assert replay.answer_headers["content-type"] == "text/event-stream"
    assert replay.answer_headers["x-routing-replayed"] == "true"


@pytest.mark.parametrize(("provider", "stream"), [("silent", False), ("silent", True), ("stall", True)])
async def test_call_cancelled_by_its_caller_is_not_stored(key, loopback, provider, stream) -> None:
    async with loopback.serve():
        call = chat_call(key, provider, KEY, stream=stream)
        running = asyncio.create_task(call.run())
        await (call.begun if provider == "stall" else loopback.requested).wait()
        call.disconnected.set()
        await running
    assert await asyncio.to_thread(IdempotencyRecord.objects.count) == 0


async def test_repeated_key_during_the_first_call_is_409(key: str, loopback: Loopback) -> None:
    async with loopback.serve():
        first = chat_call(key, "stall", KEY, stream=True)
        running = asyncio.create_task(first.run())
        await first.begun.wait()
        second = await chat_call(key, "stall", KEY, stream=True).run()
        first.disconnected.set()
        await running
    assert (second.status, json.loads(second.answer)["error"]["code"]) == (409, "idempotency_key_in_use")
    assert second.answer_headers["retry-after"] == "1"
    assert second.answer_headers["x-should-retry"] == "true"


async def test_only_one_of_many_concurrent_calls_with_the_same_key_is_made(key: str, loopback: Loopback) -> None:
    async with loopback.serve():
        calls = await asyncio.gather(*(chat_call(key, "plain", KEY).run() for _ in range(8)))
        replay = await chat_call(key, "plain", KEY).run()
    answered = [call for call in calls if call.status == 200 and "x-routing-replayed" not in call.answer_headers]
    assert len(answered) == 1
    assert {call.status for call in calls} <= {200, 409}
    assert replay.answer == answered[0].answer
