"""Callers that leave, or take nothing of their answer: the provider is hung up on, and the log says who left."""

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
    """Providers of this machine."""
    with loopback_providers() as providers:
        yield providers


async def outcome() -> tuple[str, int, list[str]]:
    """What the log has of the call: its outcome, its status, what came of each attempt."""

    def read() -> tuple[str, int, list[str]]:
        row = logged("the-call")
        return row.outcome, row.status, [attempt.outcome for attempt in row.attempts.all()]

    return await asyncio.to_thread(read)


LEFT = ("client_cancelled", 499, ["client_cancelled"])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_that_leaves_before_the_answer_ends_the_call(key, loopback, stream):
    """The provider's connection is closed, the application returns without a word, the log says who left."""
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
    """After the first words, too; nothing is sent to whom has left."""
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
    """Whoever leaves at once, sooner than the watch begins, has left all the same."""
    call = chat_call(key, "silent", ID)
    call.left.set()
    async with loopback.serve():
        await call.run()
    assert call.sent == []
    assert (await outcome())[:2] == LEFT[:2]


async def test_a_caller_that_leaves_within_its_body_has_not_called(key):
    """Nothing is answered, nothing is asked of anybody."""
    call = chat_call(key, "plain", pieces=2)

    async def leave() -> dict[str, object]:
        return await usual() if call.received == 0 else {"type": "http.disconnect"}

    usual, call.receive = call.receive, leave  # type: ignore[method-assign]
    await call.run()
    assert call.sent == []


async def test_a_cancellation_by_the_server_is_no_leaving(key, loopback):
    """A task that its owner cancels ends as cancelled; the provider is hung up on as well."""
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
    """After its time the application gives up, and the provider is hung up on."""
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
    """Answered, failed or left: the only task that is left is the one that asked."""
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", 0.0)
    calls: list[Call] = [chat_call(key, "plain"), chat_call("wrong", "plain"), chat_call(key, "stream", stream=True)]
    async with loopback.serve():
        for call in calls:
            await call.run()
    assert [call.status for call in calls] == [200, 401, 200]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
