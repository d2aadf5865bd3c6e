"""What a call by a known key does without: rows, threads, tasks of ours; proved by counting, over a real socket."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.db.backends.base.base import BaseDatabaseWrapper

import routing_admin
from capabilities.acts import SYSTEM
from capabilities.core.message import ChatRequest
from capabilities.models import Agent
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import save_agent
from routing_admin.dispatch.send import Dispatch
from routing_admin.gateway import application
from routing_admin.limits.reservations import keeper
from tests.gateway.asgi_caller import Call, Loopback, chat_call, loopback_providers
from tests.gateway.plane import logged

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

ROOT = str(Path(routing_admin.__file__).parents[1])
TRIES = 20
HOUR = 3600.0


@dataclass
class Costs:
    """What was done while it counted: rows and threads by who did it, tasks by their coroutine's name."""

    rows: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def make_task(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> Any:
        """A task as the loop makes it, noted as ours or as somebody else's by the file its code stands in."""
        file = work.cr_code.co_filename
        ours = file.startswith(ROOT) and "site-packages" not in file
        (self.ours if ours else self.others).append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **more)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Counts from now on: cursors of every connection, work for every pool, threads, each turn from one to another."""
    costs = Costs()

    def note(owner: type, name: str, found: list[str]) -> None:
        usual = getattr(owner, name)

        def noting(*args: Any, **more: Any) -> Any:
            found.append(f"{owner.__name__}.{name} in {threading.current_thread().name}")
            return usual(*args, **more)

        monkeypatch.setattr(owner, name, noting)

    for name in ("cursor", "connect"):
        note(BaseDatabaseWrapper, name, costs.rows)
    for owner, name in ((ThreadPoolExecutor, "submit"), (threading.Thread, "start"), (SyncToAsync, "__call__")):
        note(owner, name, costs.threads)
    return costs


@pytest.fixture
def loopback(demo: None) -> Iterator[Loopback]:
    """Providers of this machine."""
    with loopback_providers() as providers:
        yield providers


async def cost_of(key: str, word: str, costs: Costs, **body: Any) -> Call:
    """A call after one that made the key known and the connection; again where somebody looked at the stamp meanwhile.

    A look is due every second, whoever calls: it is not the call's. Neither is a share of a limit that comes late.
    """
    loop = asyncio.get_running_loop()
    for _ in range(TRIES):
        assert (await chat_call(key, word, **body).run()).status in (200, 503)
        looked_at = snapshot.newest().read_at()
        for found in (costs.rows, costs.threads, costs.ours, costs.others):
            found.clear()
        call = chat_call(key, word, **body)
        loop.set_task_factory(costs.make_task)
        try:
            await call.run()
        finally:
            loop.set_task_factory(None)
        if call.status == 200 and snapshot.newest().read_at() == looked_at:
            break
    return call


@pytest.mark.parametrize(("word", "stream"), [("plain", False), ("stream", True)])
@pytest.mark.parametrize(("watch_after", "watches"), [(HOUR, []), (0.0, ["_Watch._listen"])])
async def test_a_call_by_a_known_key_asks_no_rows_enters_no_thread_and_makes_no_task(
    key, loopback, costs, monkeypatch, word, stream, watch_after, watches
):
    """But for the watch of a call that takes longer. The client (aiohttp) makes one of its own for the body it sends.

    Python 3.12 and later run that one at once, so that it never meets the loop.
    """
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", watch_after)
    async with loopback.serve():
        call = await cost_of(key, word, costs, stream=stream)
    assert (call.status, costs.rows, costs.threads) == (200, [], [])
    assert (b"[DONE]" in call.answer, b"bench" in call.answer) == (stream, True)
    assert costs.ours == watches
    assert set(costs.others) <= {"ClientRequest.write_bytes"}
    assert len(costs.others) <= 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_within_its_agents_share_of_a_limit_asks_no_rows_and_no_thread(
    key, loopback, costs, monkeypatch, stream
):
    """What it needs was drawn before; the ledger hears of it later, from a thread beside the calls."""
    monkeypatch.setattr(application, "WATCH_AFTER_SECONDS", HOUR)
    await asyncio.to_thread(limit, requestsPerMinute=10**6, tokensPerDay=10**9, inFlight=1000)
    word = "stream" if stream else "plain"
    async with loopback.serve():
        call = await cost_of(key, word, costs, stream=stream)
        rows, threads = [*costs.rows], [*costs.threads]
        await asyncio.to_thread(keeper().stop)
    assert call.answer_headers["x-ratelimit-limit-requests"] == str(10**6)
    assert {each.rpartition(" ")[2] for each in rows} <= {"limits"}
    assert (threads, costs.ours) == ([], [])


def limit(**most: int) -> None:
    """Limits of the text agent."""
    row = Agent.objects.get(agent_id="text-agent")
    row.limits = dict(most)
    save_agent(SYSTEM, row)


@pytest.mark.parametrize(("word", "stream"), [("plain", False), ("stream", True)])
async def test_what_a_call_held_goes_with_it(key, loopback, word, stream):
    """Nothing of it knows itself by a detour: ten megabytes would wait for the collector of such things."""
    gc.collect()
    gc.disable()
    try:
        before = count_requests()
        async with loopback.serve():
            await chat_call(key, word, stream=stream).run()
        assert count_requests() == before
    finally:
        gc.enable()


def count_requests() -> int:
    """How many requests there are in this process, on their way or forgotten."""
    return sum(type(each) in (Dispatch, ChatRequest) for each in gc.get_objects())


async def test_the_count_sees_rows_threads_and_tasks(key, loopback, costs):
    """A call by an unknown key has all that the law above forbids: what counts nothing proves nothing."""
    loop = asyncio.get_running_loop()
    async with loopback.serve():
        loop.set_task_factory(costs.make_task)
        call = await asyncio.create_task(chat_call(key, "plain").run())
        loop.set_task_factory(None)
    assert call.status == 200
    assert any("BaseDatabaseWrapper.cursor" in each for each in costs.rows)
    assert "ThreadPoolExecutor.submit in MainThread" in costs.threads
    assert "Thread.start in MainThread" in costs.threads
    assert costs.ours[0] == "Call.run"
    row = await asyncio.to_thread(logged, call.answer_headers["x-request-id"])
    assert row.outcome == "ok"
