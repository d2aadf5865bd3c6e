"""Calls to providers: what is sent, what is refused, and when connections are closed."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.abc import AbstractResolver

from capabilities.core.delivery.model_endpoint import Prepared, model_endpoint
from capabilities.core.message import Blob, ChatRequest, Message, NativePart, Role, TextPart, UnreadableError, make_blob
from capabilities.core.providers.origins import OriginPolicy, parse_policy
from capabilities.core.vocabulary import TEXT_ONLY, Kind
from capabilities.core.wire import Answer, Failure, Fault, Finish, Target, UpstreamRequest
from routing_admin.core.fallback.chain import Plan, PlannedCandidate, RunResult, Timeouts
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.fallback.scripts import drive_async
from routing_admin.dispatch.provider_checks import ModelList
from routing_admin.dispatch.send import NetworkTransport
from routing_admin.upstream import Stream, Upstream
from routing_admin.upstream.bodies import media_blocks
from routing_admin.upstream.calls import resolve
from routing_admin.upstream.exchange import redact_failure
from routing_admin.upstream.faults import classify_error
from tests.fallback.network_runs import HELLO, QUICK, NetworkRun, protocol
from tests.fallback.scripted_runs import Stage
from tests.lab import Lab
from tests.lab.certificate import self_signed

ANY = OriginPolicy(everything=True)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    client = Upstream(ANY)
    yield client
    await client.close()


def request_to(
    lab: Lab, model: str = "lab-model", *, stream: bool = False, chat: ChatRequest = HELLO
) -> UpstreamRequest:
    target = Target("lab", lab.url("openai", "up"), model, "sk-secret-key-1234567890")
    return protocol("openai").encode(chat, target, stream=stream)


async def collect_events(upstream: Upstream, request: UpstreamRequest, timeouts: Timeouts = QUICK) -> list[object]:
    opened = await upstream.open(request, protocol("openai"), timeouts)
    assert isinstance(opened, Stream)
    return [event async for batch in opened for event in batch]


async def test_request_declares_identity_encoding_and_its_length(lab, upstream):
    lab.requests.clear()
    assert isinstance(await upstream.call(request_to(lab), protocol("openai"), QUICK), Answer)
    headers = lab.requests[-1].headers
    assert headers["accept-encoding"] == "identity"
    assert int(headers["content-length"]) == len(lab.requests[-1].body)
    assert "cookie" not in headers


async def test_file_is_sent_in_blocks_with_constant_memory(lab, upstream):
    size, block = 12 * 1024 * 1024, bytes(range(256)) * 1001
    blocks = [block[: min(len(block), size - at)] for at in range(0, size, len(block))]
    blob = Blob(size, lambda: iter(blocks))
    part = NativePart(Kind.IMAGE, "image/png", blob)
    request = request_to(lab, chat=ChatRequest((Message(Role.USER, (part,)),)))
    lab.requests.clear()
    tracemalloc.start()
    body = sum(len(piece) for piece in media_blocks(blob))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The size is divisible by 3, so its base64 needs no padding.
    assert body == 4 * (size // 3)
    assert peak < 4 * 1024 * 1024
    assert isinstance(await upstream.call(request, protocol("openai"), replace(QUICK, first_content=5)), Answer)
    assert int(lab.requests[-1].headers["content-length"]) == request.content_length == len(lab.requests[-1].body)
    assert lab.requests[-1].heard.media[0].data == b"".join(blocks)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 5, 7), (0, 4), (3,), (), (196608, 1), (196609, 196607)])
def test_base64_of_blocks_equals_base64_of_the_whole_file(sizes):
    blocks = [bytes([index % 256]) * size for index, size in enumerate(sizes)]
    whole = b"".join(blocks)
    assert b"".join(media_blocks(Blob(len(whole), lambda: iter(blocks)))) == base64.b64encode(whole)


async def test_unreadable_file_is_not_the_providers_fault(lab, upstream):
    def blocks() -> Iterator[bytes]:
        yield b"abc"
        raise UnreadableError("artifact_corrupt")

    part = NativePart(Kind.IMAGE, "image/png", Blob(300, blocks))
    request = request_to(lab, chat=ChatRequest((Message(Role.USER, (part,)),)))
    with pytest.raises(UnreadableError):
        await upstream.call(request, protocol("openai"), QUICK)


async def test_redirect_is_never_followed(lab, upstream):
    lab.requests.clear()
    location = lab.url("openai", "other") + "/chat/completions"
    failed = await upstream.call(request_to(lab, f"fault:redirect:location={location}"), protocol("openai"), QUICK)
    assert isinstance(failed, Failure)
    assert failed.fault is Fault.REDIRECT
    assert lab.played == ["redirect"]


async def test_idle_connections_are_reused(lab, upstream):
    for _ in range(2):
        assert isinstance(await upstream.call(request_to(lab), protocol("openai"), QUICK), Answer)
    first, second = lab.requests[-2:]
    assert first.connection == second.connection


async def test_unlisted_origin_is_refused_without_a_connection(lab):
    closed = Upstream(OriginPolicy())
    lab.requests.clear()
    failed = await closed.call(request_to(lab), protocol("openai"), QUICK)
    await closed.close()
    assert isinstance(failed, Failure)
    assert failed.fault is Fault.ORIGIN_REFUSED
    assert "ROUTING_ADMIN_ALLOWED_ORIGINS" in failed.message
    assert lab.requests == []


async def test_name_that_resolves_to_a_private_address_is_refused_at_connection_time(lab):
    """The host name is public, so the resolved address has to be checked at each connection (DNS rebinding)."""
    from routing_admin.upstream.calls import CheckedResolver
    from routing_admin.upstream.faults import ForbiddenAddressError

    resolver = CheckedResolver(OriginPolicy())
    with pytest.raises(ForbiddenAddressError, match="ROUTING_ADMIN_ALLOWED_ORIGINS"):
        await resolver.resolve("localhost", lab.port)
    listed = CheckedResolver(parse_policy(f"http://localhost:{lab.port}"))
    assert [result["host"] for result in await listed.resolve("localhost", lab.port)] == ["127.0.0.1"]


async def test_listed_loopback_name_can_be_called(lab):
    """This is how a local provider such as Ollama is allowed."""
    upstream = Upstream(parse_policy(f"http://localhost:{lab.port}"))
    url = lab.url("openai", "up").replace("127.0.0.1", "localhost")
    request = protocol("openai").encode(HELLO, Target("lab", url, "lab-model"), stream=False)
    assert isinstance(await upstream.call(request, protocol("openai"), QUICK), Answer)
    await upstream.close()


async def test_proxy_setting_is_default_none_or_a_url(lab):
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n"))
        writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    upstream = Upstream(ANY, proxy=url)
    through = await upstream.call(request_to(lab), protocol("openai"), QUICK)
    direct = await upstream.call(request_to(lab), protocol("openai"), QUICK, proxy="none")
    own = await Upstream(ANY).call(request_to(lab), protocol("openai"), QUICK, proxy=url)
    server.close()
    assert [through.fault, own.fault] == [Fault.HTTP_503, Fault.HTTP_503]
    assert isinstance(direct, Answer)
    assert [line.split(b" ")[1] for line in seen] == [request_to(lab).url.encode()] * 2
    await upstream.close()


async def test_proxy_must_be_an_allowed_origin(lab):
    """The proxy receives the key, so it is not contacted unless it is allowed."""
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    upstream = Upstream(parse_policy(lab.url("openai")))
    outcome = await upstream.call(request_to(lab), protocol("openai"), QUICK, proxy=url)
    server.close()
    await upstream.close()
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.ORIGIN_REFUSED
    assert "proxy" in outcome.message
    assert seen == []


@asynccontextmanager
async def rude_server() -> AsyncIterator[str]:
    """Accept TLS connections, and abort each one when its first byte arrives."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    server.close()


async def test_broken_handshake_is_a_tls_error(upstream):
    async with rude_server() as url:
        request = protocol("openai").encode(HELLO, Target("lab", url, "m"), stream=False)
        failed = await upstream.call(request, protocol("openai"), QUICK)
    assert isinstance(failed, Failure)
    assert failed.fault is Fault.TLS_ERROR


@pytest.mark.parametrize("scenario", ["silent", "slow_stream:seconds=0.2", "stall", "endless", "comments_forever"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_cancelled_call_closes_the_socket_within_a_second(lab, upstream, scenario, stream):
    # All these scenarios except `silent` are streams. For a plain call, `drip` sends a body slowly instead.
    if not stream and scenario != "silent":
        scenario = "drip:seconds=0.05"
    lab.requests.clear()

    async def read() -> None:
        request = request_to(lab, f"fault:{scenario}", stream=stream)
        long = Timeouts(first_content=30, between=30, total=60)
        if stream:
            await collect_events(upstream, request, long)
        else:
            await upstream.call(request, protocol("openai"), long)

    task = asyncio.create_task(read())
    await asyncio.to_thread(lab.wait_until, lambda: bool(lab.requests))
    if scenario != "silent":
        await asyncio.to_thread(lab.wait_until, lambda: lab.requests[0].started)
    cancelled_at = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(lab.wait_until, lambda: lab.requests[-1].done)
    assert (lab.requests[-1].closed_at or lab.requests[-1].ended_at) - cancelled_at < 1


async def test_cancelled_run_records_the_attempt_in_progress(lab, upstream):
    lab.requests.clear()
    stage = Stage()
    run: FallbackRun[object] = FallbackRun(Plan((PlannedCandidate(0, "up", "fault:silent"),)), stage.run_context)

    async def ask(call):
        return await upstream.call(request_to(lab, call.candidate.model), protocol("openai"), Timeouts())

    task = asyncio.create_task(drive_async(run, ask, asyncio.sleep))
    assert await asyncio.to_thread(lab.wait_until, lambda: bool(lab.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [attempt.outcome for attempt in run.attempts] == ["client_cancelled"]


async def test_finished_response_does_not_wait_for_the_end_of_its_stream(lab, upstream):
    """After the finish reason, the stream gets only a few seconds to send its usage, not the whole stall timeout."""
    patient = Timeouts(first_content=30, between=30, total=60)
    request = request_to(lab, "fault:held_open:text=all of it", stream=True)
    started = time.monotonic()
    events = await collect_events(upstream, request, patient)
    assert isinstance(events[-1], Finish)
    assert time.monotonic() - started < 5


async def test_stream_is_withheld_until_its_first_content(lab, upstream):
    opened = await upstream.open(request_to(lab, "fault:reasoning", stream=True), protocol("openai"), QUICK)
    assert isinstance(opened, Stream)
    events = [event async for batch in opened for event in batch]
    kinds = [
        "reasoning" if getattr(event, "reasoning", "") else "text" for event in events[:-1] if event != type(event)()
    ]
    assert kinds == sorted(kinds), "reasoning first, then text"
    assert isinstance(events[-1], Finish)


async def test_keep_alive_comments_extend_only_the_wait_for_content(lab):
    """Comments extend the time limit for the first content. After it, they do not extend the stall timeout."""
    before = NetworkRun({"up": lab.url("openai", "up")}, protocol("openai"), stream=True)
    end = await before.run(PlannedCandidate(0, "up", "fault:comments_first:count=12,seconds=0.1"))
    assert isinstance(end, RunResult)
    assert isinstance(before.events[-1], Finish)
    after = NetworkRun({"up": lab.url("openai", "up")}, protocol("openai"), stream=True)
    await after.run(PlannedCandidate(0, "up", "fault:comments_after"), timeouts=replace(QUICK, first_content=10))
    assert after.events[-1].fault is Fault.STREAM_STALL


def test_synchronous_call_from_a_thread_has_the_same_outcome(lab):
    """When an administrator tests a connection on a page, the provider is called in this way."""
    upstream = Upstream(ANY)
    assert isinstance(upstream.call_sync(request_to(lab), protocol("openai"), QUICK), Answer)
    failed = upstream.call_sync(request_to(lab, "fault:http_401"), protocol("openai"), QUICK)
    assert isinstance(failed, Failure)
    assert failed.fault is Fault.HTTP_401


def test_failure_message_has_no_key_and_no_line_break(lab):
    message = "bad key sk-secret-key-1234567890\r\n\x1b[31m" + "x" * 9000
    cleaned = redact_failure(Failure(Fault.HTTP_401, message, 401), request_to(lab))
    assert "secret" not in cleaned.message
    assert cleaned.message.isprintable()
    assert len(cleaned.message) <= 2048


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_next_candidate_is_called_without_delay(lab, stream):
    """`make bench` measures the time until the next candidate is called."""
    lab.requests.clear()
    urls = {"bad": lab.url("openai", "bad"), "good": lab.url("openai", "good")}
    network_run = NetworkRun(urls, protocol("openai"), stream)
    end = await network_run.run(PlannedCandidate(0, "bad", "fault:http_529"), PlannedCandidate(1, "good", "lab-model"))
    assert isinstance(end, RunResult)
    assert [len(attempt.tries) for attempt in end.attempts] == [1, 1]
    assert [attempt.waits for attempt in end.attempts] == [(), ()]
    assert len(lab.requests) == 2


def test_blobs_in_memory_can_be_read_more_than_once():
    """Each attempt reads them from the beginning."""
    blob = make_blob(b"abcd")
    assert list(media_blocks(blob)) == list(media_blocks(blob))


def test_lab_records_the_text_that_was_sent(lab):
    """This tests the fault lab and not the product."""
    lab.requests.clear()
    chat = ChatRequest((Message(Role.USER, (TextPart("can you hear me"),)),))
    Upstream(ANY).call_sync(request_to(lab, chat=chat), protocol("openai"), QUICK)
    assert lab.requests[-1].heard.question == "can you hear me"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_embedded_provider_answers_without_a_network(stream):
    transport = NetworkTransport()

    async def ask(model: str) -> Answer | Stream | Failure:
        endpoint = model_endpoint("echo", Target("echo", "echo://local", model), TEXT_ONLY)
        prepared = Prepared(endpoint.protocol.encode(HELLO, endpoint.target, stream=stream), HELLO, ())
        return await (transport.open if stream else transport.call)(prepared, endpoint, QUICK, "default")

    outcome, failed = await ask("echo-text"), await ask("echo-503")
    if isinstance(outcome, Stream):
        events = [event async for batch in outcome for event in batch]
        assert "hello" in "".join(event.text for event in events[:-1])
        assert isinstance(events[-1], Finish)
    else:
        assert "hello" in outcome.text
    assert failed.fault is Fault.HTTP_503


async def test_model_list_request_obeys_the_origin_policy(lab, upstream):
    request = UpstreamRequest(lab.url("openai", "up") + "/models", {"authorization": "Bearer sk-1"}, method="GET")
    response = await upstream.call(request, ModelList(), QUICK)
    assert "lab-model" in [model["id"] for model in json.loads(response.text)]
    refused = await Upstream(OriginPolicy()).call(request, ModelList(), QUICK)
    assert refused.fault is Fault.ORIGIN_REFUSED


async def test_unresponsive_name_server_is_a_dns_error():
    """DNS has its own timeout, so a look-up cannot use up the time for the first content."""

    class Silent(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET):
            await asyncio.Event().wait()

        async def close(self) -> None:
            return

    with pytest.raises(OSError, match="no answer about") as caught:
        await resolve(Silent(), "api.example", seconds=0.05)
    assert classify_error(caught.value) is Fault.DNS_ERROR


async def test_encrypted_connection_works_with_a_trusted_certificate(lab):
    context = ssl.create_default_context(cafile=self_signed()[0])
    context.check_hostname = False  # The lab's certificate does not name the lab's address.
    url = lab.broken_url("tls_cert_error")
    request = protocol("openai").encode(HELLO, Target("lab", url, "lab-model"), stream=True)
    trusting = Upstream(ANY, verify=context)
    events = await collect_events(trusting, request)
    await trusting.close()
    assert isinstance(events[-1], Finish)
