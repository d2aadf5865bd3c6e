"""Limits across processes, over real sockets: a shared ledger in the database, killed workers, a locked database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engines.databases import drop_database
from tests.gateway.serving import Server, listening, manage, prepare, routing, server_environment, stable_port
from tests.lab import Lab
from tests.processes import NO_CERTIFICATES, wait_until

HELLO = [{"role": "user", "content": "hello"}]
CALLS = 100
LIMITS: dict[str, dict[str, Any]] = {
    "tokens": {"tokensPerDay": 20_000},
    "rate": {"requestsPerMinute": 50},
    "money": {"moneyPerDay": "5.00", "currency": "USD"},
    "embeddings": {"tokensPerMonth": 1000, "models": ["task:chain"]},
    "concurrency": {"inFlight": 1},
    "reported": {"tokensPerMonth": 10**9},
    "locked": {"tokensPerDay": 20_000},
    "killed": {"tokensPerDay": 400_000},
}
"""An agent for each test, with its limits."""
SETUP = """
import json
from capabilities.actors import SYSTEM
from capabilities.core.permissions import DEFAULT_SCOPES
from capabilities.core.services.agents import LabelKind
from capabilities.models import Agent, Provider, Service
from routing_admin.configuration.agents.actions import issue_key, save_agent
from routing_admin.console.services.actions import save_service
from routing_admin.console.usage.actions import save_budget

price = {"currency": "USD", "input": 10, "output": 100}
provider = Provider.objects.get(name="one")
save_service(SYSTEM, Service(service_id="priced", name="p", provider=provider, model="lab", price=price))
save_budget(SYSTEM, LabelKind.TEAM, "search", {"moneyPerDay": "0.30", "currency": "USD"})
keys = {}
for name, limits in json.loads(%r).items():
    agent = Agent(agent_id=name, name=name, limits=limits)
    save_agent(SYSTEM, agent)
    keys[name], _ = issue_key(SYSTEM, agent, scopes=DEFAULT_SCOPES)
print(json.dumps(keys))
"""
"""Code that sets a price for the fault lab's model and a team's spending limit, and prints the key of each agent."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Server]]:
    """Yield one server with two processes as each agent sees it."""
    directory = tmp_path_factory.mktemp("limits")
    with Lab(port=stable_port()) as lab:
        environment = server_environment(directory, lab)
        key = prepare(environment, directory, [routing(lab)])
        keys = json.loads(manage(environment, "shell", "--no-imports", "-c", SETUP % json.dumps(LIMITS)))
        server = listening(environment, key, lab, directory, ("--workers", "2"))
        yield {name: replace(server, key=agent_key) for name, agent_key in keys.items()}
        server.process.terminate()
        server.process.wait(timeout=40)
    drop_database(directory)


async def ask_together(server: Server, count: int, **body: Any) -> list[httpx.Response]:
    request = {"model": "one/lab", "messages": HELLO, **body}
    limits = httpx.Limits(max_connections=count, max_keepalive_connections=0)
    headers = {"authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(limits=limits, headers=headers, timeout=60, verify=NO_CERTIFICATES) as client:
        return await asyncio.gather(
            *(client.post(f"{server.url}/v1/chat/completions", json=request) for _ in range(count))
        )


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


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    with closing(sqlite3.connect(directory / "logs.sqlite3", timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def test_parallel_calls_never_exceed_a_token_budget_in_two_processes(servers: Mapping[str, Server]) -> None:
    """The budget suffices even if all accepted calls use their maximum. Later calls can use the unused reservations."""
    server = servers["tokens"]
    answers = await ask_together(server, CALLS, max_tokens=900)
    statuses = Counter(answer.status_code for answer in answers)
    # On a busy machine, a call gets a 503 if its process's share of the limit takes too long to arrive.
    assert {200, 429} <= statuses.keys() <= {200, 429, 503}
    used_tokens = sum(answer.json()["usage"]["total_tokens"] for answer in answers if answer.status_code == 200)
    assert used_tokens <= 20_000
    again = await ask_until(server, 200, max_tokens=900)
    assert again.json()["usage"]["total_tokens"] > 0


async def test_parallel_calls_never_exceed_a_rate_limit_in_two_processes(servers: Mapping[str, Server]) -> None:
    """The number of calls answered per minute never exceeds the limit.

    The limit is almost reached, because no process keeps a share that another process needs.
    """
    server = servers["rate"]
    answers = await ask_together(server, CALLS)
    # The Date header without seconds and time zone identifies the minute.
    minutes = Counter(answer.headers.get("date", "")[:-7] for answer in answers if answer.status_code == 200)
    assert all(count <= 50 for count in minutes.values()) or len(minutes) > 1
    assert sum(minutes.values()) <= 50 * len(minutes)
    assert sum(minutes.values()) >= 40


async def test_parallel_calls_never_exceed_money_budgets_in_two_processes(servers: Mapping[str, Server]) -> None:
    server = servers["money"]
    answers = await ask_together(server, CALLS, max_tokens=900, metadata={"team": "search"})
    usages = [answer.json()["usage"] for answer in answers if answer.status_code == 200]
    spent = sum(usage["prompt_tokens"] * 10 + usage["completion_tokens"] * 100 for usage in usages) / 10**6
    assert spent <= 0.3
    assert len(usages) < CALLS
    # The agent's own budget may refuse a call first, while the other process still holds shares of that budget.
    async with asyncio.timeout(60):
        refusal = ""
        while not refusal.startswith("The team search has a daily spending limit of 0.30 USD"):
            refused = await ask_until(server, 429, max_tokens=4000, metadata={"team": "search"})
            refusal = refused.json()["error"]["message"]

    # The other process may take a while to write its usage to the ledger and the log.
    def reported() -> set[float]:
        return {round(amounts(server)["moneyPerDay"], 6), logged_cost(server, "search")}

    await asyncio.to_thread(wait_until, lambda: reported() == {round(spent, 6)})
    await ask_until(server, 200, max_tokens=900, metadata={"team": "search"})


async def test_embeddings_count_towards_the_limits(servers: Mapping[str, Server]) -> None:
    server = servers["embeddings"]
    headers = {"authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60, verify=NO_CERTIFICATES) as client:
        request = {"model": "task:chain", "input": "hello"}
        answer = await client.post("/v1/embeddings", json=request)
        refused = await client.post("/v1/embeddings", json={**request, "input": "hello " * 5000})
        forbidden = await client.post("/v1/embeddings", json={**request, "model": "task:patient"})
    assert [response.status_code for response in (answer, refused, forbidden)] == [200, 429, 403]
    used_tokens = answer.json()["usage"]["total_tokens"]
    assert answer.headers["x-ratelimit-limit-tokens"] == "1000"
    await asyncio.to_thread(wait_until, lambda: amounts(server)["tokensPerMonth"] == used_tokens)


async def test_concurrency_slot_passes_between_processes(servers: Mapping[str, Server]) -> None:
    server = servers["concurrency"]
    for _ in range(10):
        await ask_until(server, 200)


async def test_usage_of_one_process_is_reported_to_the_other(servers: Mapping[str, Server]) -> None:
    server = servers["reported"]
    answers = [await ask_until(server, 200) for _ in range(8)]
    used_tokens = sum(answer.json()["usage"]["total_tokens"] for answer in answers)
    await asyncio.to_thread(wait_until, lambda: amounts(server)["tokensPerMonth"] >= used_tokens)


async def test_share_is_extended_once_while_the_database_is_locked(servers: Mapping[str, Server]) -> None:
    """Each process extends its share of the limit once without the ledger.

    After that, a call gets a 503 with Retry-After, never a 429. When the database is unlocked, calls are answered
    again.
    """
    server = servers["locked"]
    async with asyncio.timeout(120):
        statuses = Counter[int]()
        # A process that has just returned its share of the limit has none to extend.
        while not statuses[200]:
            await ask_until(server, 200, max_tokens=2000)
            # The delay keeps all calls running until each call has been accepted or refused.
            server.lab.play({"one": ["delay:seconds=5"] * 30})
            with locked(server.directory):
                answers = await ask_together(server, 30, max_tokens=2000)
            server.lab.play({})
            statuses = Counter(answer.status_code for answer in answers)
            assert statuses.keys() <= {200, 503}
    # Together, all shares are at most the limit. Each process extends its share once, by the size of a regular draw.
    assert statuses[200] <= 2 * 20_000 / 2000
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.json()["error"]["code"] == "unavailable"
    assert int(refused.headers["retry-after"]) >= 1
    await ask_until(server, 200, max_tokens=2000)


async def test_killed_processes_lose_only_their_shares_of_the_limit(servers: Mapping[str, Server]) -> None:
    """The processes that replace the killed ones can immediately use what was not drawn from the limit.

    They can use the rest when the lease has expired.
    """
    server = servers["killed"]
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
