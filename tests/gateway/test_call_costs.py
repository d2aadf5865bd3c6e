"""A call with a known key makes no database queries and starts no threads or tasks, as measured over a real socket."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.db.backends.base.base import BaseDatabaseWrapper

import routing_admin
from capabilities.core.message import ChatRequest
from routing_admin.configuration import snapshot
from routing_admin.dispatch.send import Dispatch
from routing_admin.gateway import application
from routing_admin.limits.reservations import keeper
from tests.cast import limit_agent
from tests.gateway.asgi_caller import Call, chat_call
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ROOT = str(Path(routing_admin.__file__).parents[1])
TRIES = 20
HOUR = 3600.0


@dataclass
class Costs:
    """What happened during a call.

    Database accesses and threads are listed by thread name, and tasks by the name of their coroutine.
    """

    rows: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def make_task(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> Any:
        """Create a task as the event loop does, and record it if its code is in a file of the project."""
        file = work.cr_code.co_filename
        ours = file.startswith(ROOT) and "site-packages" not in file
        (self.ours if ours else self.others).append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **more)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Record all database cursors and connections, thread pool tasks, started threads, and `sync_to_async` calls."""
    costs = Costs()

    def record(owner: type, name: str, events: list[str]) -> None:
        original = getattr(owner, name)

        def recorded(*args: Any, **more: Any) -> Any:
            events.append(f"{owner.__name__}.{name} in {threading.current_thread().name}")
            return original(*args, **more)

        monkeypatch.setattr(owner, name, recorded)

    for name in ("cursor", "connect"):
        record(BaseDatabaseWrapper, name, costs.rows)
    for owner, name in ((ThreadPoolExecutor, "submit"), (threading.Thread, "start"), (SyncToAsync, "__call__")):
        record(owner, name, costs.threads)
    return costs


async def measure_call(key: str, provider: str, costs: Costs, **body: Any) -> Call:
    """Make a call after another call has filled the caches.

    Repeat it if the configuration's version stamp was read meanwhile: the stamp is read every second, whatever call is
    running, so reading it is not a cost of the call. A share of a limit that arrives late is not a cost of the call
    either.
    """
    loop = asyncio.get_running_loop()
    for _ in range(TRIES):
        assert (await chat_call(key, provider, **body).run()).status in (200, 503)
        looked_at = snapshot.newest().read_at()
        for events in (costs.rows, costs.threads, costs.ours, costs.others):
            events.clear()
        call = chat_call(key, provider, **body)
        loop.set_task_factory(costs.make_task)
        try:
            await call.run()
        finally:
            loop.set_task_factory(None)
        if call.status == 200 and snapshot.newest().read_at() == looked_at:
            break
    return call


@pytest.mark.parametrize(("provider", "stream"), [("plain", False), ("stream", True)])
@pytest.mark.parametrize(("watch_after", "watches"), [(HOUR, []), (0.0, ["_DisconnectWatch._listen"])])
async def test_call_with_a_known_key_makes_no_queries_threads_or_tasks(
    key, loopback, costs, monkeypatch, provider, stream, watch_after, watches
):
    """The gateway's only task watches longer calls for a disconnect.

    aiohttp creates a task for the request's body. Python 3.12 and later run that task eagerly, so it never reaches the
    loop.
    """
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", watch_after)
    async with loopback.serve():
        call = await measure_call(key, provider, costs, stream=stream)
    assert (call.status, costs.rows, costs.threads) == (200, [], [])
    assert (b"[DONE]" in call.answer, b"bench" in call.answer) == (stream, True)
    assert costs.ours == watches
    assert set(costs.others) <= {"ClientRequest.write_bytes"}
    assert len(costs.others) <= 1


@pytest.mark.parametrize("stream", [False, True])
async def test_call_within_its_share_of_a_limit_makes_no_queries_or_threads(key, loopback, costs, monkeypatch, stream):
    """The reservation is made from a share of the limit that the process holds in memory.

    The `limits` thread updates the database later.
    """
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", HOUR)
    await asyncio.to_thread(limit_agent, requestsPerMinute=10**6, tokensPerDay=10**9, inFlight=1000)
    provider = "stream" if stream else "plain"
    async with loopback.serve():
        call = await measure_call(key, provider, costs, stream=stream)
        rows, threads = [*costs.rows], [*costs.threads]
        await asyncio.to_thread(keeper().stop)
    assert call.answer_headers["x-ratelimit-limit-requests"] == str(10**6)
    assert {event.rpartition(" ")[2] for event in rows} <= {"limits"}
    assert (threads, costs.ours) == ([], [])


@pytest.mark.parametrize(("provider", "stream"), [("plain", False), ("stream", True)])
async def test_finished_call_is_freed_without_the_cycle_collector(key, loopback, provider, stream):
    """A finished call has no reference cycles, so a request of ten megabytes is freed immediately."""
    gc.collect()
    gc.disable()
    try:
        before = count_requests()
        async with loopback.serve():
            await chat_call(key, provider, stream=stream).run()
        assert count_requests() == before
    finally:
        gc.enable()


def count_requests() -> int:
    return sum(type(item) in (Dispatch, ChatRequest) for item in gc.get_objects())


async def test_counters_record_queries_threads_and_tasks(key, loopback, costs):
    """A call with an unknown key uses the database, threads and tasks, so the counters must not be zero."""
    loop = asyncio.get_running_loop()
    async with loopback.serve():
        loop.set_task_factory(costs.make_task)
        call = await asyncio.create_task(chat_call(key, "plain").run())
        loop.set_task_factory(None)
    assert call.status == 200
    assert any("BaseDatabaseWrapper.cursor" in event for event in costs.rows)
    assert "ThreadPoolExecutor.submit in MainThread" in costs.threads
    assert "Thread.start in MainThread" in costs.threads
    assert costs.ours[0] == "Call.run"
    row = await asyncio.to_thread(logged, call.answer_headers["x-request-id"])
    assert row.outcome == "ok"
