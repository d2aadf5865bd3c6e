"""On shutdown, calls that are still running after the drain time get an error."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator

import pytest
from asgiref.sync import sync_to_async

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Delta, StreamEvent
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.dispatch.plan import plan_request, record_plan
from routing_admin.dispatch.recorded import record_stream
from routing_admin.dispatch.send import Dispatch, NetworkTransport
from routing_admin.gateway.chat.rendering import Chunks
from routing_admin.gateway.streaming import AnswerStream
from routing_admin.platform.server.draining import Draining, DrainingError, draining
from routing_admin.request_log.journal import journal
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.upstream import Stream
from tests.gateway.plane import logged


async def test_waiting_and_new_calls_fail_after_the_drain_time():
    draining, started = Draining(), asyncio.Event()

    async def wait() -> None:
        with draining.limit():
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await started.wait()
    draining.end()
    with pytest.raises(DrainingError):
        await task
    with pytest.raises(DrainingError):
        await wait()


async def test_timeout_and_cancellation_are_not_changed_to_draining_errors():
    draining = Draining()
    with pytest.raises(TimeoutError), draining.limit():
        raise TimeoutError
    started = asyncio.Event()
    task = asyncio.create_task(_wait_forever(draining, started))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _wait_forever(draining: Draining, begun: asyncio.Event) -> None:
    with draining.limit():
        begun.set()
        await asyncio.Event().wait()


async def test_signal_starts_the_drain_and_the_servers_handler_still_runs():
    called_handlers: list[str] = []
    drained = asyncio.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    class Listening(Draining):
        def schedule_end(self) -> None:
            called_handlers.append("drain")
            drained.set()

    try:
        signal.signal(signal.SIGTERM, lambda number, frame: called_handlers.append("server"))
        Listening().listen()
        signal.raise_signal(signal.SIGTERM)
        await drained.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert sorted(called_handlers) == ["drain", "server"]


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
async def test_stream_that_exceeds_the_drain_time_ends_with_a_logged_error_event(key: str):
    state = await sync_to_async(snapshot.current)()
    route = RouteSpec("draft", (CandidateSpec("echo", "echo-text"),))
    chat = ChatRequest((Message(Role.USER, (TextPart("hello"),)),))
    planned = await sync_to_async(plan_request)(state, route, chat, stream=True)
    recorder = RequestRecorder("drained-one", "v1", journal())
    record_plan(recorder, planned, "draft")
    silent = asyncio.Event()
    dispatch = Dispatch(planned, Endless(silent))
    done = await record_stream(dispatch, recorder)
    flow = AnswerStream(
        result=done,
        dispatch=dispatch,
        recorder=recorder,
        events=Chunks("echo-text"),
        request_id="drained-one",
        agent="text-agent",
    ).blocks()
    assert key
    assert b'"content":"so far"' in await anext(flow)
    waiting = asyncio.ensure_future(anext(flow))
    await silent.wait()
    draining().give_up()
    last = json.loads((await waiting).removeprefix(b"data: "))
    assert last["error"]["code"] == "server_draining"
    assert await anext(flow, None) is None
    row = await sync_to_async(logged)("drained-one")
    assert (row.outcome, row.status) == ("server_draining", 200)


class Endless(NetworkTransport):
    """A provider whose stream stalls after its first content and then sets `silent`."""

    def __init__(self, silent: asyncio.Event) -> None:
        super().__init__()
        self.silent = silent

    async def open(self, *_: object) -> Stream:
        return Stream([Delta("so far")], self.silence())

    async def silence(self) -> AsyncGenerator[StreamEvent, None]:
        self.silent.set()
        await asyncio.Event().wait()
        yield Delta("never")
