"""Limits across processes, over real sockets: a shared ledger in the database, killed workers, a locked database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from routing_admin.configuration.stamped_cache import FRESH_SECONDS
from tests.gateway.serving import Server, manage, served, server_environment

HELLO = [{"role": "user", "content": "hello"}]
SET = (
    "import json; from routing_admin.configuration.agents.actions import save_agent; "
    "from capabilities.actors import SYSTEM; "
    "from capabilities.models import Agent; row = Agent.objects.get(agent_id='text-agent'); "
    "row.limits = json.loads('''%s'''); save_agent(SYSTEM, row)"
)


BUDGET = (
    "from capabilities.actors import SYSTEM; from capabilities.models import *; "
    "from capabilities.core.services.agents import LabelKind; "
    "from routing_admin.console.usage.actions import save_budget; "
    "from routing_admin.console.services.actions import save_service; "
    "row = Service(service_id='priced', name='p', provider=Provider.objects.get(name='one'), model='lab'); "
    "row.price = {'currency': 'USD', 'input': 10, 'output': 100}; save_service(SYSTEM, row); "
    "save_budget(SYSTEM, LabelKind.TEAM, 'search', {'moneyPerDay': '0.30', 'currency': 'USD'})"
)
"""Code that sets a price for the fault lab's model and a team's spending limit."""


def limit(server: Server, **limits: Any) -> None:
    """Set the text agent's limits from another process, and wait until no call uses the previous limits."""
    manage(server_environment(server.directory, server.lab), "shell", "-c", SET % json.dumps(limits))
    # Calls use a snapshot that is at most `FRESH_SECONDS` old. The agents' API reads the database rows instead.
    refreshed_at = time.monotonic() + FRESH_SECONDS
    reported: list[dict[str, Any]] = []
    while time.monotonic() <= refreshed_at:
        reported = server.get("/api/v1/agents/me")["limits"]["amounts"]
    expected = {meter: float(value) for meter, value in limits.items() if meter not in ("models", "currency")}
    assert {amount["meter"]: amount["limit"] for amount in reported} == expected


async def ask_together(server: Server, count: int, **body: Any) -> list[httpx.Response]:
    request = {"model": "one/lab", "messages": HELLO, **body}
    limits = httpx.Limits(max_connections=count, max_keepalive_connections=0)
    headers = {"authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(limits=limits, headers=headers, timeout=60) as client:
        return await asyncio.gather(
            *(client.post(f"{server.url}/v1/chat/completions", json=request) for _ in range(count))
        )


CALLS = 30


async def ask_until(server: Server, status: int, **body: Any) -> httpx.Response:
    async with asyncio.timeout(60):
        while True:
            with suppress(httpx.TransportError):
                answer = (await ask_together(server, 1, **body))[0]
                if answer.status_code == status:
                    return answer


def amounts(server: Server) -> dict[str, int]:
    return {amount["meter"]: amount["used"] for amount in server.get("/api/v1/agents/me")["limits"]["amounts"]}


def logged_cost(server: Server, team: str) -> float:
    groups = server.get(f"/api/v1/usage?groupBy=team&team={team}")["groups"]
    return sum(float(cost["amount"]) for group in groups for cost in group["costs"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("limits"), options=("--workers", "2")) as server:
        yield server


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    with closing(sqlite3.connect(directory / "logs.sqlite3", timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def test_200_parallel_calls_never_exceed_a_token_budget_in_two_processes(server: Server) -> None:
    """The budget suffices even if all accepted calls use their maximum. Later calls can use the unused reservations."""
    limit(server, tokensPerDay=50_000)
    answers = await ask_together(server, 200, max_tokens=900)
    statuses = Counter(answer.status_code for answer in answers)
    # On a busy machine, a call gets a 503 if its process's share of the limit takes too long to arrive.
    assert {200, 429} <= statuses.keys() <= {200, 429, 503}
    used_tokens = sum(answer.json()["usage"]["total_tokens"] for answer in answers if answer.status_code == 200)
    assert used_tokens <= 50_000
    again = await ask_until(server, 200, max_tokens=900)
    assert again.json()["usage"]["total_tokens"] > 0


async def test_200_parallel_calls_never_exceed_a_rate_limit_in_two_processes(server: Server) -> None:
    """The number of calls answered per minute never exceeds the limit.

    The limit is almost reached, because no process keeps a share that another process needs.
    """
    limit(server, requestsPerMinute=50)
    answers = await ask_together(server, 200)
    # The Date header without seconds and time zone identifies the minute.
    minutes = Counter(answer.headers.get("date", "")[:-7] for answer in answers if answer.status_code == 200)
    assert all(count <= 50 for count in minutes.values()) or len(minutes) > 1
    assert sum(minutes.values()) <= 50 * len(minutes)
    assert sum(minutes.values()) >= 40


async def test_200_parallel_calls_never_exceed_money_budgets_in_two_processes(server: Server) -> None:
    manage(server_environment(server.directory, server.lab), "shell", "-c", BUDGET)
    limit(server, moneyPerDay="5.00", currency="USD")
    answers = await ask_together(server, 200, max_tokens=900, metadata={"team": "search"})
    usages = [answer.json()["usage"] for answer in answers if answer.status_code == 200]
    spent = sum(usage["prompt_tokens"] * 10 + usage["completion_tokens"] * 100 for usage in usages) / 10**6
    assert spent <= 0.3
    assert len(usages) < 200
    # The agent's own budget may refuse a call first, while the other process still holds shares of that budget.
    async with asyncio.timeout(60):
        refusal = ""
        while not refusal.startswith("The team search has a daily spending limit of 0.30 USD"):
            refused = await ask_until(server, 429, max_tokens=4000, metadata={"team": "search"})
            refusal = refused.json()["error"]["message"]
    # The other process may take a while to write its usage to the ledger and the log.
    async with asyncio.timeout(60):
        while {round((await asyncio.to_thread(amounts, server))["moneyPerDay"], 6), logged_cost(server, "search")} != {
            round(spent, 6)
        }:
            await asyncio.sleep(0)
    await ask_until(server, 200, max_tokens=900, metadata={"team": "search"})


async def test_embeddings_count_towards_the_limits(server: Server) -> None:
    limit(server, tokensPerMonth=1000, models=["task:chain"])
    headers = {"authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        request = {"model": "task:chain", "input": "hello"}
        answer = await client.post("/v1/embeddings", json=request)
        refused = await client.post("/v1/embeddings", json={**request, "input": "hello " * 5000})
        forbidden = await client.post("/v1/embeddings", json={**request, "model": "task:patient"})
    assert [response.status_code for response in (answer, refused, forbidden)] == [200, 429, 403]
    used_tokens = answer.json()["usage"]["total_tokens"]
    assert answer.headers["x-ratelimit-limit-tokens"] == "1000"
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(amounts, server))["tokensPerMonth"] != used_tokens:
            pass


async def test_concurrency_slot_passes_between_processes(server: Server) -> None:
    limit(server, inFlight=1)
    for _ in range(20):
        await ask_until(server, 200)


async def test_usage_of_one_process_is_reported_to_the_other(server: Server) -> None:
    limit(server, tokensPerMonth=10**9)
    answers = [await ask_until(server, 200) for _ in range(8)]
    used_tokens = sum(answer.json()["usage"]["total_tokens"] for answer in answers)
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(amounts, server))["tokensPerMonth"] < used_tokens:
            pass


async def test_share_is_extended_once_while_the_database_is_locked(server: Server) -> None:
    """Each process extends its share of the limit once without the ledger.

    After that, a call gets a 503 with Retry-After, never a 429. When the database is unlocked, calls are answered
    again.
    """
    limit(server, tokensPerDay=20_000)
    async with asyncio.timeout(120):
        statuses = Counter[int]()
        # A process that has just returned its share of the limit has none to extend.
        while not statuses[200]:
            await ask_until(server, 200, max_tokens=2000)
            # The delay keeps all calls running until each call has been accepted or refused.
            server.lab.play({"one": ["delay:seconds=8"] * CALLS})
            with locked(server.directory):
                answers = await ask_together(server, CALLS, max_tokens=2000)
            server.lab.play({})
            statuses = Counter(answer.status_code for answer in answers)
            assert statuses.keys() <= {200, 503}
    # Together, all shares are at most the limit. Each process extends its share once, by the size of a regular draw.
    assert statuses[200] <= 2 * 20_000 / 2000
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.json()["error"]["code"] == "unavailable"
    assert int(refused.headers["retry-after"]) >= 1
    await ask_until(server, 200, max_tokens=2000)


async def test_killed_processes_lose_only_their_shares_of_the_limit(server: Server) -> None:
    """The processes that replace the killed ones can immediately use what was not drawn from the limit.

    They can use the rest when the lease has expired.
    """
    limit(server, tokensPerDay=400_000)
    await ask_together(server, 8, max_tokens=2000)
    for worker in workers(server):
        os.kill(worker, signal.SIGKILL)
    async with asyncio.timeout(60):
        while int((await ask_until(server, 200, max_tokens=2000)).headers["x-ratelimit-remaining-tokens"]) <= 300_000:
            pass


def workers(server: Server) -> list[int]:
    parent = server.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
