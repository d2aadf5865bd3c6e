"""Streamed responses. Once a stream has content, no other candidate is called. Its last event is a Finish or a Failure.

Events are batched by the provider's blocks of bytes, so that the gateway sends them together as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace

from capabilities.core.protocols.stream import is_content
from capabilities.core.translatable import translatable
from capabilities.core.wire import Delta, Failure, Fault, Finish, StreamDecoder, StreamEvent
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.core.fallback.table import TABLE
from routing_admin.upstream.bodies import (
    STREAM_BYTES,
    AnswerTooLargeError,
    BadEncodingError,
    CutEncodingError,
    Decompressor,
    LineLengthGuard,
)
from routing_admin.upstream.exchange import PhaseTimer, WaitTooLongError
from routing_admin.upstream.faults import failure
from routing_admin.upstream.response import BrokenBodyError, UpstreamResponse

DRAIN_SECONDS = 0.25
END_SECONDS = 2.0
"""Seconds to wait after the finish reason for the usage and the final event, which normally follow immediately."""

UNREADABLE = translatable("The gateway could not read this answer (%(kind)s); its own log has the details.")
log = logging.getLogger("routing_admin.upstream.streams")
Batch = Sequence[StreamEvent]
"""Events that arrived together, at least one; the last event of a stream is a `Finish` or a `Failure`."""


class Stream:
    """A stream that has content, in batches; its last event says how it ended."""

    def __init__(self, head: Batch, rest: AsyncGenerator[Batch, None] | None = None) -> None:
        self._head: Batch = head
        self._rest = rest

    def __aiter__(self) -> Stream:
        return self

    def __anext__(self) -> Awaitable[Batch]:
        # Return the generator's own awaitable, because a wrapper would add overhead to every batch.
        return self._begin() if self._head or self._rest is None else anext(self._rest)

    async def _begin(self) -> Batch:
        head, self._head = self._head, ()
        if not head:
            raise StopAsyncIteration
        return head

    async def aclose(self) -> None:
        """Close the connection, unless it was already closed at the end of the stream."""
        if self._rest is not None:
            await self._rest.aclose()


async def wait_for_content(batches: AsyncGenerator[Batch, None]) -> Stream | Failure:
    """Return the stream once it has content, or a `Failure` if the stream fails or ends before that.

    Reasoning is held back until then, so that another candidate can still be called if the stream fails.
    """
    stream: Stream | None = None
    try:
        outcome = await _read_head(batches)
        if isinstance(outcome, Failure):
            return outcome
        stream = Stream(outcome, batches)
        return stream
    finally:
        if stream is None:
            await batches.aclose()


async def _read_head(batches: AsyncGenerator[Batch, None]) -> list[StreamEvent] | Failure:
    head: list[StreamEvent] = []
    async for batch in batches:
        head += batch
        last = head[-1]
        has_content = any(is_content(event) for event in batch)
        if isinstance(last, Failure) and not has_content:
            return before_content(last)
        if isinstance(last, Finish) and not has_content:
            reasoned = any(isinstance(event, Delta) and (event.reasoning or event.thoughts) for event in head)
            return head if reasoned or last.explains_silence else failure(Fault.EMPTY_CONTENT, 200).counted(last.usage)
        if has_content:
            return head
    return failure(Fault.STREAM_EMPTY, 200)


def unreadable(error: Exception) -> Failure:
    """Return the failure for an answer that a bug of ours made unreadable, and log the traceback."""
    log.error("a provider's answer could not be read", exc_info=error)
    return Failure(Fault.BAD_SHAPE, translatable(UNREADABLE, kind=type(error).__name__), 200)


def before_content(failed: Failure) -> Failure:
    """Convert a failure before the first content to a fault after which another candidate may be called."""
    faults_before_content = {
        Fault.STREAM_TRUNCATED: Fault.STREAM_EMPTY,
        Fault.STREAM_BROKEN: Fault.RESET_BEFORE_HEADERS,
        Fault.STREAM_STALL: Fault.TTFT_TIMEOUT,
    }
    return replace(failed, fault=faults_before_content.get(failed.fault, failed.fault))


def after_content(event: Failure) -> Failure:
    """After the first content, convert a failure to `STREAM_BROKEN`, unless its fault is one that can occur there."""
    if TABLE[event.fault].after_content or event.fault is Fault.DEADLINE:
        return event
    return replace(event, fault=Fault.STREAM_BROKEN, code=event.code or event.fault.value)


async def event_batches(
    head: UpstreamResponse,
    decoder: StreamDecoder,
    timeouts: Timeouts,
    timer: PhaseTimer,
    redact: Callable[[Failure], Failure],
) -> AsyncGenerator[Batch, None]:
    """Yield the events of a streamed response block by block, ending with a `Finish` or a `Failure`.

    `redact` is applied to failures after the first content.

    Before the first content, every complete line restarts the timeout, including keep-alive comments. After the first
    content only events restart it, so that comments cannot keep a dead stream open. After the finish reason, the answer
    is complete: wait only briefly for the usage and the final event, and ignore errors.
    """
    clock = asyncio.get_running_loop().time
    content, last_activity = False, clock()
    try:
        reader = _BodyBlocks(head)
        while True:
            block: bytes | Failure | None
            try:
                with timer.until(last_activity + _timeout(timeouts, content=content, due=decoder.due)):
                    block = await reader.block()
            except WaitTooLongError as timeout:
                block = _timeout_failure(timeout, content=content)
            try:
                events = decoder.feed(block) if isinstance(block, bytes) else _last_events(decoder, block)
            except Exception as error:
                # If a bug of ours makes an answer unreadable, yield a failure, because another candidate's answer may
                # be readable.
                if content:
                    raise
                events, block = [unreadable(error)], None
            if events or (not content and isinstance(block, bytes) and b"\n" in block):
                last_activity = clock()
            if events:
                content = content or any(map(is_content, events))
                last = events[-1]
                if content and isinstance(last, Failure):
                    events[-1] = redact(after_content(last))
                yield events
                if isinstance(last, (Finish, Failure)):
                    await _drain(reader, timer, last)
                    return
            if not isinstance(block, bytes):
                return
    finally:
        timer.close()
        head.close()


def _timeout(timeouts: Timeouts, *, content: bool, due: bool) -> float:
    timeout = timeouts.between if content else timeouts.first_content
    # After the finish reason, only the usage and the final event can follow.
    return min(timeout, END_SECONDS) if due else timeout


def _timeout_failure(timeout: WaitTooLongError, *, content: bool) -> Failure:
    if timeout.total:
        return failure(Fault.DEADLINE, 200)
    return failure(Fault.STREAM_STALL if content else Fault.TTFT_TIMEOUT, 200)


def _last_events(decoder: StreamDecoder, failed: Failure | None) -> list[StreamEvent]:
    events = decoder.close()
    last = events[-1] if events else None
    # A stream that breaks after its finish reason counts as complete.
    if failed is None or isinstance(last, Finish):
        return events
    return [failed.counted(last.usage) if isinstance(last, Failure) and last.usage else failed]


class _BodyBlocks:
    """The decompressed blocks of a streamed body, within the limits on its size and on the length of its lines."""

    def __init__(self, head: UpstreamResponse) -> None:
        self._head = head
        self._decompressor: Decompressor | None = None
        self._lines = LineLengthGuard()

    async def block(self) -> bytes | Failure | None:
        """Return the next block, None at the end of the body, or a `Failure` if the body is broken."""
        try:
            if self._decompressor is None:
                self._decompressor = Decompressor(self._head.headers.get("content-encoding", ""), STREAM_BYTES)
            block = await self._head.block()
            if not block:
                self._decompressor.end()
                return None
            text = self._decompressor.feed(block)
            self._lines.feed(text)
        except AnswerTooLargeError:
            return failure(Fault.TOO_LARGE, self._head.status)
        except CutEncodingError:
            return failure(Fault.STREAM_BROKEN, self._head.status)
        except BadEncodingError:
            return failure(Fault.BAD_CONTENT_TYPE, self._head.status)
        except BrokenBodyError as broken:
            fault = Fault.STREAM_BROKEN if broken.fault is Fault.TRUNCATED_BODY else broken.fault
            return failure(fault, self._head.status)
        return text


async def _drain(reader: _BodyBlocks, timer: PhaseTimer, event: StreamEvent) -> None:
    if not isinstance(event, Finish):
        return
    # Read to the end of the response, so that the connection can serve the next call.
    until = asyncio.get_running_loop().time() + DRAIN_SECONDS
    try:
        with timer.until(until):
            while isinstance(await reader.block(), bytes):
                pass
    except WaitTooLongError:
        return
