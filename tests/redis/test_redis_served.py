"""Two server processes that share a Redis receive each other's changes, and continue to work while Redis is down."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.chaos.callers import Reply, chat
from tests.engines.redis import RedisServer, redis_running
from tests.gateway.serving import Server, listening, manage, routing, server_environment, serving
from tests.lab import Lab
from tests.processes import wait_until

LIMIT = (
    "import json; from routing_admin.configuration.agents.actions import save_agent; "
    "from capabilities.actors import SYSTEM; "
    "from capabilities.models import Agent; row = Agent.objects.get(agent_id='text-agent'); "
    "row.limits = {'tokensPerDay': %d}; save_agent(SYSTEM, row)"
)
REVOKE = (
    "from routing_admin.configuration.agents.actions import revoke_key; from capabilities.actors import SYSTEM; "
    "from capabilities.models import AgentKey; revoke_key(SYSTEM, AgentKey.objects.get(public_id='%s'))"
)
MANY = 10_000_000
PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Pair:
    """Two server processes with the same data directory, and their Redis server."""

    one: Server
    two: Server
    redis: RedisServer

    def manage(self, *arguments: str) -> str:
        return manage(server_environment(self.one.directory, self.one.lab), *arguments)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with redis_running(folder) as redis, pytest.MonkeyPatch.context() as patch, Lab({}) as lab:
        patch.setenv("REDIS_URL", redis.url)
        with serving(folder, lab, [routing(lab)]) as first:
            second = listening(server_environment(folder, lab), first.key, lab, folder)
            try:
                yield Pair(first, second, redis)
            finally:
                second.process.terminate()
                second.process.wait(timeout=40)


def redis_state(server: Server) -> str:
    """Return the state of Redis according to the readiness check."""
    answer = server.get("/readyz")
    return str(answer["checks"]["redis"])


def used_tokens(server: Server) -> int:
    amounts = server.get("/api/v1/agents/me")["limits"]["amounts"]
    return sum(amount["used"] for amount in amounts if amount["meter"] == "tokensPerDay")


def test_revoked_key_is_rejected_by_both_processes(pair: Pair) -> None:
    key = pair.manage("issue_agent_key", "text-agent")
    assert [chat(replace(server, key=key), "").status for server in (pair.one, pair.two)] == [200, 200]
    pair.manage("shell", "-c", REVOKE % key.split("_")[1])
    for server in (pair.one, pair.two):
        wait_until(lambda server=server: chat(replace(server, key=key), "").status == 401)


def test_candidate_that_cools_down_in_one_process_is_skipped_by_the_other(pair: Pair) -> None:
    pair.one.lab.play({"one": ["http_402"] * 50})
    try:
        assert chat(pair.one, "", "task:chain").status == 200

        def is_skipped() -> bool:
            before = len(pair.one.lab.played_for("one"))
            assert chat(pair.two, "", "task:chain").status == 200
            return len(pair.one.lab.played_for("one")) == before

        wait_until(is_skipped)
    finally:
        pair.one.lab.play({})
        pair.redis.client().flushall()


class Load:
    """Calls both servers from several threads until the `with` block ends."""

    def __init__(self, pair: Pair, model: str) -> None:
        self.replies: list[Reply] = []
        self._over, self._model = threading.Event(), model
        servers = (pair.one, pair.two) * 3
        self._threads = [threading.Thread(target=self._run, args=(server,)) for server in servers]

    def _run(self, server: Server) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            self.replies.append(chat(server, "", self._model, max_tokens=50))

    def wait_for(self, further: int) -> None:
        expected = len(self.replies) + further
        wait_until(lambda: len(self.replies) >= expected)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def set_token_limit(pair: Pair, tokens: int) -> None:
    """Set the agent's token limit, and wait until both servers apply it."""
    pair.manage("shell", "-c", LIMIT % tokens)
    for server in (pair.one, pair.two):
        wait_until(lambda server=server: read_token_limit(server) == tokens)


def read_token_limit(server: Server) -> int:
    return sum(amount["limit"] for amount in server.get("/api/v1/agents/me")["limits"]["amounts"])


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_calls_succeed_and_usage_is_exact_while_redis_fails_and_recovers(pair: Pair, fault: str) -> None:
    set_token_limit(pair, MANY)
    before = used_tokens(pair.one)
    with Load(pair, "two/lab") as load:
        load.wait_for(30)
        (pair.redis.kill if fault == "killed" else pair.redis.freeze)()
        wait_until(lambda: [redis_state(server) for server in (pair.one, pair.two)] == ["away", "away"])
        load.wait_for(30)
        (pair.redis.start if fault == "killed" else pair.redis.thaw)()
        wait_until(lambda: [redis_state(server) for server in (pair.one, pair.two)] == ["ok", "ok"])
        load.wait_for(30)
    assert Counter(reply.status for reply in load.replies) == {200: len(load.replies)}
    tokens = sum(reply.json["usage"]["total_tokens"] for reply in load.replies)
    wait_until(lambda: used_tokens(pair.one) == used_tokens(pair.two) == before + tokens)


def test_budget_is_never_exceeded_while_redis_fails_and_recovers(pair: Pair) -> None:
    """A call gets a 429 if the budget is used up, and may get a 503 if the database is locked."""
    budget = used_tokens(pair.one) + 3000
    set_token_limit(pair, budget)
    with Load(pair, "three/lab") as load:
        while not any(reply.status == 429 for reply in load.replies):
            load.wait_for(10)
            pair.redis.kill()
            load.wait_for(10)
            pair.redis.start()
    codes = {(reply.status, reply.json["error"]["code"]) for reply in load.replies if reply.status != 200}
    assert {(429, "budget_exceeded")} <= codes <= {(429, "budget_exceeded"), (503, "unavailable")}
    tokens = sum(reply.json["usage"]["total_tokens"] for reply in load.replies if reply.status == 200)
    wait_until(lambda: used_tokens(pair.one) == used_tokens(pair.two))
    assert used_tokens(pair.one) <= budget
    assert tokens <= 3000


def test_doctor_reports_an_outage_of_redis(pair: Pair) -> None:
    wait_until(lambda: "redis: responds" in pair.manage("doctor"))
    pair.redis.kill()
    with pytest.raises(AssertionError, match=rf"redis: Redis at 127.0.0.1:{pair.redis.port} cannot be reached"):
        pair.manage("doctor")
    pair.redis.start()
    assert "Traceback" not in read_log(pair.one.directory)


def read_log(directory: Path) -> str:
    return (directory / "server.log").read_text()
