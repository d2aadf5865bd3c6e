"""Clients that disconnect or stop reading: the upstream connection is closed, and the log says who ended the call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from routing_admin.gateway import application
from tests.gateway.asgi_caller import Call, Loopback, chat_call, loopback_providers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ID = (b"x-request-id", b"the-call")


@pytest.fixture
def loopback(demo: None) -> Iterator[Loopback]:
    with loopback_providers() as providers:
        yield providers


async def outcome() -> tuple[str, int, list[str]]:
    def read() -> tuple[str, int, list[str]]:
        row = logged("the-call")
        return row.outcome, row.status, [attempt.outcome for attempt in row.attempts.all()]

    return await asyncio.to_thread(read)


LEFT = ("client_cancelled", 499, ["client_cancelled"])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_that_leaves_before_the_answer_ends_the_call(key, loopback, stream):
    """A disconnect before the answer closes the upstream connection, sends nothing and is logged as the client's."""
    call = chat_call(key, "silent", ID, stream=stream)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await loopback.asked.wait()
        call.left.set()
        await running
        await loopback.closed.wait()
    assert call.sent == []
    assert (running.cancelled(), running.cancelling()) == (False, 0)
    assert await outcome() == LEFT


async def test_a_caller_that_leaves_within_a_stream_ends_it(key, loopback):
    """A disconnect after the first content ends the stream, and nothing more is sent."""
    call = chat_call(key, "stall", ID, stream=True)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await call.begun.wait()
        call.left.set()
        await running
        await loopback.closed.wait()
    assert b"[DONE]" not in call.answer
    assert call.sent[-1]["more_body"]
    assert await outcome() == (*LEFT[:2], ["ok"]), "the candidate answered; who left is the caller"


async def test_a_caller_that_left_before_it_was_watched_is_noticed(key, loopback):
    """A disconnect before the watch begins ends the call too."""
    call = chat_call(key, "silent", ID)
    call.left.set()
    async with loopback.serve():
        await call.run()
    assert call.sent == []
    assert (await outcome())[:2] == LEFT[:2]


async def test_a_caller_that_leaves_within_its_body_has_not_called(key):
    """A disconnect before the end of the body sends nothing, to the client or upstream."""
    call = chat_call(key, "plain", pieces=2)

    async def leave() -> dict[str, object]:
        return await usual() if call.received == 0 else {"type": "http.disconnect"}

    usual, call.receive = call.receive, leave  # type: ignore[method-assign]
    await call.run()
    assert call.sent == []


async def test_a_cancellation_by_the_server_is_no_leaving(key, loopback):
    """A task cancelled by the server ends as cancelled, and the upstream connection is closed."""
    call = chat_call(key, "silent", ID)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await loopback.asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await loopback.closed.wait()
    assert running.cancelled()


async def test_a_caller_that_takes_nothing_of_its_stream_is_let_go(key, loopback, monkeypatch):
    """A client that stops reading ends the call after a timeout, and the upstream connection is closed."""
    monkeypatch.setattr(application, "SLOWEST_READER_SECONDS", 0.01)
    call = chat_call(key, "stall", ID, stream=True)

    async def stop_reading(message: object) -> None:
        await usual(message)
        if len(call.sent) > 1:
            await asyncio.Event().wait()

    usual, call.send = call.send, stop_reading  # type: ignore[method-assign]
    async with loopback.serve():
        with pytest.raises(TimeoutError):
            await call.run()
        await loopback.closed.wait()
    assert (await outcome())[:2] == LEFT[:2]


async def test_no_watch_outlives_its_call(key, loopback, monkeypatch):
    """No disconnect watch is left after an answer, a refusal or a stream."""
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", 0.0)
    calls: list[Call] = [chat_call(key, "plain"), chat_call("wrong", "plain"), chat_call(key, "stream", stream=True)]
    async with loopback.serve():
        for call in calls:
            await call.run()
    assert [call.status for call in calls] == [200, 401, 200]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
