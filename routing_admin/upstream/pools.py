"""Connections: one pool per event loop and proxy, every address checked when a connection is made."""

from __future__ import annotations

import asyncio
import socket
import ssl
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver, ResolveResult
from httpx_aiohttp import AiohttpTransport
from yarl import URL

from capabilities.core.providers.origins import OriginPolicy, check_addresses
from capabilities.core.wire import UpstreamRequest
from routing_admin.upstream.bodies import Blocks, RequestBody
from routing_admin.upstream.direct import DirectCalls
from routing_admin.upstream.faults import ForbiddenAddressError
from routing_admin.upstream.response import (
    RememberingConnector,
    UpstreamResponse,
    carried_before,
    end_with,
    fresh_only,
    head_of_call,
    head_of_read,
)

CONNECTIONS = 1000
KEEP_ALIVE_SECONDS = 60.0
DNS_SECONDS = 10
"""How long a resolved name is used again."""
RESOLVE_SECONDS = 5.0
"""How long resolving may take: the time to connect begins after it."""


class WatchedResponse(aiohttp.ClientResponse):
    """An answer whose body ends, at the latest, when its connection does.

    The client forgets a body that breaks its own framing: it closes the connection and leaves whoever reads waiting
    (aiohttp 3.14, `HttpParser.feed_data` drops its payload before it raises).
    """

    async def start(self, connection: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """The answer once its head is here."""
        started = await super().start(connection)
        self.reason = None  # nobody reads the words beside the status, and httpx-aiohttp fails unless they are UTF-8
        if connection.protocol is not None and not self.content.is_eof():
            end_with(connection.protocol.closed, self.content)
        return started


async def resolve(
    resolver: AbstractResolver,
    host: str,
    port: int = 0,
    family: socket.AddressFamily = socket.AF_INET,
    seconds: float = RESOLVE_SECONDS,
) -> list[ResolveResult]:
    """The addresses within the time for them: a name server that is silent is a name that does not resolve.

    Raises `gaierror` then, and whatever the resolver raises.
    """
    try:
        async with asyncio.timeout(seconds):
            return await resolver.resolve(host, port, family)
    except TimeoutError as error:
        raise socket.gaierror(socket.EAI_AGAIN, f"no answer about {host} within {seconds:.0f} s") from error


LEFT_IDLE = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError, BrokenPipeError)
"""What a call ends with on a connection that its host had closed, before any byte of an answer."""


class CheckedResolver(AbstractResolver):
    """Resolves names and refuses addresses that may not be called; what it returns is what is connected to."""

    def __init__(self, policy: OriginPolicy, inner: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The host's addresses; raises `ForbiddenAddressError` when one of them is not public and not listed."""
        found = await resolve(self._inner, host, port, family)
        addresses = [result["host"] for result in found]
        refusals = [check_addresses(f"{scheme}://{host}:{port}", addresses, self._policy) for scheme in SCHEMES]
        if all(refusals):
            raise ForbiddenAddressError(refusals[0] or "")
        return found

    async def close(self) -> None:
        """Nothing is held."""
        await self._inner.close()


SCHEMES = ("https", "http")
"""A resolver is not told the scheme; the URL's own check, made before, holds it apart."""


class Pool:
    """Connections of one event loop through one proxy, and the ways of using them.

    A model is called over a connection itself, through a proxy or with a large body by the session: requests of httpx
    cost more than all that is decided about a call (docs/decisions/0009). What is only read goes through httpx.
    """

    def __init__(self, session: aiohttp.ClientSession, context: ssl.SSLContext, proxy: str) -> None:
        self._session = session
        connector = session.connector
        self._direct = DirectCalls(connector) if connector is not None and not proxy else None
        parsed = httpx.Proxy(proxy) if proxy else None
        self._transport = AiohttpTransport(verify=context, client=session, proxy=parsed)
        self._proxy: dict[str, Any] = {}
        if parsed is not None:
            auth = aiohttp.BasicAuth(*parsed.auth) if parsed.auth else None
            self._proxy = {"proxy": str(parsed.url), "proxy_auth": auth, "proxy_headers": parsed.headers}

    async def send(
        self, request: UpstreamRequest, content: Blocks | RequestBody | None, connect: float
    ) -> UpstreamResponse:
        """The head of the answer; `connect` is how many seconds connecting may take. Raises `CLIENT_ERRORS`.

        A host may close a connection that was kept at the very moment at which it is used again, and answers nothing:
        the request goes out once more, by a fresh one. There the same silence is the host's fault: whether it read the
        request is not known, so nothing is sent a third time.
        """
        headers = {**request.headers, "accept-encoding": "identity"}
        if isinstance(content, RequestBody):
            headers["content-length"] = str(content.length)
        if content is None:
            return await self._read(request, headers, connect)
        try:
            return await self._call(request, content, headers, connect)
        except LEFT_IDLE:
            if not carried_before.get() or isinstance(content, RequestBody):
                raise
        token = fresh_only.set(True)
        try:
            return await self._call(request, content, headers, connect)
        finally:
            fresh_only.reset(token)

    async def _call(
        self, request: UpstreamRequest, content: Blocks | RequestBody, headers: Mapping[str, str], connect: float
    ) -> UpstreamResponse:
        url, timeout = url_of(request.url), _connecting_within(connect)
        if self._direct is not None and not isinstance(content, RequestBody):
            return await self._direct.send(request.method, url, content, headers, timeout)
        data = content if isinstance(content, RequestBody) else b"".join(content)
        response = await self._session.request(
            request.method, url, data=data, headers=headers, allow_redirects=False, timeout=timeout, **self._proxy
        )
        return head_of_call(response)

    async def _read(self, request: UpstreamRequest, headers: Mapping[str, str], connect: float) -> UpstreamResponse:
        asked = httpx.Request(
            request.method, request.url, headers=headers, extensions={"timeout": {"connect": connect}}
        )
        return head_of_read(await self._transport.handle_async_request(asked))

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


@lru_cache(maxsize=1000)
def url_of(text: str) -> URL:
    """The address as the client takes it. Raises `ValueError` for one that is none."""
    parsed = httpx.URL(text)
    if not parsed.raw_host:  # not decoded: a name that cannot be is for name servers to know
        raise ValueError("the address names no host")
    return URL(str(parsed))


@lru_cache(maxsize=100)
def _connecting_within(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=seconds)


@dataclass(slots=True)
class Pools:
    """Pools of connections, made when first needed and kept for the life of their event loop.

    `own_proxy` is the deployment's, whose address is not questioned; `resolver` makes what looks names up.
    """

    policy: OriginPolicy
    verify: ssl.SSLContext | None = None
    own_proxy: str = ""
    resolver: Callable[[], AbstractResolver] = aiohttp.ThreadedResolver
    max_open: int = CONNECTIONS
    """How many connections a loop may have, those in use and idle ones together."""
    _pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pool]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    _connectors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[RememberingConnector]] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def get(self, proxy: str) -> Pool:
        """The running loop's pool for a proxy URL, empty for none."""
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None:
            pools = self._pools.setdefault(loop, {})
        if proxy not in pools:
            pools[proxy] = self._make(proxy, self._connectors.setdefault(loop, []))
        return pools[proxy]

    def _make(self, proxy: str, siblings: list[RememberingConnector]) -> Pool:
        context = self.verify or httpx.create_ssl_context(trust_env=False)
        connector = RememberingConnector(
            self.max_open,
            siblings,
            limit=min(CONNECTIONS, self.max_open),
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ttl_dns_cache=DNS_SECONDS,
            ssl=context,
            resolver=self._resolver_for(proxy),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            response_class=WatchedResponse,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        return Pool(session, context, proxy)

    def _resolver_for(self, proxy: str) -> AbstractResolver:
        plain = self.resolver()
        return plain if proxy and proxy == self.own_proxy else CheckedResolver(self.policy, plain)

    async def close(self) -> None:
        """Close the running loop's connections."""
        self._connectors.pop(asyncio.get_running_loop(), None)
        for pool in self._pools.pop(asyncio.get_running_loop(), {}).values():
            await pool.close()
