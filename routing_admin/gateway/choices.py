"""Serve several answers to one request (`n`) with one concurrent call per answer; if one call fails, all fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import orjson

from capabilities.core.translatable import translatable
from routing_admin.core.planning.model_names import task_name
from routing_admin.dispatch.plan import record_plan
from routing_admin.gateway.answers import (
    AdmittedCall,
    answer_limited,
    answer_streamed,
    answer_whole,
    enter,
    reserve_tokens,
    start_keep_alive,
)
from routing_admin.gateway.chat_api import AnswerChoice, ChatApi, Choices
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.platform.server.draining import DrainingError
from routing_admin.platform.server.fair_semaphore import OverloadedError
from routing_admin.request_log.recorder import RequestRecorder, failure_facts
from routing_admin.request_log.tracing import tracing

KNOWN_ERRORS = (GatewayError, OverloadedError, DrainingError)
"""Errors that have a status and a code of their own."""
ABANDONED = translatable("Another answer to the same request failed, so this one was stopped.")
Abandon = Callable[[BaseException], None]
"""Function that logs that the other calls of a request were stopped because one call raised this error."""


async def answer_several(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder) -> HttpReply:
    """Make one call per requested answer, each with its own reservation and log entry."""
    choices = Choices(admitted.parsed.count)
    first = replace(admitted, parsed=replace(admitted.parsed, choice=AnswerChoice(0, choices)))
    recorder.add_facts(choice=(1, choices.count, call.request_id))
    calls = [(first, recorder), *await _admit_others(call, admitted, recorder, choices)]

    def abandon(error: BaseException) -> None:
        facts: dict[str, Any] = {}
        if isinstance(error, KNOWN_ERRORS):
            facts = {"outcome": error.code, "status": error.status, "error": ABANDONED}
        elif isinstance(error, Exception):
            facts = failure_facts(error)
        for choice_call, choice_recorder in calls if facts else ():
            choice_recorder.end(choice_call.dispatch.attempts, choice_call.dispatch.prepared, **facts)

    is_streamed, quiet = admitted.dispatch.planned.stream, replace(call, keep_alive=None)
    work = answer_streamed if is_streamed else answer_whole
    further = (
        work(quiet, *pair) if pair[0].reservation is None else answer_limited(pair[0].reservation, work(quiet, *pair))
        for pair in calls[1:]
    )
    if is_streamed and call.keep_alive is not None:
        start_keep_alive(call, call.keep_alive, first, recorder)
    try:
        replies = await answer_all([work(quiet, first, recorder), *further], abandon)
    finally:
        if call.keep_alive is not None:
            await call.keep_alive.stop()
    if not is_streamed:
        return merge(admitted.api, replies, choices)
    reply = interleave(replies, choices, abandon)
    if admitted.api.enclose is not None and reply.blocks is not None:
        reply.blocks = admitted.api.enclose(reply.blocks)
    return reply


Calls = list[tuple[AdmittedCall, RequestRecorder]]


async def _admit_others(call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder, choices: Choices) -> Calls:
    calls: Calls = []
    try:
        if call.slot is not None:
            # Occupy the slots for all answers at once, because the request would fail anyway if there are too few.
            call.slot.add(admitted.principal.key_owner, choices.count - 1)
        for index in range(1, choices.count):
            calls.append(await _repeat(call, admitted, recorder, AnswerChoice(index, choices)))
    except BaseException as error:
        if isinstance(error, KNOWN_ERRORS):
            recorder.end(outcome=error.code, status=error.status, error=error.message)
        for choice_call, _ in calls:
            if choice_call.reservation is not None:
                choice_call.reservation.close()
        raise
    return calls


async def _repeat(
    call: HttpCall, admitted: AdmittedCall, recorder: RequestRecorder, choice: AnswerChoice
) -> tuple[AdmittedCall, RequestRecorder]:
    planned, number = admitted.dispatch.planned, choice.index + 1
    # Request ids have at most 64 characters.
    request_id = f"{call.request_id[:61]}~{number}"
    # Every answer has its own entry in the request log.
    choice_recorder = recorder.beside(request_id, admitted.api.surface)
    if tracing().writer is not None:
        choice_recorder.add_trace(admitted.api.path, call.headers)
    record_plan(choice_recorder, planned, planned.plan.task_type)
    parsed = admitted.parsed
    model_name = parsed.model or task_name(parsed.task_type or "")
    choice_recorder.add_facts(asked_model=model_name, choice=(number, choice.of.count, call.request_id))
    dispatch = replace(admitted.dispatch, prepared={}, request_id=request_id)
    choice_call = replace(admitted, dispatch=dispatch, parsed=replace(parsed, choice=choice))
    if admitted.reservation is None:
        return choice_call, choice_recorder
    reservation = admitted.reservation.beside()
    try:
        await enter(reservation, call, 0)
        return await reserve_tokens(reservation, choice_call), choice_recorder
    except BaseException:
        reservation.close()
        raise


async def answer_all(calls: Sequence[Awaitable[HttpReply]], abandon: Abandon) -> list[HttpReply]:
    """Return every call's reply; if a call raises an error, stop all others and raise that error."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException as error:
        abandon(error)
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, HttpReply) and result.blocks is not None:
                await anext(result.blocks, None)  # Closing a generator that has not started would skip its cleanup.
                await result.blocks.aclose()
        raise


def merge(api: ChatApi, replies: Sequence[HttpReply], choices: Choices) -> HttpReply:
    """Return one reply with the answers of all replies and their summed usage."""
    assert api.merge is not None, api.path  # noqa: S101 - it can be asked for several, for the type checker
    body = api.merge([orjson.loads(reply.body) for reply in replies], choices.usage)
    return HttpReply(200, replies[0].headers, orjson.dumps(body))


def interleave(replies: Sequence[HttpReply], choices: Choices, abandon: Abandon) -> HttpReply:
    """Return one stream of all answers' blocks in order of arrival, until the last answer ends or one answer fails."""
    checks = [reply.is_whole for reply in replies]
    merged = HttpReply(200, replies[0].headers)
    merged.blocks = _interleave([reply.blocks for reply in replies if reply.blocks is not None], choices, abandon)
    merged.is_whole = lambda: all(check is not None and check() for check in checks)
    return merged


async def _interleave(
    streams: Sequence[AsyncGenerator[bytes, None]], choices: Choices, abandon: Abandon
) -> AsyncGenerator[bytes, None]:
    ready: asyncio.Queue[tuple[int, bytes | None]] = asyncio.Queue()
    # If the caller reads slowly, buffer only about one block per stream.
    room = asyncio.Semaphore(len(streams))
    tasks = [asyncio.ensure_future(_forward(index, stream, ready, room)) for index, stream in enumerate(streams)]
    count = len(tasks)
    try:
        await asyncio.sleep(0)  # Let every task start, so that its cleanup is certain to run.
        while count:
            index, block = await ready.get()
            room.release()
            if choices.failed not in (None, index):
                continue  # Nothing may follow the failed answer's error in the stream.
            if block is not None:
                yield block
            elif choices.failed is None:
                count -= 1
            else:
                break
    finally:
        if choices.error is not None:
            abandon(choices.error)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _forward(
    index: int,
    stream: AsyncGenerator[bytes, None],
    ready: asyncio.Queue[tuple[int, bytes | None]],
    room: asyncio.Semaphore,
) -> None:
    try:
        async for block in stream:
            # Do not wait here: meanwhile, another answer could add a block after an error that ends the whole stream.
            ready.put_nowait((index, block))
            await room.acquire()
    finally:
        await stream.aclose()
    ready.put_nowait((index, None))


async def enclose_list(blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Join elements that each begin with a comma into a JSON array: omit the first comma and add brackets."""
    async with aclosing(blocks):
        prefix = b"["
        async for block in blocks:
            yield prefix + block.removeprefix(b",") if prefix else block
            prefix = b""
        yield prefix + b"]"
