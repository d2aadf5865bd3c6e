"""One HTTP exchange: a request sent, an answer's head had, its body read within time and size."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from capabilities.core.providers.redaction import brief
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
from routing_admin.upstream.faults import CLIENT_ERRORS, connection_failure, failure
from routing_admin.upstream.phase_timer import PhaseTimer, WaitTooLongError
from routing_admin.upstream.pools import Pool
from routing_admin.upstream.response import BrokenBodyError, UpstreamResponse

KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization")
CODE_BYTES = 200
AT_ONCE_BYTES = 4 * 1024 * 1024
"""A body up to this size is written at once, a larger one block by block, so that memory stays flat."""
SLOWEST_BYTES = 1024
"""Bytes that must arrive in a third of the time allowed between contents (1 KiB in 10 s by default)."""


async def send(
    request: UpstreamRequest, pool: Pool, timeouts: Timeouts, timer: PhaseTimer
) -> UpstreamResponse | Failure:
    """Send the request and wait for the answer's head.

    Raises what reading a file of the request raised (`UnreadableError`).
    """
    content = await _content(request)
    try:
        with timer.within(timeouts.first_content):
            head = await pool.send(request, content, timeouts.connect)
    except WaitTooLongError as late:
        return failure(Fault.DEADLINE if late.total else Fault.READ_TIMEOUT)
    except CLIENT_ERRORS as error:
        if isinstance(content, RequestBody) and content.error is not None:
            raise content.error from error
        return connection_failure(error)
    if 300 <= head.status < 400:
        await head.close()
        return failure(Fault.REDIRECT, head.status)
    return head


async def _content(request: UpstreamRequest) -> Blocks | RequestBody | None:
    """The body, or what reads it as it is sent where there are large files in it; None for a GET."""
    if request.method == "GET":
        return None
    pieces = request.pieces()
    if len(pieces) == 1 and isinstance(pieces[0], bytes):
        return (pieces[0],)
    body = RequestBody(pieces)
    if body.length > AT_ONCE_BYTES:
        return body
    return await asyncio.to_thread(body.blocks) if body.is_remote else body.blocks()


async def read_body(
    head: UpstreamResponse, timeouts: Timeouts, timer: PhaseTimer, most: int = ANSWER_BYTES
) -> bytes | Failure:
    """The whole plain body; a Failure when it is too large, too slow, breaks off, or is oddly encoded.

    White space before an answer is a provider's sign of life, as long as the first content may take.
    """
    texts: list[bytes] = []
    size, begun, pace = 0, False, None
    try:
        plain = Decompressor(head.headers.get("content-encoding", ""), most)
        while True:
            if head.has_come():
                block = await head.block()
            else:
                with timer.within(timeouts.between if begun else timeouts.first_content):
                    block = await head.block()
            if block:
                texts.append(text := plain.feed(block))
                size += len(text)
                begun = begun or size >= SLOWEST_BYTES or not (text.isspace() or not text)
            if not block or head.is_read():
                plain.end()
                return b"".join(texts)
            if begun:
                pace = pace or _MinimumRate(timeouts.between / 3)
                pace.feed(len(block))
    except WaitTooLongError as late:
        if late.total:
            return failure(Fault.DEADLINE)
        return failure(Fault.SLOW_BODY if begun else Fault.READ_TIMEOUT, head.status)
    except _SlowError:
        return failure(Fault.SLOW_BODY, head.status)
    except AnswerTooLargeError:
        return failure(Fault.TOO_LARGE, head.status)
    except (BrokenBodyError, CutEncodingError) as broken:
        fault = broken.fault if isinstance(broken, BrokenBodyError) else Fault.TRUNCATED_BODY
        return b"".join(texts) if head.status >= 400 else failure(fault, head.status)
    except BadEncodingError:
        return failure(Fault.BAD_CONTENT_TYPE, head.status)
    finally:
        await head.close()


class _SlowError(Exception):
    """Fewer bytes than an honest answer has."""


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
        if self._bytes < SLOWEST_BYTES:
            raise _SlowError
        self._began, self._bytes = now, 0


def clean(failed: Failure, request: UpstreamRequest) -> Failure:
    """The failure with its sentence short and without this request's keys, whatever the provider echoed."""
    keys = [value.split(" ", 1)[-1] for name, value in request.headers.items() if name.lower() in KEY_HEADERS]
    code = brief(failed.code, keys, CODE_BYTES) if failed.code else failed.code
    return replace(failed, message=brief(failed.message, keys), code=code)
