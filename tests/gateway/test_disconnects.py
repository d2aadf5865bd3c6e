"""When a client disconnects or stops reading, the upstream connection is closed, and the log names the cause."""

from __future__ import annotations

import asyncio

import pytest

from routing_admin.gateway import application
from tests.gateway.asgi_caller import Call, chat_call
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ID = (b"x-request-id", b"the-call")


async def logged_outcome() -> tuple[str, int, list[str]]:
    def read() -> tuple[str, int, list[str]]:
        row = logged("the-call")
        return row.outcome, row.status, [attempt.outcome for attempt in row.attempts.all()]

    return await asyncio.to_thread(read)


DISCONNECTED = ("client_cancelled", 499, ["client_cancelled"])


@pytest.mark.parametrize("stream", [False, True])
async def test_disconnect_before_the_answer_ends_the_call(key, loopback, stream):
    call = chat_call(key, "silent", ID, stream=stream)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await loopback.requested.wait()
        call.disconnected.set()
        await running
        await loopback.closed.wait()
    assert call.sent == []
    assert (running.cancelled(), running.cancelling()) == (False, 0)
    assert await logged_outcome() == DISCONNECTED


async def test_disconnect_during_a_stream_ends_the_stream(key, loopback):
    call = chat_call(key, "stall", ID, stream=True)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await call.begun.wait()
        call.disconnected.set()
        await running
        await loopback.closed.wait()
    assert b"[DONE]" not in call.answer
    assert call.sent[-1]["more_body"]
    assert await logged_outcome() == (*DISCONNECTED[:2], ["ok"]), "the candidate answered, and the caller disconnected"


async def test_disconnect_before_the_disconnect_watch_starts_is_noticed(key, loopback):
    call = chat_call(key, "silent", ID)
    call.disconnected.set()
    async with loopback.serve():
        await call.run()
    assert call.sent == []
    assert (await logged_outcome())[:2] == DISCONNECTED[:2]


async def test_disconnect_during_the_request_body_makes_no_upstream_call(key):
    call = chat_call(key, "plain", pieces=2)

    async def disconnect() -> dict[str, object]:
        return await receive() if call.received == 0 else {"type": "http.disconnect"}

    receive, call.receive = call.receive, disconnect  # type: ignore[method-assign]
    await call.run()
    assert call.sent == []


async def test_cancellation_by_the_server_is_not_treated_as_a_disconnect(key, loopback):
    call = chat_call(key, "silent", ID)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await loopback.requested.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await loopback.closed.wait()
    assert running.cancelled()


async def test_caller_that_stops_reading_its_stream_is_disconnected(key, loopback, monkeypatch):
    monkeypatch.setattr(application, "READ_TIMEOUT_SECONDS", 0.01)
    call = chat_call(key, "stall", ID, stream=True)

    async def stop_reading(message: object) -> None:
        await send(message)
        if len(call.sent) > 1:
            await asyncio.Event().wait()

    send, call.send = call.send, stop_reading  # type: ignore[method-assign]
    async with loopback.serve():
        with pytest.raises(TimeoutError):
            await call.run()
        await loopback.closed.wait()
    assert (await logged_outcome())[:2] == DISCONNECTED[:2]


async def test_disconnect_watch_ends_with_its_call(key, loopback, monkeypatch):
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", 0.0)
    calls: list[Call] = [chat_call(key, "plain"), chat_call("wrong", "plain"), chat_call(key, "stream", stream=True)]
    async with loopback.serve():
        for call in calls:
            await call.run()
    assert [call.status for call in calls] == [200, 401, 200]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
