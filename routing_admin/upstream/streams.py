"""A streamed answer: events as they come, committed at its first content, ended in order or by a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace

from capabilities.core.protocols.finish import EXPLAINS_SILENCE
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, StreamDecoder, StreamEvent, ToolCallDelta
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.core.fallback.table import AFTER_CONTENT
from routing_admin.upstream.bodies import STREAM_BYTES, AnswerTooLargeError, BadEncodingError, Lines, Plain
from routing_admin.upstream.exchange import BrokenBodyError, Head
from routing_admin.upstream.faults import failure

DRAIN_SECONDS = 0.25
FAREWELL_SECONDS = 2.0
"""How long the count and the goodbye are waited for once the reason to stop has come; both follow it at once."""


class Stream:
    """Events of a stream that has its first content; the last one is a `Finish`, or a `Failure` when it broke."""

    def __init__(
        self,
        head: Sequence[StreamEvent],
        rest: AsyncGenerator[StreamEvent, None] | None = None,
        tidy: Callable[[Failure], Failure] = lambda failed: failed,
    ) -> None:
        self._head = head
        self._rest = rest
        self._tidy = tidy

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        try:
            for event in self._head:
                yield event
            if self._rest is not None:
                async for event in self._rest:
                    yield self._tidy(after_content(event)) if isinstance(event, Failure) else event
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connection; a stream that was read to its end has nothing left to close."""
        if self._rest is not None:
            await self._rest.aclose()


async def begin(events: AsyncGenerator[StreamEvent, None], tidy: Callable[[Failure], Failure]) -> Stream | Failure:
    """The stream once its first content is there; a Failure when it fails, ends or says nothing before.

    Reasoning is kept back until then, so that a start that fails can still go to another candidate. `tidy` is applied
    to a failure that comes later.
    """
    stream: Stream | None = None
    try:
        outcome = await _beginning(events)
        if isinstance(outcome, Failure):
            return outcome
        stream = Stream(outcome, events, tidy)
        return stream
    finally:
        if stream is None:
            await events.aclose()


async def _beginning(events: AsyncGenerator[StreamEvent, None]) -> list[StreamEvent] | Failure:
    head: list[StreamEvent] = []
    async for event in events:
        if isinstance(event, Failure):
            return before_content(event)
        head.append(event)
        if isinstance(event, Finish):
            thought = any(isinstance(one, Delta) and one.reasoning for one in head)
            return head if thought or event.finish_reason in EXPLAINS_SILENCE else failure(Fault.EMPTY_CONTENT, 200)
        if _is_content(event):
            return head
    return failure(Fault.STREAM_EMPTY, 200)


def before_content(failed: Failure) -> Failure:
    """A failure before the first content is one that another candidate can make good."""
    kinder = {
        Fault.STREAM_TRUNCATED: Fault.STREAM_EMPTY,
        Fault.STREAM_BROKEN: Fault.RESET_BEFORE_HEADERS,
        Fault.STREAM_STALL: Fault.TTFT_TIMEOUT,
    }
    return replace(failed, fault=kinder.get(failed.fault, failed.fault))


def after_content(event: Failure) -> Failure:
    """A failure after the first content is a broken stream, whatever the provider calls it."""
    if event.fault in AFTER_CONTENT or event.fault is Fault.DEADLINE:
        return event
    return replace(event, fault=Fault.STREAM_BROKEN, code=event.code or event.fault.value)


async def events_of(
    head: Head, decoder: StreamDecoder, timeouts: Timeouts, deadline: float
) -> AsyncGenerator[StreamEvent, None]:
    """Events of a streamed response; `deadline` in the loop's time. Ends after a `Finish` or a `Failure`.

    Before the first content every whole line is a sign of life, keep-alive comments included; after it only events
    are, so that comments cannot hold a dead stream open. Once the reason to stop has come the answer is whole: the
    count and the goodbye are waited for a little, and a line that breaks then breaks nothing.
    """
    clock = asyncio.get_running_loop().time
    blocks = _blocks(head)
    content, alive = False, clock()
    try:
        while True:
            limit = alive + _patience(timeouts, content=content, due=decoder.due)
            found = await _in_time(blocks, min(limit, deadline), _lateness(content, over=deadline <= limit))
            events = decoder.feed(found) if isinstance(found, bytes) else _last_events(decoder, found)
            if events or (not content and isinstance(found, bytes) and b"\n" in found):
                alive = clock()
            for event in events:
                content = content or _is_content(event)
                yield event
                if not isinstance(event, Delta):
                    await _drain(blocks, event)
                    return
            if found is None:
                return
    finally:
        await blocks.aclose()
        await head.close()


def _patience(timeouts: Timeouts, *, content: bool, due: bool) -> float:
    """Seconds that may pass before the next sign of life."""
    usual = timeouts.between if content else timeouts.first_content
    return min(usual, FAREWELL_SECONDS) if due else usual


def _lateness(content: bool, *, over: bool) -> Fault:
    """What it is when nothing comes in time; `over` when the whole request's time is up."""
    if over:
        return Fault.DEADLINE
    return Fault.STREAM_STALL if content else Fault.TTFT_TIMEOUT


async def _in_time(blocks: AsyncGenerator[bytes | Failure, None], until: float, late: Fault) -> bytes | Failure | None:
    """The next block, None at the end of the body; the failure that lateness is when none comes."""
    try:
        async with asyncio.timeout_at(until):
            return await anext(blocks, None)
    except TimeoutError:
        return failure(late, 200)


def _last_events(decoder: StreamDecoder, failed: Failure | None) -> list[StreamEvent]:
    """What is owed at the end; a stream that broke after its reason to stop had come is whole all the same."""
    events = decoder.close()
    whole = bool(events) and isinstance(events[-1], Finish)
    return events if failed is None or whole else [failed]


def _is_content(event: StreamEvent) -> bool:
    return isinstance(event, Delta) and bool(event.text or event.tool_calls or event.refusal)


async def _blocks(head: Head) -> AsyncGenerator[bytes | Failure, None]:
    """Plain blocks of the body within its bounds; a Failure as the last one when it breaks."""
    try:
        plain, lines = Plain(head.headers.get("content-encoding", ""), STREAM_BYTES), Lines()
        async for block in head.blocks():
            text = plain.feed(block)
            lines.feed(text)
            yield text
    except AnswerTooLargeError:
        yield failure(Fault.TOO_LARGE, head.status)
    except BadEncodingError:
        yield failure(Fault.BAD_CONTENT_TYPE, head.status)
    except BrokenBodyError as broken:
        fault = Fault.STREAM_BROKEN if broken.fault is Fault.TRUNCATED_BODY else broken.fault
        yield failure(fault, head.status)


async def _drain(blocks: AsyncGenerator[bytes | Failure, None], event: StreamEvent) -> None:
    """After a Finish read what little is left, so that the connection can serve the next call."""
    if not isinstance(event, Finish):
        return
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in blocks:
                pass
    except TimeoutError:
        return


def events_from(answer: Answer) -> list[StreamEvent]:
    """A whole answer as the events of a stream, for a provider that does not stream when asked to."""
    calls = tuple(
        ToolCallDelta(at, call.id, call.name, call.arguments, call.signature)
        for at, call in enumerate(answer.tool_calls)
    )
    delta = Delta(answer.text, answer.reasoning or "", answer.refusal or "", calls)
    return [delta, Finish(answer.finish_reason, answer.usage, answer.model, answer.id)]
