"""Each aiohttp exception is classified as one fault. Exceptions of the project's own code are raised unchanged."""

from __future__ import annotations

import asyncio
import pkgutil
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import aiohttp
import pytest
from aiohttp import http_exceptions

from capabilities.core.message import Blob, ChatRequest, Message, NativePart, Role
from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Delta, Failure, Fault, StreamDecoder, StreamEvent, Target
from routing_admin.core.fallback.table import TABLE
from routing_admin.upstream import Stream, Upstream
from routing_admin.upstream.faults import CLIENT_ERRORS, ORDER, ForbiddenAddressError, classify_error
from routing_admin.upstream.response import READ_AFTER_END, BrokenBodyError, UpstreamResponse
from tests.fallback.network_runs import HELLO, QUICK, protocol
from tests.lab import Lab

# The gateway only uses aiohttp's client, and these modules are for servers.
SERVER_SIDE = ("aiohttp.web", "aiohttp.worker", "aiohttp.pytest_plugin", "aiohttp.test_utils")
# No provider can cause these aiohttp exceptions. The reason is given with each.
NEVER = {
    "aiohttp.client_exceptions.WSMessageTypeError": "WebSockets are not used",
    "aiohttp._websocket.models.WebSocketError": "WebSockets are not used",
    "aiohttp._websocket.models.WSHandshakeError": "WebSockets are not used",
    "aiohttp.streams.EofStream": "an end that aiohttp catches itself",
    "aiohttp.payload.LookupError": "a body of a kind that we never give",
}
ADDRESS_REFUSED = (
    "No request can be built for the provider: its endpoint, proxy or key is not usable. Correct it on its page."
)


def list_modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.name.startswith(SERVER_SIDE):
            yield import_module(info.name)


def raised_by(package: ModuleType) -> list[type[BaseException]]:
    kinds = {
        kind
        for module in list_modules(package)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, Warning)
        if kind.__module__.split(".")[0] == package.__name__ and not kind.__module__.startswith(SERVER_SIDE)
    }
    return sorted(kinds, key=exception_name)


def exception_name(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


KINDS = raised_by(aiohttp)


def bare_exception(kind: type[BaseException]) -> BaseException:
    """Return an instance of an empty subclass, since the constructor of `kind` may need arguments."""
    instance: BaseException = type("New", (kind,), {"__init__": lambda self: None, "__str__": lambda self: "new"})()
    return instance


@pytest.mark.parametrize("kind", KINDS, ids=exception_name)
def test_every_aiohttp_exception_is_classified_as_a_fault_with_a_message(kind: type[BaseException]) -> None:
    """A new aiohttp exception must have a known base class. Otherwise, this test fails until it is classified."""
    if exception_name(kind) in NEVER:
        assert not issubclass(kind, CLIENT_ERRORS)
        return
    assert issubclass(kind, CLIENT_ERRORS), "it would pass the net and be a 500"
    assert TABLE[classify_error(bare_exception(kind))].message


def test_excluded_exceptions_exist_in_aiohttp() -> None:
    """All exceptions in `NEVER` still exist in aiohttp, and the search of its modules finds well-known exceptions."""
    assert set(NEVER) <= {exception_name(kind) for kind in KINDS}
    assert {aiohttp.ClientResponseError, http_exceptions.BadStatusLine} <= set(KINDS)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (http_exceptions.BadStatusLine, Fault.BAD_HTTP),
        (http_exceptions.InvalidHeader, Fault.BAD_HTTP),
        (http_exceptions.LineTooLong, Fault.TOO_LARGE),
        (aiohttp.ClientResponseError, Fault.BAD_HTTP),
        (aiohttp.ClientPayloadError, Fault.TRUNCATED_BODY),
        (aiohttp.ServerDisconnectedError, Fault.RESET_BEFORE_HEADERS),
        (aiohttp.ClientConnectionResetError, Fault.RESET_BEFORE_HEADERS),
        (aiohttp.ClientConnectionError, Fault.RESET_BEFORE_HEADERS),
        (aiohttp.ConnectionTimeoutError, Fault.CONNECT_TIMEOUT),
        (aiohttp.SocketTimeoutError, Fault.READ_TIMEOUT),
        (aiohttp.ClientProxyConnectionError, Fault.CONNECT_REFUSED),
        (aiohttp.ClientHttpProxyError, Fault.CONNECT_REFUSED),
        (aiohttp.ServerFingerprintMismatch, Fault.TLS_CERT_ERROR),
        (aiohttp.InvalidURL, Fault.ORIGIN_REFUSED),
        (ForbiddenAddressError, Fault.ORIGIN_REFUSED),
        (ssl.SSLCertVerificationError, Fault.TLS_CERT_ERROR),
        (ssl.SSLZeroReturnError, Fault.TLS_ERROR),
        (ssl.SSLEOFError, Fault.TLS_ERROR),
        (socket.gaierror, Fault.DNS_ERROR),
        (ConnectionRefusedError, Fault.CONNECT_REFUSED),
        (ConnectionAbortedError, Fault.RESET_BEFORE_HEADERS),
        (BrokenPipeError, Fault.RESET_BEFORE_HEADERS),
        (asyncio.TimeoutError, Fault.READ_TIMEOUT),
        (OSError, Fault.RESET_BEFORE_HEADERS),
        (UnicodeEncodeError, Fault.ORIGIN_REFUSED),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else value,
)
def test_fault_depends_on_the_exact_exception_class(kind: type[BaseException], fault: Fault) -> None:
    assert classify_error(bare_exception(kind)) is fault


def test_every_caught_exception_is_classified_as_one_fault() -> None:
    kinds = [kind for _fault, row in ORDER for kind in row]
    assert tuple(kinds) == CLIENT_ERRORS
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(
    "kind",
    [
        *(TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError, AssertionError, RuntimeError),
        *(MemoryError, asyncio.CancelledError, asyncio.InvalidStateError, KeyboardInterrupt, StopAsyncIteration),
    ],
)
def test_own_exceptions_are_not_client_errors(kind: type[BaseException]) -> None:
    assert not issubclass(kind, CLIENT_ERRORS)
    with pytest.raises(kind):
        classify_error(kind())


@dataclass(frozen=True)
class BuggyProtocol:
    """A protocol that fails with a bug when it decodes."""

    name: str = "wrong"

    def decode(self, status: int, headers: object, body: bytes) -> Failure:
        return status + body  # type: ignore[operator,return-value]

    def decoder(self) -> StreamDecoder:
        return self  # type: ignore[return-value]

    def feed(self, block: bytes) -> list[StreamEvent]:
        raise TypeError("a mistake")

    due = False


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_bug_in_decoding_fails_the_candidate_and_blames_the_gateway(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The message and the log blame the gateway, not the provider.

    The next candidate is called, since its response may be readable.
    """
    upstream = Upstream(OriginPolicy(everything=True))
    with Lab() as lab:
        request = protocol("openai").encode(HELLO, Target("lab", lab.url(), "m"), stream=stream)
        ask = upstream.open if stream else upstream.call
        outcome = await ask(request, BuggyProtocol(), QUICK)  # type: ignore[arg-type]
        await upstream.close()
    assert isinstance(outcome, Failure)
    assert outcome.message == "The gateway could not read this answer (TypeError); its own log has the details."
    assert "Traceback" in caplog.text


class BuggyAtTheEnd(BuggyProtocol):
    """A protocol that fails with a bug after the first content."""

    def feed(self, block: bytes) -> list[StreamEvent]:
        return [Delta("said")]

    def close(self) -> list[StreamEvent]:
        raise TypeError("a mistake")


async def test_bug_after_content_is_raised_from_the_stream() -> None:
    """After the first content, no other candidate may answer, so the exception is raised to the reader."""
    upstream = Upstream(OriginPolicy(everything=True))
    with Lab() as lab:
        request = protocol("openai").encode(HELLO, Target("lab", lab.url(), "m"), stream=True)
        stream = await upstream.open(request, BuggyAtTheEnd(), QUICK)  # type: ignore[arg-type]
        assert isinstance(stream, Stream)
        with pytest.raises(TypeError, match="a mistake"):
            _ = [batch async for batch in stream]
        await upstream.close()


async def test_bug_while_reading_a_file_is_raised_from_the_call() -> None:
    """The original exception is raised, although aiohttp wraps it in an exception for a broken connection."""

    def blocks() -> Iterator[bytes]:
        yield b"abc"
        raise TypeError("a mistake")

    upstream = Upstream(OriginPolicy(everything=True))
    chat = ChatRequest((Message(Role.USER, (NativePart(Kind.IMAGE, "image/png", Blob(300, blocks)),)),))
    with Lab() as lab:
        request = protocol("openai").encode(chat, Target("lab", lab.url(), "m"), stream=False)
        with pytest.raises(TypeError, match="a mistake"):
            await upstream.call(request, protocol("openai"), QUICK)
        await upstream.close()


async def test_aiohttp_raises_the_expected_message_for_reading_after_the_end() -> None:
    """Reading a body after its end raises a bare `RuntimeError` in aiohttp.

    Only the message distinguishes it from a bug in the gateway.
    """
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(aiohttp.base_protocol.BaseProtocol(loop), 1024, loop=loop)
    with pytest.raises(RuntimeError) as caught:
        await content.read(1)
    assert str(caught.value) == READ_AFTER_END
    head = UpstreamResponse(200, {}, content, lambda: None)
    with pytest.raises(BrokenBodyError, match=Fault.BAD_HTTP):
        await head.block()
    content.set_exception(RuntimeError("a mistake"))
    with pytest.raises(RuntimeError, match="a mistake"):
        await head.block()


async def test_overlong_url_is_reported_as_a_refused_origin() -> None:
    upstream = Upstream(OriginPolicy(everything=True))
    request = protocol("openai").encode(HELLO, Target("lab", "http://127.0.0.1:1/" + "x" * 70_000, "m"), stream=False)
    outcome = await upstream.call(request, protocol("openai"), QUICK)
    await upstream.close()
    assert isinstance(outcome, Failure)
    assert (outcome.fault, outcome.message) == (Fault.ORIGIN_REFUSED, ADDRESS_REFUSED)
