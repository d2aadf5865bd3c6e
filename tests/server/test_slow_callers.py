"""Slow callers and callers with many connections get an error, and other callers are still served."""

from __future__ import annotations

import asyncio
import json
import resource

import pytest

from routing_admin.platform.server.connections import HEALTH_CONNECTIONS, ConnectionLimits, Connections
from routing_admin.platform.server.resources import (
    descriptor_limit,
    find_descriptor_shortage,
    max_connections,
    raise_descriptor_limit,
)
from tests.server.protocol_server import GET, Site, serve

SHORT, LONG = 0.02, 30.0
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: 6\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: here\r\n", GET + b"GET"])
async def test_incomplete_head_returns_408_and_closes_the_connection(sent):
    """The time is measured from the start of the connection, or from the first byte of a later request."""
    async with serve(site := Site(), ConnectionLimits(head_seconds=SHORT)):
        caller = await site.open(sent)
        if sent.startswith(GET):
            assert (await caller.answer())[0] == 200
        status, body = await caller.refusal()
    assert (status, body["error"]) == (408, "request_timeout")
    assert body["message"].startswith("The request headers did not arrive within 0.02 s.")


async def test_incomplete_body_returns_408_in_the_error_format_of_its_path():
    async with serve(site := Site(), ConnectionLimits(body_seconds=SHORT)):
        status, body = await (await site.open(POST + b"abc")).refusal()
    assert (status, body["error"]["code"], body["error"]["type"]) == (408, "request_timeout", "timeout_error")


async def test_body_above_the_minimum_rate_may_exceed_the_time_limit():
    limits = ConnectionLimits(head_seconds=2 * SHORT, body_seconds=SHORT, body_rate=0)
    async with serve(site := Site(), limits):
        caller = await site.open(POST)
        for piece in (b"ab", b"cd", b"ef"):
            await (await site.open(b"GET /")).refusal()
            caller.writer.write(piece)
        assert (await caller.answer())[2] == b"abcdef"


async def test_body_time_limit_is_paused_while_the_application_does_not_read():
    async with serve(site := Site(), ConnectionLimits(head_seconds=2 * SHORT, body_seconds=SHORT), answers=False):
        large = b"x" * 1_000_000
        caller = await site.open(b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 1000000\r\n\r\n" + large)
        await (await site.open(b"GET /")).refusal()
        site.may_answer.set()
        assert (await caller.answer())[2] == large


async def test_connection_is_closed_if_the_body_is_incomplete_after_the_response():
    async with serve(site := Site(reads=False), ConnectionLimits(body_seconds=SHORT)):
        caller = await site.open(CHUNKED)
        assert (await caller.answer())[0] == 200
        caller.writer.write(b"3\r\nabc\r\n")
        assert await caller.is_closed()


async def test_incomplete_pipelined_head_does_not_affect_the_previous_response():
    async with serve(site := Site(), ConnectionLimits(head_seconds=SHORT), answers=False):
        caller = await site.open(GET + b"GET / HTTP/1.1\r\n")
        await (await site.open(b"GET /")).refusal()
        site.may_answer.set()
        assert (await caller.answer())[0] == 200


async def test_request_head_above_the_size_limit_returns_431():
    """The limit applies to the whole request head, not to each of its chunks."""
    async with serve(site := Site(), ConnectionLimits(head_bytes=1000)):
        caller = await site.open(b"GET / HTTP/1.1\r\n")
        assert (await (await site.open(GET)).answer())[0] == 200
        caller.writer.write(b"x-more: " + b"x" * 1000 + b"\r\n")
        status, body = await caller.refusal()
    assert (status, body["error"]) == (431, "head_too_large")


async def test_connection_is_closed_if_its_caller_does_not_read_the_response():
    site = Site(answer=b"x" * 50_000_000)
    async with serve(site, ConnectionLimits(unread_seconds=SHORT)) as connections:
        caller = await site.open(b"GET / HTTP/1.0\r\n\r\n")
        await site.called.wait()
        while len(connections):
            await asyncio.sleep(0)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await caller.reader.readexactly(len(site.answer))


async def test_address_above_its_connection_limit_gets_503():
    async with serve(site := Site(), ConnectionLimits(per_address=2), answers=False) as connections:
        busy = [await site.open(GET), await site.open(GET)]
        while connections.busy() < 2:
            await asyncio.sleep(0)
        refused = await site.open(GET)
        status, headers, body = await refused.answer()
        assert (status, headers["retry-after"], json.loads(body)["error"]) == (503, "1", "too_many_connections")
        assert await refused.is_closed()
        site.may_answer.set()
        assert [(await caller.answer())[0] for caller in busy] == [200, 200]
        assert (await (await site.open(GET)).answer())[0] == 200


async def test_half_open_connections_are_closed_for_new_connections():
    async with serve(site := Site(), ConnectionLimits(per_address=2)):
        silent = [await site.open(), await site.open(b"GET / HT")]
        for caller in silent:
            assert (await (await site.open(GET)).answer())[0] == 200
            assert (await caller.refusal())[0] == 503


async def test_idle_connection_is_closed_without_a_response_for_a_new_connection():
    async with serve(site := Site(), ConnectionLimits(per_address=1)):
        idle = await site.open(GET)
        assert (await idle.answer())[0] == 200
        assert (await (await site.open(GET)).answer())[0] == 200
        assert await idle.is_closed()


async def test_behind_a_proxy_requests_are_limited_by_forwarded_address():
    async with serve(site := Site(), ConnectionLimits(per_address=1, proxies=1), answers=False):
        opened = [await site.open(forwarded_request("203.0.113.1")), await site.open(forwarded_request("203.0.113.2"))]
        refused = await site.open(forwarded_request("198.51.100.9, 203.0.113.1"))
        assert (await refused.refusal())[0] == 503
        site.may_answer.set()
        assert [(await caller.answer())[0] for caller in opened] == [200, 200]


async def test_full_process_closes_half_open_connections_for_new_connections():
    for proxies in (0, 1):
        async with serve(site := Site(), ConnectionLimits(total=2, proxies=proxies)) as connections:
            silent = [await site.open(), await site.open(b"GET / HT")]
            for caller in silent:
                assert (await (await site.open(GET)).answer())[0] == 200
                assert (await caller.refusal())[0] == 503
            assert connections.refused == 2


async def test_full_process_still_answers_health_checks():
    async with serve(site := Site(), ConnectionLimits(total=2), answers=False) as connections:
        busy = [await site.open(GET), await site.open(GET)]
        while connections.busy() < 2:
            await asyncio.sleep(0)
        status, body = await (await site.open(GET)).refusal()
        assert (status, body["error"]) == (503, "too_many_connections")
        health = [await site.open(b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n") for _ in range(HEALTH_CONNECTIONS)]
        assert (await (await site.open()).refusal())[0] == 503
        site.may_answer.set()
        assert {(await caller.answer())[0] for caller in [*busy, *health]} == {200}


def test_rejected_connections_are_logged_once_a_minute_with_their_count(caplog):
    """Many refused connections must not fill the disk with log lines."""
    now = [0.0]
    connections = Connections(ConnectionLimits(total=0), clock=lambda: now[0])
    for now[0] in (0.0, 1.0, 59.0, 60.0):
        assert not connections.add(BusyConnection())
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        "1 connections or requests were refused or closed: this process has its 0 connections",
        "3 connections or requests were refused or closed: this process has its 0 connections",
    ]


class BusyConnection:
    """A connection that is handling a request."""

    waits_for_head = is_idle = False

    def make_room(self) -> None:
        """Keep the connection open, since it is in use."""


def test_descriptor_limit_is_raised_and_half_of_it_is_for_callers():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    try:
        raised = raise_descriptor_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 32_768)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [max_connections(descriptors) for descriptors in (64, 1024, 32_768)] == [1, 448, 16_320]


def test_descriptor_limit_too_low_for_the_settings_is_reported(settings):
    callers = max_connections(limit := descriptor_limit())
    settings.MAX_CALLS, settings.MAX_REQUESTS = callers, 0
    assert not find_descriptor_shortage()
    settings.MAX_REQUESTS = 1
    sentence = find_descriptor_shortage()
    assert sentence.startswith(f"A process may open {limit} files, so callers may have {callers} connections, fewer")
    assert "LimitNOFILE" in sentence


def forwarded_request(forwarded: str) -> bytes:
    return b"GET / HTTP/1.1\r\nhost: here\r\nx-forwarded-for: " + forwarded.encode() + b"\r\n\r\n"


@pytest.mark.parametrize("before", [b"", GET])
async def test_request_that_arrives_during_shutdown_is_answered(before):
    async with serve(site := Site(answer=b"hello"), ConnectionLimits()):
        caller = await site.open(before)
        if before:
            _status, headers, _body = await caller.answer()
            assert "connection" not in headers
        while not site.state.connections:
            await asyncio.sleep(0)
        site.end()
        caller.writer.write(GET)
        status, headers, body = await caller.answer()
        assert (status, headers["connection"], body) == (200, "close", b"hello")
        assert await caller.is_closed()


async def test_idle_connection_is_closed_at_shutdown():
    async with serve(site := Site(answer=b"hello"), ConnectionLimits()):
        caller = await site.open(GET)
        await caller.answer()
        site.end()
        assert await caller.is_closed()
