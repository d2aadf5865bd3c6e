"""Processes share cooldowns, key states and conversation keys through Redis; no call waits for it."""

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
    """One process's run context and its channel to the others."""

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
    """Return a factory of processes whose clocks have different offsets."""
    prefix = f"test-health-{time.monotonic_ns()}"

    def make() -> Process:
        link, ahead = RedisLink(redis_server.url, prefix), 1000.0 * time.monotonic_ns() % 7919
        link.beat()
        made = Process(local_context(lambda: time.monotonic() + ahead, lambda: 0.0), News(link, wake=lambda: None))
        share_health(made.memory, made.news)
        return made

    return make


def test_a_candidate_that_rests_for_one_rests_for_all(process):
    """For the same remaining time and with the same failure, whatever the offset of their clocks."""
    one, two = process(), process()
    one.fail()
    one.share()
    two.listen_until(lambda: two.memory.cooldowns.look("one", "model"))
    cooling = two.memory.cooldowns.enter("one", "model")
    assert cooling is not None
    assert cooling.failure == LIMITED
    assert 0 < cooling.seconds <= 20


def test_what_the_failed_call_was_billed_stays_with_it(process):
    """Another process learns why a candidate cools down but not the usage of the failed call, which is billed once."""
    one, two = process(), process()
    one.fail(failure=LIMITED.counted(Usage(7, 3)))
    one.share()
    two.listen_until(lambda: two.memory.cooldowns.look("one", "model"))
    cooling = two.memory.cooldowns.enter("one", "model")
    assert cooling is not None
    assert cooling.failure == LIMITED


def test_one_that_is_well_again_for_one_is_well_for_all(process):
    """Also for the process that found the failure itself."""
    one, two = process(), process()
    one.fail()
    one.share()
    two.listen_until(lambda: two.memory.cooldowns.look("one", "model"))
    two.memory.cooldowns.record_success("one", "model")
    two.share()
    one.listen_until(lambda: one.memory.cooldowns.look("one", "model") is None)


def test_failures_in_a_row_count_together(process):
    """Two failures in one process and one in another make three in a row."""
    failure = Failure(Fault.HTTP_500, "no", 500)
    one, two = process(), process()
    for _ in range(2):
        one.fail(failure=failure)
    one.share()
    assert one.memory.cooldowns.look("one", "model") is None
    two.listen_until(lambda: two.memory.cooldowns.state_of(("one", "model")))
    two.fail(failure=failure)
    assert two.memory.cooldowns.look("one", "model") is not None


def test_what_this_process_found_since_is_not_overridden(process):
    """A process's own later success wins over an older failure from another process."""
    one, two = process(), process()
    two.fail()
    two.share()
    one.fail()
    one.memory.cooldowns.record_success("one", "model")
    one.listen_until(lambda: one.news.listen())
    assert one.memory.cooldowns.look("one", "model") is None


def test_a_key_that_rests_for_one_rests_for_all(process):
    """The other process chooses the other key."""
    one, two = process(), process()
    key = one.memory.pools.choose("one", KEYS, "", frozenset())
    one.memory.pools.record("one", key, LIMITED)
    one.share()
    two.listen_until(lambda: two.memory.pools.look("one", key))
    other = two.memory.pools.choose("one", KEYS, "", frozenset())
    assert {key, other} == set(KEYS)


def test_a_conversation_has_its_key_in_every_process(process):
    """The second process uses the shared assignment instead of choosing a key itself."""
    one, two = process(), process()
    key = one.memory.pools.choose("one", KEYS, "talk", frozenset())
    one.share()
    two.listen_until(lambda: two.memory.pools.mark_of("one", "talk"))
    for _ in range(4):
        assert two.memory.pools.choose("one", KEYS, "talk", frozenset()) == key


def test_one_that_begins_later_knows_what_was_found(process):
    """A worker that replaces another starts with its findings."""
    one = process()
    one.fail()
    one.share()
    late = process()
    late.listen_until(lambda: late.memory.cooldowns.look("one", "model"))
