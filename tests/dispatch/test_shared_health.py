"""Through Redis, processes share cooldowns, key states and which key a conversation uses. No call waits for Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from capabilities.core.wire import Failure, Fault, Usage
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.fallback.context import RunContext, local_context
from routing_admin.core.fallback.policy import Policy
from routing_admin.dispatch.send import share_health
from routing_admin.platform.redis.link import RedisLink
from routing_admin.platform.redis.news import News
from tests.engines.redis import RedisServer

LIMITED = Failure(Fault.HTTP_429_WAIT, "slow down", 429, "rate_limited", retry_after=20.0)
KEYS = (PoolKey("first", "m1"), PoolKey("second", "m2"))


@dataclass
class Process:
    """The run context of one process, and its channel to the other processes."""

    memory: RunContext
    news: News

    def fail(self, model: str = "model", failure: Failure = LIMITED) -> None:
        self.memory.cooldowns.record_failure("one", model, failure, Policy().verdict(failure))

    def share(self) -> None:
        self.news.send()

    def listen_until(self, holds: Callable[[], object]) -> None:
        until = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < until
            self.news.listen()


@pytest.fixture
def process(redis_server: RedisServer) -> Callable[[], Process]:
    prefix = f"test-health-{time.monotonic_ns()}"

    def make() -> Process:
        link, offset = RedisLink(redis_server.url, prefix), 1000.0 * time.monotonic_ns() % 7919
        link.beat()
        made = Process(local_context(lambda: time.monotonic() + offset, lambda: 0.0), News(link, wake=lambda: None))
        share_health(made.memory, made.news)
        return made

    return make


def test_cooldown_of_a_candidate_is_shared(process):
    """A shared cooldown does not depend on the offset between the processes' clocks."""
    first, second = process(), process()
    first.fail()
    first.share()
    second.listen_until(lambda: second.memory.cooldowns.look("one", "model"))
    cooling = second.memory.cooldowns.enter("one", "model")
    assert cooling is not None
    assert cooling.failure == LIMITED
    assert 0 < cooling.seconds <= 20


def test_usage_of_the_failed_call_is_not_shared(process):
    """The usage of a failed call must be billed only once."""
    first, second = process(), process()
    first.fail(failure=LIMITED.counted(Usage(7, 3)))
    first.share()
    second.listen_until(lambda: second.memory.cooldowns.look("one", "model"))
    cooling = second.memory.cooldowns.enter("one", "model")
    assert cooling is not None
    assert cooling.failure == LIMITED


def test_candidate_success_ends_the_cooldown_in_other_processes(process):
    first, second = process(), process()
    first.fail()
    first.share()
    second.listen_until(lambda: second.memory.cooldowns.look("one", "model"))
    second.memory.cooldowns.record_success("one", "model")
    second.share()
    first.listen_until(lambda: first.memory.cooldowns.look("one", "model") is None)


def test_consecutive_failures_are_counted_across_processes(process):
    failure = Failure(Fault.HTTP_500, "no", 500)
    first, second = process(), process()
    for _ in range(2):
        first.fail(failure=failure)
    first.share()
    assert first.memory.cooldowns.look("one", "model") is None
    second.listen_until(lambda: second.memory.cooldowns.read_state(("one", "model")))
    second.fail(failure=failure)
    assert second.memory.cooldowns.look("one", "model") is not None


def test_later_success_in_the_own_process_overrides_a_shared_failure(process):
    """If a process has called the provider successfully since another process failed, it ignores that failure."""
    first, second = process(), process()
    second.fail()
    second.share()
    first.fail()
    first.memory.cooldowns.record_success("one", "model")
    first.listen_until(lambda: first.news.listen())
    assert first.memory.cooldowns.look("one", "model") is None


def test_key_cooldown_is_shared(process):
    first, second = process(), process()
    key = first.memory.pools.choose("one", KEYS, "", frozenset())
    first.memory.pools.record("one", key, LIMITED)
    first.share()
    second.listen_until(lambda: second.memory.pools.look("one", key))
    other = second.memory.pools.choose("one", KEYS, "", frozenset())
    assert {key, other} == set(KEYS)


def test_key_chosen_for_a_conversation_is_shared(process):
    first, second = process(), process()
    key = first.memory.pools.choose("one", KEYS, "talk", frozenset())
    first.share()
    second.listen_until(lambda: second.memory.pools.find_mark("one", "talk"))
    for _ in range(4):
        assert second.memory.pools.choose("one", KEYS, "talk", frozenset()) == key


def test_new_process_loads_existing_cooldowns(process):
    first = process()
    first.fail()
    first.share()
    second = process()
    second.listen_until(lambda: second.memory.cooldowns.look("one", "model"))
