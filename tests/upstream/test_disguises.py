"""Unusual spellings of private addresses (disguises) are refused in endpoints, proxies, DNS answers and redirects."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.providers.origins import OriginPolicy, check_addresses, parse_policy, refuse_proxy, refuse_url
from capabilities.core.wire import Failure, Fault, Target
from routing_admin.upstream import Upstream
from routing_admin.upstream.calls import CheckedResolver
from routing_admin.upstream.connections import parse_url
from routing_admin.upstream.faults import ForbiddenAddressError
from tests.capabilities.disguises import RESOLVED, RESOLVING, TARGETS, ZONES, disguised_hosts, disguised_urls
from tests.fallback.network_runs import HELLO, QUICK, protocol
from tests.lab import Lab

CLOSED = OriginPolicy()
# None of the tested addresses is among these allowed origins.
OTHER_ORIGINS = parse_policy("http://127.0.0.1:1, https://llm.example")
PUBLIC = "https://llm.example/v1"


@pytest.fixture
def unreachable_listener() -> Iterator[socket.socket]:
    """Listen on a local port. If something connects to it, the test fails."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening
        with pytest.raises(BlockingIOError):
            listening.accept()


class NameServer(AbstractResolver):
    """A resolver that returns the given answers one after the other, then repeats the last one. It records the names it
    looks up.
    """

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.looked_up: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.looked_up.append(host)
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in addresses.split()
        ]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def guarded_upstream(
    name_server: NameServer | None = None, policy: OriginPolicy = OTHER_ORIGINS
) -> AsyncIterator[Upstream]:
    upstream = Upstream(policy, resolver=lambda: name_server or NameServer("127.0.0.1"))
    yield upstream
    await upstream.close()


async def call(upstream: Upstream, endpoint: str, proxy: str = "default", model: str = "m") -> object:
    """Call the endpoint, and return the fault of a failed call or the answer."""
    target = Target("p", PUBLIC, model, "sk-secret-key-1234567890")
    request = replace(protocol("openai").encode(HELLO, target, stream=False), url=endpoint)
    outcome = await upstream.call(request, protocol("openai"), QUICK, proxy)
    return outcome.fault if isinstance(outcome, Failure) else outcome


def test_table_of_disguised_private_addresses_is_large() -> None:
    """If this list became shorter by mistake, the other tests would check less."""
    assert len(disguised_urls()) >= 500
    assert len({*RESOLVED, *ZONES}) >= 150


def test_every_disguised_private_endpoint_is_refused() -> None:
    assert [url for url in disguised_urls() if refuse_url(url, CLOSED) is None] == []


def test_every_disguised_private_proxy_is_refused() -> None:
    """In a proxy's URL, a user name in plain characters is not mistaken for the host."""
    assert [url for url in disguised_urls() if refuse_proxy(url, CLOSED) is None] == [
        # The private address in this URL is the user name and not the host.
        "https://127.0.0.1@api.openai.com/v1"
    ]
    for host in disguised_hosts():
        assert refuse_proxy(f"https://user:word@{host}", CLOSED) is not None


def test_host_name_with_one_forbidden_address_is_refused() -> None:
    passing = [
        address
        for address in (*RESOLVED, *ZONES)
        if not check_addresses(PUBLIC, ["8.8.8.8", address, "1.1.1.1"], CLOSED)
    ]
    assert passing == []


async def test_disguised_endpoint_or_proxy_is_never_connected_to(unreachable_listener) -> None:
    port = unreachable_listener.getsockname()[1]
    hosts = [host for host in disguised_hosts() if "\n" not in host]
    async with guarded_upstream() as upstream:
        for host in hosts:
            assert await call(upstream, f"http://{host}:{port}/v1") is Fault.ORIGIN_REFUSED, host
            assert await call(upstream, f"https://{host}:{port}/v1") is Fault.ORIGIN_REFUSED, host
            assert await call(upstream, PUBLIC, f"http://{host}:{port}") is Fault.ORIGIN_REFUSED, host
        for url in disguised_urls(f"127.0.0.1:{port}"):
            assert await call(upstream, url) is Fault.ORIGIN_REFUSED, url


@pytest.mark.parametrize("name", RESOLVING)
async def test_public_name_that_resolves_to_a_private_address_is_refused(name: str) -> None:
    for address in (*TARGETS, "8.8.8.8 127.0.0.1", "::ffff:10.0.0.1", "fe80::1%lo", "64:ff9b::7f00:1"):
        name_server = NameServer(address)
        async with guarded_upstream(name_server) as upstream:
            assert await call(upstream, f"https://{name}/v1") is Fault.ORIGIN_REFUSED
            assert await call(upstream, "https://8.8.8.8/v1", f"https://{name}") is Fault.ORIGIN_REFUSED
        assert {*name_server.looked_up} == {name}


@pytest.mark.parametrize("host", ["xn--0.example", "xn--a.example", "api.xn--0.example", "xn--.example.com"])
async def test_international_name_is_looked_up_even_if_it_cannot_be_displayed(host: str) -> None:
    """Only DNS decides whether such a name exists."""
    name_server = NameServer("10.0.0.1")
    assert refuse_url(f"https://{host}/v1", CLOSED) is None
    async with guarded_upstream(name_server) as upstream:
        assert await call(upstream, f"https://{host}/v1") is Fault.ORIGIN_REFUSED
    assert name_server.looked_up == [host]


async def test_host_name_is_checked_at_every_lookup() -> None:
    """The name was public when it was entered, but resolves to a private address later (DNS rebinding)."""
    resolver = CheckedResolver(CLOSED, NameServer("8.8.8.8", "169.254.169.254"))
    assert [result["host"] for result in await resolver.resolve("rebind.example", 443)] == ["8.8.8.8"]
    with pytest.raises(ForbiddenAddressError):
        await resolver.resolve("rebind.example", 443)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_to_any_location_is_a_fault(status: int, unreachable_listener) -> None:
    port = unreachable_listener.getsockname()[1]
    locations = [f"http://127.0.0.1:{port}/v1", f"//127.0.0.1:{port}/", f"http://2130706433:{port}/", "/other", ""]
    with Lab() as lab:
        async with guarded_upstream(policy=parse_policy(lab.url())) as upstream:
            for location in locations:
                step = f"fault:redirect:status={status},location={location}"
                assert await call(upstream, f"{lab.url()}/chat/completions", model=step) is Fault.REDIRECT
        assert lab.played == ["redirect"] * len(locations)


PIECES = st.sampled_from(
    [
        *"@:/\\?#[]%.-_~,;=&+ \t\n\0",
        *("0", "1", "127", "0x7f", "１", "。", "ⓔ", "%2e", "xn--", "a", "example.com", "localhost"),
    ]
)
URLS: Mapping[str, st.SearchStrategy[str]] = {
    "endpoint": st.lists(PIECES, max_size=8).map(lambda pieces: "https://" + "".join(pieces)),
    "with a name": st.lists(PIECES, max_size=5).map(lambda pieces: "https://api.example.com" + "".join(pieces)),
}


@given(st.one_of(*URLS.values()))
def test_checked_host_equals_the_called_host(url: str) -> None:
    if refuse_url(url, CLOSED) is None:
        read = parse_url(url)
        assert (read.raw_host or "").rstrip(".") == (urlsplit(url).hostname or "").rstrip(".")
        assert (read.scheme, read.port) == ("https", urlsplit(url).port or 443)
        assert refuse_url(str(read.with_user(None)), CLOSED) is None
