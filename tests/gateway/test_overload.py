"""If a process receives more calls than it can accept, some are refused.

Slots are shared fairly between agents, and every reservation is released.
"""

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
from tests.cast import create_key
from tests.gateway.asgi_caller import Call, chat_call
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


@pytest.fixture
def four_slots(settings: Any) -> Iterator[None]:
    """Provide four slots for chat calls and four for other requests. A caller gets three of them, and its next call
    waits.
    """
    settings.MAX_CALLS = settings.MAX_REQUESTS = 4
    for semaphore in (calls, requests, lookups):
        renew(semaphore)
    yield
    for semaphore in (calls, requests, lookups):
        renew(semaphore)


async def fill(semaphore: FairSemaphore, unanswered: list[Call]) -> list[asyncio.Task[Call]]:
    """Start one caller's calls. Three of them get a slot, and one waits."""
    running = []
    for call in unanswered:
        running.append(asyncio.create_task(call.run()))
        while semaphore.in_use + semaphore.waiting < len(running):
            await asyncio.sleep(0)
    assert (semaphore.in_use, semaphore.waiting) == (3, 1)
    return running


async def disconnect_all(unanswered: list[Call], running: list[asyncio.Task[Call]]) -> None:
    for call in unanswered:
        call.disconnected.set()
    await asyncio.wait(running)


async def test_agent_that_fills_the_process_is_refused_while_another_agent_is_served(key, loopback, four_slots):
    other_key = await asyncio.to_thread(create_key, "vision-agent")
    unanswered = [chat_call(key, "silent") for _ in range(4)]
    async with loopback.serve():
        assert (await chat_call(key, "plain").run()).status == 200
        running = await fill(calls(), unanswered)
        refused = await chat_call(key, "plain", (b"x-request-id", b"too-many")).run()
        served = await chat_call(other_key, "plain").run()
        await disconnect_all(unanswered, running)
    assert (refused.status, refused.answer_headers["retry-after"], served.status) == (503, "1", 200)
    assert refused.answer_headers["x-should-retry"] == "true"
    assert refused.error_code == "overloaded"
    assert (calls().in_use, calls().waiting, calls().refused) == (0, 0, 1)
    row = await asyncio.to_thread(logged, "too-many")
    assert (row.outcome, row.status, row.agent) == ("overloaded", 503, "text-agent")


async def test_concurrent_calls_with_a_new_key_share_one_lookup(key, loopback, settings):
    settings.MAX_REQUESTS = 1
    renew(lookups)
    async with loopback.serve():
        finished = await asyncio.gather(*(chat_call(key, "plain").run() for _ in range(50)))
    refused = lookups().refused
    renew(lookups)
    assert ({call.status for call in finished}, refused) == ({200}, 0)


async def test_concurrent_requests_other_than_chat_and_health_checks_are_limited(key, four_slots):
    stuck = [Call([], upload_headers(key), path="/v1/files") for _ in range(4)]
    running = await fill(requests(), stuck)
    refused = await Call([b""], [(b"host", b"127.0.0.1")], "GET", "/api/v1/agents").run()
    health = await Call([b""], [(b"host", b"127.0.0.1")], "GET", "/healthz").run()
    await disconnect_all(stuck, running)
    assert (refused.status, refused.answer_headers["retry-after"], health.status) == (503, "1", 200)
    assert json.loads(refused.answer)["error"] == "overloaded"
    assert (requests().in_use, requests().waiting) == (0, 0)


async def test_memory_of_large_bodies_is_limited(key, loopback):
    """Memory is reserved by Content-Length before a body is read.

    If too little memory is left, the call gets a 503. All reservations are released.
    """
    large = chat_call(key, "plain", pieces=8, user="x" * 800_000)
    async with loopback.serve():
        assert bodies().take("second", LARGE_BODIES_MIB // 2)
        assert bodies().take("third", LARGE_BODIES_MIB // 2)
        refused = await large.run()
        small = await chat_call(key, "plain").run()
        for holder in ("second", "third"):
            bodies().leave(holder, LARGE_BODIES_MIB // 2)
        served = await chat_call(key, "plain", pieces=8, user="x" * 800_000).run()
    assert (refused.status, small.status, served.status) == (503, 200, 200)
    assert (refused.error_code, bodies().in_use) == ("overloaded", 0)


def upload_headers(key: str) -> list[tuple[bytes, bytes]]:
    bearer = f"Bearer {key}".encode()
    return [(b"host", b"127.0.0.1"), (b"authorization", bearer), (b"content-length", b"100")]


async def test_files_of_one_agent_do_not_occupy_all_threads():
    """Reading a file takes seconds and occupies a thread. One agent's files must leave threads for other agents."""
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
