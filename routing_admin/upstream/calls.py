"""Calling a provider: whole or streamed, on the event loop or from a thread."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

from capabilities.core.providers.origins import EMBEDDED, OriginPolicy, policy_of, refusal
from capabilities.core.wire import Answer, Failure, Fault, UpstreamRequest, WireProtocol
from capabilities.core.worded import worded
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream.exchange import Head, clean, read_body, send
from routing_admin.upstream.faults import failure
from routing_admin.upstream.streams import Stream, begin, events_from, events_of
from routing_admin.upstream.transports import Transports

T = TypeVar("T")

DEFAULT_PROXY = "default"
NO_PROXY = "none"
WHOLE_ANSWERS = ("json", "html")
"""Types of an answer that is no stream; some hosts call theirs plain text or bytes, so what is left is tried."""
NO_NETWORK = worded(
    "%(origin)s is on no network: the embedded provider is asked with the request itself.", origin=EMBEDDED
)


class Upstream:
    """The way out: what may be called, through which proxy, over which connections."""

    def __init__(self, policy: OriginPolicy, proxy: str = "", verify: ssl.SSLContext | None = None) -> None:
        self._policy = policy
        self._proxy = proxy
        self._transports = Transports(policy, verify)

    async def call(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str = DEFAULT_PROXY
    ) -> Answer | Failure:
        """The outcome of a whole exchange; never raises for what a provider does.

        `proxy` is the provider's: `default`, `none` or a URL. Raises `UnreadableError` when a file of the request
        cannot be read.
        """
        try:
            async with asyncio.timeout(timeouts.total):
                outcome = await self._call(request, protocol, timeouts, proxy)
        except TimeoutError:
            outcome = failure(Fault.DEADLINE)
        return clean(outcome, request) if isinstance(outcome, Failure) else outcome

    async def open(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str = DEFAULT_PROXY
    ) -> Stream | Failure:
        """The stream once its first content is there, or the failure before it; the caller closes the stream."""
        deadline = asyncio.get_running_loop().time() + timeouts.total
        try:
            async with asyncio.timeout_at(deadline):
                outcome = await self._open(request, protocol, timeouts, proxy, deadline)
        except TimeoutError:
            outcome = failure(Fault.DEADLINE)
        return clean(outcome, request) if isinstance(outcome, Failure) else outcome

    def call_sync(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str = DEFAULT_PROXY
    ) -> Answer | Failure:
        """`call` for code that has no event loop, on a loop of its own thread."""
        return run_sync(self.call(request, protocol, timeouts, proxy))

    async def close(self) -> None:
        """Close the running loop's connections."""
        await self._transports.close()

    async def _call(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str
    ) -> Answer | Failure:
        head = await self._head(request, timeouts, proxy)
        return head if isinstance(head, Failure) else await _whole(head, protocol, timeouts)

    async def _open(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str, deadline: float
    ) -> Stream | Failure:
        head = await self._head(request, timeouts, proxy)
        if isinstance(head, Failure):
            return failure(Fault.TTFT_TIMEOUT) if head.fault is Fault.READ_TIMEOUT else head
        kind = head.headers.get("content-type", "")
        if head.status != 200 or any(word in kind for word in WHOLE_ANSWERS):
            return await _read_unstreamed(head, protocol, timeouts)
        events = events_of(head, protocol.decoder(), timeouts, deadline)
        return await begin(events, lambda failed: clean(failed, request))

    async def _head(self, request: UpstreamRequest, timeouts: Timeouts, proxy: str) -> Head | Failure:
        refused = NO_NETWORK if request.url == EMBEDDED else refusal(request.url, self._policy)
        if refused is not None:
            return Failure(Fault.ORIGIN_REFUSED, refused)
        through = {DEFAULT_PROXY: self._proxy, NO_PROXY: ""}.get(proxy, proxy)
        return await send(request, self._transports, through, timeouts)


async def _whole(head: Head, protocol: WireProtocol, timeouts: Timeouts) -> Answer | Failure:
    body = await read_body(head, timeouts)
    return body if isinstance(body, Failure) else protocol.decode(head.status, head.headers, body)


async def _read_unstreamed(head: Head, protocol: WireProtocol, timeouts: Timeouts) -> Stream | Failure:
    """What came instead of a stream: an error, or a whole answer from a provider that does not stream."""
    body = await read_body(head, timeouts)
    if isinstance(body, Failure):
        return body
    if head.status == 200 and not body:
        return failure(Fault.STREAM_EMPTY, 200)
    outcome = protocol.decode(head.status, head.headers, body)
    return outcome if isinstance(outcome, Failure) else Stream(events_from(outcome))


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="upstream", daemon=True).start()
    return loop


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, waited for in this thread while another one's event loop runs it."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@lru_cache(maxsize=1)
def configured_upstream() -> Upstream:
    """The process's upstream, as the settings say."""
    from django.conf import settings

    return Upstream(policy_of(",".join(settings.ALLOWED_ORIGINS)), settings.OUTGOING_PROXY)
