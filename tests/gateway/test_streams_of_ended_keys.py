"""A stream ends when its key expires or is revoked, with an error in the API's format. The log records the reason."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from capabilities.actors import Actor
from capabilities.models import AgentKey
from routing_admin.configuration.agents.actions import revoke_key, roll_key
from routing_admin.gateway.open_streams import open_streams
from tests.gateway.asgi_caller import Call, Loopback, headers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ME = Actor("person", "me", "", "")
REQUEST = {"messages": [{"role": "user", "content": "hi"}], "input": "hi", "max_tokens": 9, "stream": True}
LAST = {
    "/v1/chat/completions": ('data: {"error":', "key_ended"),
    "/v1/messages": ("event: error", "authentication_error"),
    "/v1/responses": ("event: response.failed", "key_ended"),
}


def stalled(key: str, path: str = "/v1/chat/completions") -> Call:
    body = json.dumps({"model": "stall/bench", **REQUEST}).encode()
    return Call([body], headers(key, len(body), [(b"x-request-id", b"the-call")]), path=path)


def revoke(key: str) -> None:
    revoke_key(ME, AgentKey.objects.select_related("agent").get(public_id=key.split("_")[1]))


@pytest.mark.parametrize("path", LAST)
async def test_stream_with_a_revoked_key_ends_with_an_error_event(key: str, loopback: Loopback, path: str):
    call = stalled(key, path)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await call.begun.wait()
        await asyncio.to_thread(revoke, key)
        await asyncio.to_thread(open_streams().look)
        await running
        await loopback.closed.wait()
    beginning, code = LAST[path]
    event = call.answer.decode().rstrip().rsplit("\n\n", 1)[-1]
    assert event.startswith(beginning)
    assert code in event
    assert "before the answer was complete" in event
    row = await asyncio.to_thread(logged, "the-call")
    assert (row.outcome, row.status) == ("key_ended", 200)


async def test_stream_continues_while_its_key_is_valid(key: str, loopback: Loopback):
    """A rolled key stays valid until the overlap is over."""
    call = stalled(key)

    def roll() -> None:
        row = AgentKey.objects.select_related("agent").get(public_id=key.split("_")[1])
        roll_key(ME, row, overlap=timedelta(hours=1))

    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await call.begun.wait()
        await asyncio.to_thread(roll)
        await asyncio.to_thread(open_streams().look)
        await asyncio.to_thread(open_streams().look)
        assert (len(open_streams()), "key_ended" in call.answer.decode()) == (1, False)
        await asyncio.to_thread(open_streams().look, timezone.now() + timedelta(hours=2))
        await running
    assert "key_ended" in call.answer.decode()
    assert len(open_streams()) == 0
