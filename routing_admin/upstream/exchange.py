"""One HTTP exchange: send a request, wait for the head of the response, and read the body within limits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Self

from capabilities.core.providers.redaction import summarize
from capabilities.core.wire import Failure, Fault, UpstreamRequest
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream.bodies import (
    ANSWER_BYTES,
    AnswerTooLargeError,
    BadEncodingError,
    Blocks,
    CutEncodingError,
    Decompressor,
    RequestBody,
)
from routing_admin.upstream.connections import Pool
from routing_admin.upstream.faults import CLIENT_ERRORS, connection_failure, failure
from routing_admin.upstream.response import BrokenBodyError, UpstreamResponse

# All waits of an exchange share one event loop timer. A wait only changes the deadline, and the timer is set again if
# it would fire too late or has fired too early.

AHEAD_SECONDS = 5.0
"""Maximum delay of the timer in seconds, so that a shorter wait afterwards rarely needs another timer."""


class WaitTooLongError(Exception):
    """A wait timed out; `total` says whether the whole exchange has timed out."""

    def __init__(self, *, total: bool) -> None:
        super().__init__("the whole time is over" if total else "the time for this is over")
        self.total = total


class PhaseTimer:
    """Timeouts of one exchange: `total` seconds for the whole, and one timeout for each wait; waits do not overlap.

    A wait goes inside `with timer.until(...)`, which raises `WaitTooLongError` on exit if it took too long.
    """

    __slots__ = ("_fired", "_fires_at", "_handle", "_loop", "_other_cancellations", "_task", "_until", "deadline")

    def __init__(self, total: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.deadline = self._loop.time() + total
        self._until = self.deadline
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._fired = False
        self._fires_at = 0.0
        self._other_cancellations = 0

    def until(self, moment: float) -> Self:
        """Return a context manager for a wait until `moment`, in the event loop's time."""
        self._until = min(moment, self.deadline)
        return self

    def within(self, seconds: float) -> Self:
        """Return a context manager for a wait of at most `seconds`."""
        return self.until(self._loop.time() + seconds)

    def __enter__(self) -> None:
        self._task = task = asyncio.current_task(self._loop)
        # Keep a timer that fires earlier, because `_fire` sets it again.
        if self._handle is None or self._fires_at > self._until:
            self._set(self._until)
        self._other_cancellations = task.cancelling() if task is not None else 0

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        task, fired = self._task, self._fired
        self._task, self._fired = None, False
        if kind is None or not fired or task is None:
            return
        # Undo the cancellation, whatever the cancelled wait raised.
        ended = task.uncancel() <= self._other_cancellations
        if ended and issubclass(kind, asyncio.CancelledError):
            raise WaitTooLongError(total=self._until >= self.deadline) from None

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self, until: float) -> None:
        self.close()
        self._fires_at = min(until, self._loop.time() + AHEAD_SECONDS)
        self._handle = self._loop.call_at(self._fires_at, self._fire)

    def _fire(self) -> None:
        self._handle = None
        if self._task is None:
            return
        if self._until > self._loop.time():
            self._set(self._until)
            return
        self._fired = True
        self._task.cancel()


KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization")
CODE_BYTES = 200
MAX_SINGLE_WRITE = 4 * 1024 * 1024
"""Bodies up to this size in bytes are written at once, larger bodies block by block, which bounds memory use."""
MIN_PROGRESS_BYTES = 1024
"""Minimum number of bytes that must arrive in each third of the timeout between chunks, by default in each 10 seconds.

Otherwise, the call fails because the body arrives too slowly.
"""


async def send(
    request: UpstreamRequest, pool: Pool, timeouts: Timeouts, timer: PhaseTimer
) -> UpstreamResponse | Failure:
    """Send the request and wait for the head of the response.

    Raise `UnreadableError` if a file in the request cannot be read.
    """
    content = await _content(request)
    try:
        with timer.within(timeouts.first_content):
            head = await pool.send(request, content, timeouts.connect)
    except WaitTooLongError as timeout:
        return failure(Fault.DEADLINE if timeout.total else Fault.READ_TIMEOUT)
    except CLIENT_ERRORS as error:
        if isinstance(content, RequestBody) and content.error is not None:
            raise content.error from error
        return connection_failure(error)
    if 300 <= head.status < 400:
        head.close()
        return failure(Fault.REDIRECT, head.status)
    return head


async def _content(request: UpstreamRequest) -> Blocks | RequestBody | None:
    if request.method == "GET":
        return None
    pieces = request.pieces()
    if len(pieces) == 1 and isinstance(pieces[0], bytes):
        return (pieces[0],)
    body = RequestBody(pieces)
    if body.length > MAX_SINGLE_WRITE:
        return body
    # Read files from another machine in a thread, because reading them would block the event loop.
    return await asyncio.to_thread(body.blocks) if body.is_remote else body.blocks()


async def read_body(
    head: UpstreamResponse, timeouts: Timeouts, timer: PhaseTimer, max_bytes: int = ANSWER_BYTES
) -> bytes | Failure:
    """Return the whole decompressed body, or a `Failure` if it is too large, too slow, truncated, or badly encoded."""
    texts: list[bytes] = []
    size, begun, rate = 0, False, None
    try:
        decompressor = Decompressor(head.headers.get("content-encoding", ""), max_bytes)
        while True:
            # If the whole body has already arrived, no timeout is needed.
            if head.content.is_eof():
                block = await head.block()
            else:
                with timer.within(timeouts.between if begun else timeouts.first_content):
                    block = await head.block()
            if block:
                texts.append(text := decompressor.feed(block))
                size += len(text)
                # Some providers send whitespace before the answer to keep the connection alive; allow this as long as
                # the timeout for the first content has not passed.
                begun = begun or size >= MIN_PROGRESS_BYTES or not (text.isspace() or not text)
            if not block or head.content.at_eof():
                decompressor.end()
                return b"".join(texts)
            if begun:
                rate = rate or _MinimumRate(timeouts.between / 3)
                rate.feed(len(block))
    except WaitTooLongError as timeout:
        if timeout.total:
            return failure(Fault.DEADLINE)
        return failure(Fault.SLOW_BODY if begun else Fault.READ_TIMEOUT, head.status)
    except _SlowError:
        return failure(Fault.SLOW_BODY, head.status)
    except AnswerTooLargeError:
        return failure(Fault.TOO_LARGE, head.status)
    except (BrokenBodyError, CutEncodingError) as broken:
        fault = broken.fault if isinstance(broken, BrokenBodyError) else Fault.TRUNCATED_BODY
        # Return even a truncated error response, because it describes the error.
        return b"".join(texts) if head.status >= 400 else failure(fault, head.status)
    except BadEncodingError:
        return failure(Fault.BAD_CONTENT_TYPE, head.status)
    finally:
        head.close()


class _SlowError(Exception):
    """The response arrived more slowly than the minimum rate."""


class _MinimumRate:
    def __init__(self, window: float) -> None:
        self._window = window
        self._began = asyncio.get_running_loop().time()
        self._bytes = 0

    def feed(self, count: int) -> None:
        now = asyncio.get_running_loop().time()
        self._bytes += count
        if now - self._began < self._window:
            return
        if self._bytes < MIN_PROGRESS_BYTES:
            raise _SlowError
        self._began, self._bytes = now, 0


def redact_failure(failed: Failure, request: UpstreamRequest) -> Failure:
    """Return the failure with a short message, and without the request's keys, which providers may have echoed."""
    keys = [value.split(" ", 1)[-1] for name, value in request.headers.items() if name.lower() in KEY_HEADERS]
    code = summarize(failed.code, keys, CODE_BYTES) if failed.code else failed.code
    return replace(failed, message=summarize(failed.message, keys), code=code)
