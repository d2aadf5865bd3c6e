"""Limits across processes, over real sockets: two draw from one ledger, one is killed, the database is locked."""

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
from tests.gateway.serving import Server, environment_of, manage, served

HELLO = [{"role": "user", "content": "hello"}]
SET = (
    "import json; from routing_admin.configuration.agents.actions import save_agent; "
    "from capabilities.acts import SYSTEM; "
    "from capabilities.models import Agent; row = Agent.objects.get(agent_id='text-agent'); "
    "row.limits = json.loads('''%s'''); save_agent(SYSTEM, row)"
)


BUDGET = (
    "from capabilities.acts import SYSTEM; from capabilities.models import *; "
    "from capabilities.core.services.agents import LabelKind; "
    "from routing_admin.console.usage.actions import save_budget; "
    "from routing_admin.console.services.actions import save_service; "
    "row = Service(service_id='priced', name='p', provider=Provider.objects.get(name='one'), model='lab'); "
    "row.price = {'currency': 'USD', 'input': 10, 'output': 100}; save_service(SYSTEM, row); "
    "save_budget(SYSTEM, LabelKind.TEAM, 'search', {'moneyPerDay': '0.30', 'currency': 'USD'})"
)
"""A price of the lab's model, and what a team may spend of it."""


def limit(server: Server, **most: Any) -> None:
    """Sets the limits of the text agent, as another process does, and waits until no call uses those of before."""
    manage(environment_of(server.directory, server.lab), "shell", "-c", SET % json.dumps(most))
    looked_again = time.monotonic() + FRESH_SECONDS  # what calls use is never older; this API reads the rows
    told: list[dict[str, Any]] = []
    while time.monotonic() <= looked_again:
        told = server.get("/api/v1/agents/me")["limits"]["amounts"]
    wanted = {meter: float(most) for meter, most in most.items() if meter not in ("models", "currency")}
    assert {each["meter"]: each["limit"] for each in told} == wanted


async def ask_together(server: Server, count: int, **body: Any) -> list[httpx.Response]:
    """So many calls at a time, each over a connection of its own."""
    asked = {"model": "one/lab", "messages": HELLO, **body}
    limits = httpx.Limits(max_connections=count, max_keepalive_connections=0)
    headers = {"authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(limits=limits, headers=headers, timeout=60) as client:
        return await asyncio.gather(
            *(client.post(f"{server.url}/v1/chat/completions", json=asked) for _ in range(count))
        )


CALLS = 30


async def ask_until(server: Server, status: int, **body: Any) -> httpx.Response:
    """The first answer with that status, within a minute."""
    async with asyncio.timeout(60):
        while True:
            with suppress(httpx.TransportError):
                answer = (await ask_together(server, 1, **body))[0]
                if answer.status_code == status:
                    return answer


def amounts(server: Server) -> dict[str, int]:
    """What the agent itself is told that it used."""
    return {each["meter"]: each["used"] for each in server.get("/api/v1/agents/me")["limits"]["amounts"]}


def bill_of(server: Server, team: str) -> float:
    """What the log says that the agent's calls for a team cost."""
    groups = server.get(f"/api/v1/usage?groupBy=team&team={team}")["groups"]
    return sum(float(cost["amount"]) for each in groups for cost in each["costs"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("limits"), options=("--workers", "2")) as server:
        yield server


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """The database of the ledger, while somebody else writes."""
    with closing(sqlite3.connect(directory / "logs.sqlite3", timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_200_parallel_calls_never_pass_a_budget_in_two_processes(server: Server) -> None:
    """No more are let in than could take it all, and what was not taken is there for the next ones."""
    limit(server, tokensPerDay=50_000)
    answers = await ask_together(server, 200, max_tokens=900)
    found = Counter(each.status_code for each in answers)
    assert {200, 429} <= found.keys() <= {200, 429, 503}  # 503 where a busy machine takes long to lend a share
    taken = sum(each.json()["usage"]["total_tokens"] for each in answers if each.status_code == 200)
    assert taken <= 50_000
    again = await ask_until(server, 200, max_tokens=900)
    assert again.json()["usage"]["total_tokens"] > 0


async def test_200_parallel_calls_never_pass_a_rate_in_two_processes(server: Server) -> None:
    """Of one minute as many are answered as may be, and nearly all of those: no process sits on what others lack."""
    limit(server, requestsPerMinute=50)
    answers = await ask_together(server, 200)
    minutes = Counter(each.headers.get("date", "")[:-7] for each in answers if each.status_code == 200)
    assert all(count <= 50 for count in minutes.values()) or len(minutes) > 1
    assert sum(minutes.values()) <= 50 * len(minutes)
    assert sum(minutes.values()) >= 40


async def test_200_parallel_calls_never_pass_the_money_of_agent_and_team_in_two_processes(server: Server) -> None:
    """Reserved of both or of none, settled in both: what was spent is the same by either, and by the log."""
    manage(environment_of(server.directory, server.lab), "shell", "-c", BUDGET)
    limit(server, moneyPerDay="5.00", currency="USD")
    answers = await ask_together(server, 200, max_tokens=900, metadata={"team": "search"})
    done = [each.json()["usage"] for each in answers if each.status_code == 200]
    spent = sum(each["prompt_tokens"] * 10 + each["completion_tokens"] * 100 for each in done) / 10**6
    assert spent <= 0.3
    assert len(done) < 200
    async with asyncio.timeout(60):  # the agent's own is short, too, while the other process still has shares of it
        refusal = ""
        while not refusal.startswith("The team search has a daily spending limit of 0.30 USD"):
            refused = await ask_until(server, 429, max_tokens=4000, metadata={"team": "search"})
            refusal = refused.json()["error"]["message"]
    async with asyncio.timeout(60):  # the other process tells the ledger and the log its part when it comes to it
        while {round((await asyncio.to_thread(amounts, server))["moneyPerDay"], 6), bill_of(server, "search")} != {
            round(spent, 6)
        }:
            await asyncio.sleep(0)
    await ask_until(server, 200, max_tokens=900, metadata={"team": "search"})


async def test_calls_beside_chat_count_as_well(server: Server) -> None:
    """What embeddings take of a budget is reserved and settled like anything else, and other routes are refused."""
    limit(server, tokensPerMonth=1000, models=["task:chain"])
    headers = {"authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        asked = {"model": "task:chain", "input": "hello"}
        answer = await client.post("/v1/embeddings", json=asked)
        refused = await client.post("/v1/embeddings", json={**asked, "input": "hello " * 5000})
        other = await client.post("/v1/embeddings", json={**asked, "model": "task:patient"})
    assert [each.status_code for each in (answer, refused, other)] == [200, 429, 403]
    taken = answer.json()["usage"]["total_tokens"]
    assert answer.headers["x-ratelimit-limit-tokens"] == "1000"
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(amounts, server))["tokensPerMonth"] != taken:
            pass


async def test_a_place_is_handed_from_process_to_process(server: Server) -> None:
    """With one place in all, calls one after the other are answered, whichever process they meet."""
    limit(server, inFlight=1)
    for _ in range(20):
        await ask_until(server, 200)


async def test_what_one_process_used_the_other_knows(server: Server) -> None:
    """The agent is told the same by both, once both have told the ledger."""
    limit(server, tokensPerMonth=10**9)
    answers = [await ask_until(server, 200) for _ in range(8)]
    taken = sum(each.json()["usage"]["total_tokens"] for each in answers)
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(amounts, server))["tokensPerMonth"] < taken:
            pass


async def test_while_the_database_is_locked_a_share_is_extended_once(server: Server) -> None:
    """In each process; then 503 with Retry-After, and never 429; once it answers again calls go on."""
    limit(server, tokensPerDay=20_000)
    async with asyncio.timeout(120):
        found = Counter[int]()
        while not found[200]:  # whoever has given its share back just before has none to extend
            await ask_until(server, 200, max_tokens=2000)
            server.lab.play({"one": ["delay:seconds=8"] * CALLS})  # none settles before all are let in or refused
            with locked(server.directory):
                answers = await ask_together(server, CALLS, max_tokens=2000)
            server.lab.play({})
            found = Counter(each.status_code for each in answers)
            assert found.keys() <= {200, 503}
    assert found[200] <= 2 * 20_000 / 2000  # all shares are at most the limit, and each is extended by a draw
    refused = next(each for each in answers if each.status_code == 503)
    assert refused.json()["error"]["code"] == "unavailable"
    assert int(refused.headers["retry-after"]) >= 1
    await ask_until(server, 200, max_tokens=2000)


async def test_processes_that_are_killed_take_no_more_than_their_shares_with_them(server: Server) -> None:
    """Those that come after them have at once what was not drawn, and the rest when the lease is over."""
    limit(server, tokensPerDay=400_000)
    await ask_together(server, 8, max_tokens=2000)
    for worker in workers(server):
        os.kill(worker, signal.SIGKILL)
    async with asyncio.timeout(60):
        while int((await ask_until(server, 200, max_tokens=2000)).headers["x-ratelimit-remaining-tokens"]) <= 300_000:
            pass


def workers(server: Server) -> list[int]:
    """The processes that serve."""
    parent = server.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(each) for each in children if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
