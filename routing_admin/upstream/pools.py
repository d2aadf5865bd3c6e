"""Connection pools per event loop and proxy; every resolved address is checked before a connection is made."""

from __future__ import annotations

import asyncio
import socket
import ssl
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
import certifi
from aiohttp.abc import AbstractResolver, ResolveResult

from capabilities.core.providers.origins import OriginPolicy, check_addresses
from routing_admin.upstream.connections import OpenConnections, Pool, ProviderConnector
from routing_admin.upstream.faults import ForbiddenAddressError

CONNECTIONS = 1000
KEEP_ALIVE_SECONDS = 60.0
DNS_SECONDS = 10
"""How long a resolved name is cached."""
RESOLVE_SECONDS = 5.0
"""Timeout of name resolution, which precedes the connect timeout."""


async def resolve(
    resolver: AbstractResolver,
    host: str,
    port: int = 0,
    family: socket.AddressFamily = socket.AF_INET,
    seconds: float = RESOLVE_SECONDS,
) -> list[ResolveResult]:
    """Resolve a name with a timeout. Raise `gaierror` for a timeout, and the errors of the resolver."""
    try:
        async with asyncio.timeout(seconds):
            return await resolver.resolve(host, port, family)
    except TimeoutError as error:
        raise socket.gaierror(socket.EAI_AGAIN, f"no answer about {host} within {seconds:.0f} s") from error


class CheckedResolver(AbstractResolver):
    """Resolver that rejects forbidden addresses; connections use exactly the addresses it returns."""

    def __init__(self, policy: OriginPolicy, inner: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        results = await resolve(self._inner, host, port, family)
        addresses = [result["host"] for result in results]
        refusals = [check_addresses(f"{scheme}://{host}:{port}", addresses, self._policy) for scheme in SCHEMES]
        # The address has to be allowed for one of the schemes.
        if all(refusals):
            raise ForbiddenAddressError(refusals[0] or "")
        return results

    async def close(self) -> None:
        await self._inner.close()


SCHEMES = ("https", "http")
"""Resolvers do not know the scheme, which the check of the URL has already verified."""


@dataclass(slots=True)
class Pools:
    """Connection pools, created when first needed and kept as long as their event loop.

    `own_proxy` is the installation's proxy, whose address is not checked; `resolver` creates resolvers.
    """

    policy: OriginPolicy
    verify: ssl.SSLContext | None = None
    own_proxy: str = ""
    resolver: Callable[[], AbstractResolver] = aiohttp.ThreadedResolver
    max_open: int = CONNECTIONS
    """Connections per event loop, idle ones included."""
    _pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pool]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    _open: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, OpenConnections] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def get(self, proxy: str) -> Pool:
        """Return the running loop's pool for a proxy URL, which is "" without a proxy."""
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
            ssl=self.verify or ssl.create_default_context(cafile=certifi.where()),
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
