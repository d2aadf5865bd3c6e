"""Providers with several keys: which key is used, its cooldown, and the result if no key is left."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Plan, PoolKey
from routing_admin.core.fallback.cooldown import LocalCooldowns
from routing_admin.core.fallback.errors import UpstreamRefused
from routing_admin.core.fallback.key_pools import MAX_CONVERSATIONS, KeyPools
from tests.fallback.expected_faults import EXPECTED, KEY_COOLDOWNS, NAMED_WAIT
from tests.fallback.scripted_runs import Clock, FakeUpstream, Stage, candidate_with_keys

KEYS = tuple(PoolKey(name, f"mark of {name}") for name in "abcde")
LIMITED = Failure(Fault.HTTP_429_WAIT, "slow down", 429, retry_after=NAMED_WAIT)


def pools_at(clock: Clock) -> KeyPools:
    return KeyPools(clock, LocalCooldowns(clock, lambda: 0.0))


def make_failure(fault: Fault) -> Failure:
    status = re.match(r"http_(\d{3})", fault.value)
    return Failure(
        *(fault, "as scripted", int(status[1]) if status else None),
        retry_after=NAMED_WAIT if fault is Fault.HTTP_429_WAIT else None,
    )


@pytest.mark.parametrize("code", EXPECTED)
def test_key_cooldown_starts_only_after_faults_of_the_key(code):
    """expected_faults.py has the expected length of each cooldown."""
    clock = Clock()
    pools = pools_at(clock)
    pools.record("p", KEYS[0], make_failure(Fault(code)))
    cooling = pools.look("p", KEYS[0])
    assert (cooling.seconds if cooling else None) == KEY_COOLDOWNS.get(code)
    assert pools.look("p", KEYS[1]) is None


@pytest.mark.parametrize("code", KEY_COOLDOWNS)
@pytest.mark.parametrize("stream", [False, True])
def test_next_key_is_called_within_the_same_attempt(code, stream):
    """Both calls belong to one attempt. There is no wait and no fallback."""
    stage, upstream = Stage(), FakeUpstream({"p/a": [make_failure(Fault(code))], "p/b": ["hello"]})
    result = stage.run(Plan((candidate_with_keys(0, "p", "a", "b"),)), upstream, stream=stream)
    assert upstream.called == ["p/a", "p/b"]
    assert (len(result.attempts), result.attempts[0].outcome, result.attempts[0].retry_attempts) == (1, "ok", 1)
    assert [(entry.key, entry.outcome) for entry in result.attempts[0].tries] == [("a", code), ("b", "ok")]
    assert stage.waits == []


def test_provider_fault_is_retried_with_the_same_key():
    """A 503 does not depend on the key, so the same key is used again."""
    stage, upstream = Stage(), FakeUpstream({"p/a": [503, "hello"], "p/b": ["hello"]})
    result = stage.run(Plan((candidate_with_keys(0, "p", "a", "b"),)), upstream)
    assert (upstream.called, result.attempts[0].outcome) == (["p/a", "p/a"], "ok")


def test_401_for_every_key_is_raised_immediately():
    stage, upstream = Stage(), FakeUpstream({"p/a": [401], "p/b": [401], "p/c": [401], "q": ["hello"]})
    plan = Plan((candidate_with_keys(0, "p", "a", "b", "c"), candidate_with_keys(1, "q")))
    error = stage.run(plan, upstream)
    assert isinstance(error, UpstreamRefused)
    assert (error.status, error.attempts[0].outcome, upstream.called) == (502, "http_401", ["p/a", "p/b", "p/c"])
    again = stage.run(plan, upstream)
    assert (again.attempts[0].outcome, len(upstream.called)) == ("http_401", 4)


def test_invalid_key_among_rate_limited_keys_counts_as_a_rate_limit():
    stage = Stage()
    upstream = FakeUpstream({"p/a": [LIMITED], "p/b": [401], "q": ["hello"]})
    result = stage.run(Plan((candidate_with_keys(0, "p", "a", "b"), candidate_with_keys(1, "q"))), upstream)
    assert upstream.called == ["p/a", "p/b", "q"]
    assert [attempt.outcome for attempt in result.attempts] == ["http_429_wait", "ok"]


def test_retry_waits_for_the_shortest_retry_after_of_all_keys():
    # Both waits are so short that a run retries after them instead of calling the next candidate.
    short, long = (Failure(Fault.HTTP_429, "slow down", 429, retry_after=seconds) for seconds in (2.0, 4.0))
    stage, upstream = Stage(), FakeUpstream({"p/a": [short, "hello"], "p/b": [long]}, seconds=0.0)
    result = stage.run(Plan((candidate_with_keys(0, "p", "a", "b"),)), upstream)
    assert (upstream.called, stage.waits) == (["p/a", "p/b", "p/a"], [2.0])
    assert result.attempts[0].outcome == "ok"


def test_invalid_key_is_probed_every_ten_minutes_without_failing_calls():
    stage = Stage()
    upstream = FakeUpstream({f"p/{key}": ["hello"] for key in "abde"} | {"p/c": [401, 401, "hello"]})
    plan = Plan((candidate_with_keys(0, "p", *"abcde"),))
    for _ in range(3):
        for _ in range(20):
            assert stage.run(plan, upstream).attempts[-1].outcome == "ok"
        stage.clock.now += 600
    assert [call.key.name for call in upstream.calls].count("c") >= 2 + 3
    before = len(upstream.called)
    for _ in range(20):
        stage.run(plan, upstream)
    assert set(Counter(upstream.called[before:]).values()) == {4}, "all five take turns"


def test_key_probe_is_released_if_the_call_ends_without_a_result():
    clock = Clock()
    pools = pools_at(clock)
    pools.record("p", KEYS[0], make_failure(Fault.HTTP_401))
    clock.now += 600
    assert pools.choose("p", KEYS[:1], "", ()) == KEYS[0]
    assert pools.look("p", KEYS[0]).probing
    pools.release("p", KEYS[0])
    assert pools.look("p", KEYS[0]) is None


conversations = st.lists(st.sampled_from([f"conversation {n}" for n in range(6)]) | st.just(""), min_size=1)


@given(conversations, st.sets(st.sampled_from(KEYS), max_size=4))
def test_conversation_keeps_its_key_and_a_new_conversation_gets_the_least_used_key(calls, cooling):
    pools, use_counts, assigned = pools_at(Clock()), Counter(), {}
    for key in cooling:
        pools.record("p", key, LIMITED)
    usable = [key for key in KEYS if key not in cooling]
    for conversation in calls:
        key = pools.choose("p", KEYS, conversation, ())
        assert key in usable
        if conversation in assigned:
            assert key == assigned[conversation]
        else:
            assert use_counts[key] == min(use_counts[usable_key] for usable_key in usable)
        use_counts[key] += 1
        if conversation:
            assigned[conversation] = key


def test_conversation_keeps_its_second_key_after_the_first_was_rate_limited():
    """The conversation keeps the second key, because the provider's prompt cache for that key now contains it."""
    clock = Clock()
    pools = pools_at(clock)
    first = pools.choose("p", KEYS, "talk", ())
    pools.record("p", first, LIMITED)
    second = pools.choose("p", KEYS, "talk", {first.mark})
    assert second != first
    clock.now += NAMED_WAIT + 1
    assert [pools.choose("p", KEYS, "talk", ()) for _ in range(3)] == [second] * 3


def test_idle_conversations_lose_their_key_and_their_number_is_limited():
    """A conversation expires after an hour without calls."""
    clock = Clock()
    pools = pools_at(clock)
    assert [pools.choose("p", KEYS, "talk", ()).name for _ in range(2)] == ["a", "a"]
    clock.now += 3601
    assert pools.choose("p", KEYS, "talk", ()).name == "b"
    for number in range(MAX_CONVERSATIONS):
        pools.choose("p", KEYS, f"conversation {number}", ())
    least = pools.choose("p", KEYS, "", ())
    assert pools.choose("p", KEYS, "talk", ()) != least, "forgotten: it takes the least used key again"
