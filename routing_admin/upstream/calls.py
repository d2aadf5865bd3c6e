"""Call a provider for a complete or streamed answer, from an event loop or a thread.

Each event loop has a pool of connections per proxy, and every resolved address is checked before a connection is made.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

import aiohttp
import certifi
from aiohttp.abc import AbstractResolver, ResolveResult

from capabilities.core.protocols.stream import answer_events, repair_outcome
from capabilities.core.providers.origins import (
    DEFAULT_PROXY,
    EMBEDDED,
    NO_PROXY,
    OriginPolicy,
    check_addresses,
    parse_policy,
    refuse_proxy,
    refuse_url,
)
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, AnswerDecoder, Failure, Fault, UpstreamRequest, WireProtocol
from capabilities.runtime import owned
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream.connections import OpenConnections, Pool, ProviderConnector
from routing_admin.upstream.exchange import PhaseTimer, read_body, redact_failure, send
from routing_admin.upstream.faults import ForbiddenAddressError, failure
from routing_admin.upstream.response import UpstreamResponse
from routing_admin.upstream.streams import Stream, event_batches, unreadable, wait_for_content

CONNECTIONS = 1000
KEEP_ALIVE_SECONDS = 60.0
DNS_SECONDS = 10
"""How long a resolved host name is cached, in seconds."""
RESOLVE_SECONDS = 5.0
"""Timeout in seconds for resolving a host name, in addition to the connect timeout."""


async def resolve(
    resolver: AbstractResolver,
    host: str,
    port: int = 0,
    family: socket.AddressFamily = socket.AF_INET,
    seconds: float = RESOLVE_SECONDS,
) -> list[ResolveResult]:
    """Resolve a host name; raise the resolver's errors, and `gaierror` if it takes more than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await resolver.resolve(host, port, family)
    except TimeoutError as error:
        raise socket.gaierror(socket.EAI_AGAIN, f"no answer about {host} within {seconds:.0f} s") from error


class CheckedResolver(AbstractResolver):
    """Resolver that rejects forbidden addresses; connections use exactly the addresses that it returns."""

    def __init__(self, policy: OriginPolicy, inner: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        results = await resolve(self._inner, host, port, family)
        addresses = [result["host"] for result in results]
        refusals = [check_addresses(f"{scheme}://{host}:{port}", addresses, self._policy) for scheme in SCHEMES]
        # The addresses are accepted if they are allowed for either scheme.
        if all(refusals):
            raise ForbiddenAddressError(refusals[0] or "")
        return results

    async def close(self) -> None:
        await self._inner.close()


SCHEMES = ("https", "http")
"""Schemes to try when checking a resolved address.

A resolver does not know the URL's scheme, so an address is accepted if either is allowed. The scheme itself was checked
earlier, with the URL.
"""


@cache
def default_context() -> ssl.SSLContext:
    """Return the TLS context that trusts certifi's certificates, which all pools share.

    Reading the certificates takes 30 ms. Without sharing, each new pool would block its event loop for this time.
    """
    return ssl.create_default_context(cafile=certifi.where())


@dataclass(slots=True)
class Pools:
    """Connection pools, which are created when first needed and kept as long as their event loop exists.

    `own_proxy` is the installation's own proxy, whose address is not checked; `resolver` creates resolvers.
    """

    policy: OriginPolicy
    verify: ssl.SSLContext | None = None
    own_proxy: str = ""
    resolver: Callable[[], AbstractResolver] = aiohttp.ThreadedResolver
    max_open: int = CONNECTIONS
    """Maximum number of open connections per event loop, including idle ones."""
    _pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pool]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    _open: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, OpenConnections] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def get(self, proxy: str) -> Pool:
        """Return the running event loop's pool for a proxy URL, or for no proxy if the URL is empty."""
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None:
            pools = self._pools.setdefault(loop, {})
        if proxy not in pools:
            pools[proxy] = self._make(proxy, self._open.setdefault(loop, OpenConnections(self.max_open)))
        return pools[proxy]

    def _make(self, proxy: str, connections: OpenConnections) -> Pool:
        connector = ProviderConnector(
            connections,
            limit=min(CONNECTIONS, self.max_open),
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ttl_dns_cache=DNS_SECONDS,
            ssl=self.verify or default_context(),
            resolver=self._resolver_for(proxy),
        )
        return Pool(connector, proxy)

    def _resolver_for(self, proxy: str) -> AbstractResolver:
        resolver = self.resolver()
        return resolver if proxy and proxy == self.own_proxy else CheckedResolver(self.policy, resolver)

    async def close(self) -> None:
        self._open.pop(asyncio.get_running_loop(), None)
        for pool in self._pools.pop(asyncio.get_running_loop(), {}).values():
            await pool.close()


T = TypeVar("T")

WHOLE_ANSWERS = ("json", "html")
"""Subtypes in the content type of complete responses.

Some hosts send streams as plain text or bytes, so a response with any other type is read as a stream.
"""
NO_NETWORK = translatable(
    "%(origin)s is on no network: the embedded provider is asked with the request itself.", origin=EMBEDDED
)


class Upstream:
    """Client for calling providers, with its allowed origins, proxies, connections and resolver."""

    def __init__(
        self,
        policy: OriginPolicy,
        proxy: str = "",
        verify: ssl.SSLContext | None = None,
        resolver: Callable[[], AbstractResolver] = aiohttp.ThreadedResolver,
    ) -> None:
        self._proxy = proxy
        self._pools = Pools(policy, verify, proxy, resolver)
        self._refusal_of = lru_cache(maxsize=1000)(partial(_refusal, policy))
        self._proxy_refusal_of = lru_cache(maxsize=100)(partial(refuse_proxy, policy=policy, own_proxy=proxy))

    async def call(
        self, request: UpstreamRequest, protocol: AnswerDecoder, timeouts: Timeouts, proxy: str = DEFAULT_PROXY
    ) -> Answer | Failure:
        """Return the answer or the failure of a complete exchange; nothing that a provider does raises an exception.

        `proxy` is the provider's proxy setting: `default`, `none` or a URL. Raise `UnreadableError` if a file in the
        request cannot be read.
        """
        timer = PhaseTimer(timeouts.total)
        try:
            outcome = await self._call(request, protocol, timeouts, proxy, timer)
        finally:
            timer.close()
        return redact_failure(outcome, request) if isinstance(outcome, Failure) else outcome

    async def open(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str = DEFAULT_PROXY
    ) -> Stream | Failure:
        """Return the stream once it has content, or a failure if one occurs first; the caller must close the stream."""
        timer = PhaseTimer(timeouts.total)
        outcome: Stream | Failure | None = None
        try:
            outcome = await self._open(request, protocol, timeouts, proxy, timer)
        finally:
            if not isinstance(outcome, Stream):
                timer.close()
        return redact_failure(outcome, request) if isinstance(outcome, Failure) else outcome

    def call_sync(
        self, request: UpstreamRequest, protocol: AnswerDecoder, timeouts: Timeouts, proxy: str = DEFAULT_PROXY
    ) -> Answer | Failure:
        """Call a provider like `call`, but from code without an event loop."""
        return run_sync(self.call(request, protocol, timeouts, proxy))

    def limit_connections(self, max_open: int) -> None:
        """Limit the number of open connections per event loop, including idle ones.

        This has no effect on loops that already have connections.
        """
        self._pools.max_open = max_open

    async def close(self) -> None:
        await self._pools.close()

    async def _call(
        self, request: UpstreamRequest, protocol: AnswerDecoder, timeouts: Timeouts, proxy: str, timer: PhaseTimer
    ) -> Answer | Failure:
        head = await self._head(request, timeouts, proxy, timer)
        return head if isinstance(head, Failure) else await _read_answer(head, protocol, timeouts, timer)

    async def _open(
        self, request: UpstreamRequest, protocol: WireProtocol, timeouts: Timeouts, proxy: str, timer: PhaseTimer
    ) -> Stream | Failure:
        head = await self._head(request, timeouts, proxy, timer)
        if isinstance(head, Failure):
            # Waiting for the head of a streamed response is part of the time to first content, so report that timeout.
            return failure(Fault.TTFT_TIMEOUT) if head.fault is Fault.READ_TIMEOUT else head
        content_type = head.headers.get("content-type", "")
        if head.status != 200 or any(subtype in content_type for subtype in WHOLE_ANSWERS):
            return await _read_unstreamed(head, protocol, timeouts, timer)
        batches = event_batches(
            head, protocol.decoder(), timeouts, timer, lambda failed: redact_failure(failed, request)
        )
        return await wait_for_content(batches)

    async def _head(
        self, request: UpstreamRequest, timeouts: Timeouts, proxy: str, timer: PhaseTimer
    ) -> UpstreamResponse | Failure:
        proxy_url = {DEFAULT_PROXY: self._proxy, NO_PROXY: ""}.get(proxy, proxy)
        refused = self._refusal_of(request.url) or self._proxy_refusal_of(proxy)
        if refused is not None:
            return Failure(Fault.ORIGIN_REFUSED, refused)
        return await send(request, self._pools.get(proxy_url), timeouts, timer)


def _refusal(policy: OriginPolicy, url: str) -> str | None:
    return NO_NETWORK if url == EMBEDDED else refuse_url(url, policy)


async def _read_answer(
    head: UpstreamResponse, protocol: AnswerDecoder, timeouts: Timeouts, timer: PhaseTimer
) -> Answer | Failure:
    body = await read_body(head, timeouts, timer)
    return body if isinstance(body, Failure) else _decode(protocol, head, body)


def _decode(protocol: AnswerDecoder, head: UpstreamResponse, body: bytes) -> Answer | Failure:
    try:
        return repair_outcome(protocol.decode(head.status, head.headers, body), body)
    except Exception as error:
        # If a bug of ours makes an answer unreadable, return a failure, because another candidate's answer may be
        # readable.
        return unreadable(error)


async def _read_unstreamed(
    head: UpstreamResponse, protocol: WireProtocol, timeouts: Timeouts, timer: PhaseTimer
) -> Stream | Failure:
    body = await read_body(head, timeouts, timer)
    if isinstance(body, Failure):
        return body
    # The response is not a stream but an error, or the complete answer of a provider that does not stream.
    if head.status == 200 and not body:
        return failure(Fault.STREAM_EMPTY, 200)
    outcome = _decode(protocol, head, body)
    return outcome if isinstance(outcome, Failure) else Stream(answer_events(outcome))


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="upstream", daemon=True).start()
    return loop


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background event loop, and wait for its result in this thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@owned
def process_upstream() -> Upstream:
    from django.conf import settings

    return Upstream(parse_policy(",".join(settings.ALLOWED_ORIGINS)), settings.OUTGOING_PROXY)
