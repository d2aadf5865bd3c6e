"""More calls than a process accepts: refused, shared fairly between agents, and every reservation is released."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from capabilities.fair_slots import requester
from capabilities.runtime import renew
from routing_admin.gateway.http import HttpCall, RequestBytes
from routing_admin.gateway.threads import run_in_own_share
from routing_admin.platform.server.fair_semaphore import (
    LARGE_BODIES_MIB,
    THREADS,
    FairSemaphore,
    bodies,
    calls,
    lookups,
    requests,
    threads,
)
from tests.cast import key_of
from tests.gateway.asgi_caller import Call, Loopback, chat_call, loopback_providers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


@pytest.fixture
def loopback(demo: None) -> Iterator[Loopback]:
    with loopback_providers() as providers:
        yield providers


@pytest.fixture
def four_places(settings: Any) -> Iterator[None]:
    """Limit chat calls and other requests to four, one of them waiting."""
    settings.MAX_CALLS = settings.MAX_REQUESTS = 4
    for each in (calls, requests, lookups):
        renew(each)
    yield
    for each in (calls, requests, lookups):
        renew(each)


async def fill(places: FairSemaphore, unanswered: list[Call]) -> list[asyncio.Task[Call]]:
    """Start one caller's calls: three have a slot, one waits."""
    running = []
    for each in unanswered:
        running.append(asyncio.create_task(each.run()))
        while places.in_use + places.waiting < len(running):
            await asyncio.sleep(0)
    assert (places.in_use, places.waiting) == (3, 1)
    return running


async def leave(unanswered: list[Call], running: list[asyncio.Task[Call]]) -> None:
    for each in unanswered:
        each.left.set()
    await asyncio.wait(running)


async def test_an_agent_that_fills_the_process_is_refused_and_another_one_served(key, loopback, four_places):
    """The refusal is a logged 503 with Retry-After. After the disconnects every slot is free."""
    other = await asyncio.to_thread(key_of, "vision-agent")
    silent = [chat_call(key, "silent") for _ in range(4)]
    async with loopback.serve():
        assert (await chat_call(key, "plain").run()).status == 200
        running = await fill(calls(), silent)
        refused = await chat_call(key, "plain", (b"x-request-id", b"too-many")).run()
        served = await chat_call(other, "plain").run()
        await leave(silent, running)
    assert (refused.status, refused.answer_headers["retry-after"], served.status) == (503, "1", 200)
    assert refused.answer_headers["x-should-retry"] == "true"
    assert json.loads(refused.answer)["error"]["code"] == "overloaded"
    assert (calls().in_use, calls().waiting, calls().refused) == (0, 0, 1)
    row = await asyncio.to_thread(logged, "too-many")
    assert (row.outcome, row.status, row.agent) == ("overloaded", 503, "text-agent")


async def test_calls_that_come_at_once_with_a_new_key_need_one_lookup(key, loopback, settings):
    """Concurrent calls with a new key share one look-up, however few look-ups may run at a time."""
    settings.MAX_REQUESTS = 1
    renew(lookups)
    async with loopback.serve():
        done = await asyncio.gather(*(chat_call(key, "plain").run() for _ in range(50)))
    refused = lookups().refused
    renew(lookups)
    assert ({call.status for call in done}, refused) == ({200}, 0)


async def test_what_needs_a_thread_is_bounded_too_and_health_is_not(key, four_places):
    """Uploads without a body hold the slots of their address, other requests are refused, and the health check is
    answered.
    """
    stuck = [Call([], upload_headers(key), path="/v1/files") for _ in range(4)]
    running = await fill(requests(), stuck)
    refused = await Call([b""], [(b"host", b"127.0.0.1")], "GET", "/api/v1/agents").run()
    health = await Call([b""], [(b"host", b"127.0.0.1")], "GET", "/healthz").run()
    await leave(stuck, running)
    assert (refused.status, refused.answer_headers["retry-after"], health.status) == (503, "1", 200)
    assert json.loads(refused.answer)["error"] == "overloaded"
    assert (requests().in_use, requests().waiting) == (0, 0)


async def test_large_bodies_have_so_much_memory(key, loopback):
    """Memory is reserved by Content-Length before a body is read; beyond the limit a call is a 503. Reservations are
    released.
    """
    large = chat_call(key, "plain", pieces=8, user="x" * 800_000)
    async with loopback.serve():
        assert bodies().take("somebody else", LARGE_BODIES_MIB // 2)
        assert bodies().take("a third one", LARGE_BODIES_MIB // 2)
        refused = await large.run()
        small = await chat_call(key, "plain").run()
        for each in ("somebody else", "a third one"):
            bodies().leave(each, LARGE_BODIES_MIB // 2)
        served = await chat_call(key, "plain", pieces=8, user="x" * 800_000).run()
    assert (refused.status, small.status, served.status) == (503, 200, 200)
    assert (json.loads(refused.answer)["error"]["code"], bodies().in_use) == ("overloaded", 0)


def upload_headers(key: str) -> list[tuple[bytes, bytes]]:
    bearer = f"Bearer {key}".encode()
    return [(b"host", b"127.0.0.1"), (b"authorization", bearer), (b"content-length", b"100")]


async def test_however_many_files_of_one_agent_wait_for_a_reader_another_one_finds_a_thread():
    """Reading a file takes seconds and occupies a thread, so one agent may not occupy all of them."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    call = HttpCall("POST", "/", "", {}, "", "req_1", RequestBytes(b""), in_own_threads=True)
    is_read = threading.Event()
    requester.set("many")
    slow = [asyncio.create_task(run_in_own_share(call, is_read.wait)) for _ in range(2 * THREADS)]
    while not threads().waiting:
        await asyncio.sleep(0)
    requester.set("other")
    assert await run_in_own_share(call, lambda: "small") == "small"
    assert not is_read.is_set()
    is_read.set()
    await asyncio.gather(*slow)
    assert (threads().in_use, threads().waiting) == (0, 0)
