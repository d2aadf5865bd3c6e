"""One HTTP exchange: a request sent, an answer's head had, its body read within time and size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, replace

import httpx

from capabilities.core.providers.redaction import brief
from capabilities.core.wire import Failure, Fault, MediaData, UpstreamRequest
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream.bodies import ANSWER_BYTES, AnswerTooLargeError, BadEncodingError, Plain, RequestBody
from routing_admin.upstream.faults import CLIENT_ERRORS, connection_failure, failure, fault_of
from routing_admin.upstream.transports import Transports

KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization")
CODE_BYTES = 200
SLOWEST_BYTES = 1024
"""Bytes that must arrive in a third of the time allowed between contents (1 KiB in 10 s by default)."""
OWN_BODY_FAULTS = frozenset({Fault.BAD_HTTP, Fault.TOO_LARGE})
"""What is told of a body that broke off, where the reason is known."""
READ_AFTER_END = "Connection closed."
"""What the client says, as a bare RuntimeError, to who reads on after the connection was closed within the body."""


class BrokenBodyError(Exception):
    """A body that came to no end of its own; `fault` says whether it broke off, or broke the rules of HTTP."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Head:
    """An answer whose head is here and whose body is still to be read."""

    response: httpx.Response

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, names in lower case."""
        return self.response.headers

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, still encoded; raises `BrokenBodyError`, and nothing else for what a provider does."""
        try:
            async for block in self.response.stream:  # type: ignore[union-attr]  # the transport's streams are async
                yield block
        except CLIENT_ERRORS as error:
            fault = fault_of(error)
            raise BrokenBodyError(fault if fault in OWN_BODY_FAULTS else Fault.TRUNCATED_BODY) from error
        except RuntimeError as error:
            if str(error) != READ_AFTER_END:
                raise
            raise BrokenBodyError(Fault.BAD_HTTP) from error

    async def close(self) -> None:
        """Give the connection back, or close it when the body is not read to its end."""
        try:
            await self.response.aclose()
        except CLIENT_ERRORS:
            return


async def send(request: UpstreamRequest, transports: Transports, proxy: str, timeouts: Timeouts) -> Head | Failure:
    """Send the request and wait for the answer's head; the transport is called directly, past the client's costs.

    Raises what reading a file of the request raised (`UnreadableError`).
    """
    content = _content(request)
    try:
        prepared = _build_request(request, content, timeouts)
        async with asyncio.timeout(timeouts.first_content):
            head = Head(await transports.get(proxy).handle_async_request(prepared))
    except TimeoutError:
        return failure(Fault.READ_TIMEOUT)
    except CLIENT_ERRORS as error:
        if isinstance(content, RequestBody) and content.error is not None:
            raise content.error from error
        return connection_failure(error)
    if 300 <= head.status < 400:
        await head.close()
        return failure(Fault.REDIRECT, head.status)
    return head


def _content(request: UpstreamRequest) -> bytes | RequestBody | None:
    """The body in one piece, or to be read as it is sent when there are files in it; None for a GET."""
    if request.method == "GET":
        return None
    pieces = request.pieces()
    if any(isinstance(piece, MediaData) for piece in pieces):
        return RequestBody(pieces)
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


def _build_request(request: UpstreamRequest, content: bytes | RequestBody | None, timeouts: Timeouts) -> httpx.Request:
    headers = {**request.headers, "accept-encoding": "identity"}
    if isinstance(content, RequestBody):
        headers["content-length"] = str(content.length)
    extensions = {"timeout": {"connect": timeouts.connect}}
    return httpx.Request(request.method, request.url, headers=headers, content=content, extensions=extensions)


async def read_body(head: Head, timeouts: Timeouts, most: int = ANSWER_BYTES) -> bytes | Failure:
    """The whole plain body; a Failure when it is too large, too slow, breaks off, or is oddly encoded.

    White space before an answer is a provider's sign of life, as long as the first content may take.
    """
    body = bytearray()
    try:
        plain = Plain(head.headers.get("content-encoding", ""), most)
        pace = _Pace(timeouts.between / 3)
        blocks = head.blocks()
        while True:
            begun = bool(body.strip()) if len(body) < SLOWEST_BYTES else True
            block = await _next(blocks, timeouts.between if begun else timeouts.first_content)
            if block is None:
                return bytes(body)
            body += plain.feed(block)
            if begun:
                pace.feed(len(block))
    except TimeoutError:
        return failure(Fault.SLOW_BODY if body.strip() else Fault.READ_TIMEOUT, head.status)
    except _SlowError:
        return failure(Fault.SLOW_BODY, head.status)
    except AnswerTooLargeError:
        return failure(Fault.TOO_LARGE, head.status)
    except BadEncodingError:
        return failure(Fault.BAD_CONTENT_TYPE, head.status)
    except BrokenBodyError as broken:
        return bytes(body) if head.status >= 400 else failure(broken.fault, head.status)
    finally:
        await head.close()


async def _next(blocks: AsyncIterator[bytes], seconds: float) -> bytes | None:
    async with asyncio.timeout(seconds):
        return await anext(blocks, None)


class _SlowError(Exception):
    """Fewer bytes than an honest answer has."""


class _Pace:
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
