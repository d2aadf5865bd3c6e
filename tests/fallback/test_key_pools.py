"""Several keys of one provider: who is asked, who rests, what counts when none is left (decision 20)."""

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
from tests.fallback.expected_faults import EXPECTED, KEY_RESTS, NAMED_WAIT
from tests.fallback.scripted_runs import Clock, FakeUpstream, Stage, pooled

KEYS = tuple(PoolKey(name, f"mark of {name}") for name in "abcde")
LIMITED = Failure(Fault.HTTP_429_WAIT, "slow down", 429, retry_after=NAMED_WAIT)


def pools_at(clock: Clock) -> KeyPools:
    return KeyPools(clock, LocalCooldowns(clock, lambda: 0.0))


def failure_of(fault: Fault) -> Failure:
    status = re.match(r"http_(\d{3})", fault.value)
    return Failure(
        *(fault, "as scripted", int(status[1]) if status else None),
        retry_after=NAMED_WAIT if fault is Fault.HTTP_429_WAIT else None,
    )


@pytest.mark.parametrize("code", EXPECTED)
def test_a_key_rests_after_what_is_its_own_and_after_nothing_else(code):
    """The table of what a key rests for is written out by hand; the provider's own faults leave the key alone."""
    clock = Clock()
    pools = pools_at(clock)
    pools.record("p", KEYS[0], failure_of(Fault(code)))
    cooling = pools.look("p", KEYS[0])
    assert (cooling.seconds if cooling else None) == KEY_RESTS.get(code)
    assert pools.look("p", KEYS[1]) is None


@pytest.mark.parametrize("code", KEY_RESTS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_next_key_answers_within_the_same_attempt(code, stream):
    """One attempt, its tries with the keys' names; nobody waits and the chain does not go on."""
    stage, upstream = Stage(), FakeUpstream({"p/a": [failure_of(Fault(code))], "p/b": ["hello"]})
    done = stage.run(Plan((pooled(0, "p", "a", "b"),)), upstream, stream=stream)
    assert upstream.asked == ["p/a", "p/b"]
    assert (len(done.attempts), done.attempts[0].outcome, done.attempts[0].retry_attempts) == (1, "ok", 1)
    assert [(one.key, one.outcome) for one in done.attempts[0].tries] == [("a", code), ("b", "ok")]
    assert stage.waits == []


def test_the_providers_own_faults_ask_the_same_key_again():
    """A 503 says nothing of a key."""
    stage, upstream = Stage(), FakeUpstream({"p/a": [503, "hello"], "p/b": ["hello"]})
    done = stage.run(Plan((pooled(0, "p", "a", "b"),)), upstream)
    assert (upstream.asked, done.attempts[0].outcome) == (["p/a", "p/a"], "ok")


def test_a_401_of_all_keys_is_what_a_401_is():
    """Raised at once, after each key was asked once; the next request asks one of them, and is refused as well."""
    stage, upstream = Stage(), FakeUpstream({"p/a": [401], "p/b": [401], "p/c": [401], "q": ["hello"]})
    plan = Plan((pooled(0, "p", "a", "b", "c"), pooled(1, "q")))
    error = stage.run(plan, upstream)
    assert isinstance(error, UpstreamRefused)
    assert (error.status, error.attempts[0].outcome, upstream.asked) == (502, "http_401", ["p/a", "p/b", "p/c"])
    again = stage.run(plan, upstream)
    assert (again.attempts[0].outcome, len(upstream.asked)) == ("http_401", 4)


def test_a_dead_key_among_limited_ones_loses_no_call():
    """A key that rests counts as what it rests for: the chain goes on as after the limit that ends first."""
    stage = Stage()
    upstream = FakeUpstream({"p/a": [LIMITED], "p/b": [401], "q": ["hello"]})
    done = stage.run(Plan((pooled(0, "p", "a", "b"), pooled(1, "q"))), upstream)
    assert upstream.asked == ["p/a", "p/b", "q"]
    assert [attempt.outcome for attempt in done.attempts] == ["http_429_wait", "ok"]


def test_a_short_wait_of_all_keys_is_sat_out_with_the_one_that_is_ready_first():
    """Each said how long; the shortest is waited for, and that key asked again."""
    second, long = (Failure(Fault.HTTP_429, "slow down", 429, retry_after=seconds) for seconds in (2.0, 4.0))
    stage, upstream = Stage(), FakeUpstream({"p/a": [second, "hello"], "p/b": [long]}, seconds=0.0)
    done = stage.run(Plan((pooled(0, "p", "a", "b"),)), upstream)
    assert (upstream.asked, stage.waits) == (["p/a", "p/b", "p/a"], [2.0])
    assert done.attempts[0].outcome == "ok"


def test_of_five_keys_one_dead_no_call_is_lost_and_the_key_is_found_alive_again():
    """It is asked once in ten minutes, by one call, which the next key answers; then it takes its turn again."""
    stage = Stage()
    upstream = FakeUpstream({f"p/{key}": ["hello"] for key in "abde"} | {"p/c": [401, 401, "hello"]})
    plan = Plan((pooled(0, "p", *"abcde"),))
    for _ in range(3):
        for _ in range(20):
            assert stage.run(plan, upstream).attempts[-1].outcome == "ok"
        stage.clock.now += 600
    assert [call.key.name for call in upstream.calls].count("c") >= 2 + 3
    before = len(upstream.asked)
    for _ in range(20):
        stage.run(plan, upstream)
    assert set(Counter(upstream.asked[before:]).values()) == {4}, "all five take turns, and nobody is flooded"


def test_a_claimed_try_is_given_back_when_its_caller_leaves():
    """The one call that tries a key again may end without telling anything."""
    clock = Clock()
    pools = pools_at(clock)
    pools.record("p", KEYS[0], failure_of(Fault.HTTP_401))
    clock.now += 600
    assert pools.choose("p", KEYS[:1], "", ()) == KEYS[0]
    assert pools.look("p", KEYS[0]).probing
    pools.release("p", KEYS[0])
    assert pools.look("p", KEYS[0]) is None


conversations = st.lists(st.sampled_from([f"conversation {n}" for n in range(6)]) | st.just(""), min_size=1)


@given(conversations, st.sets(st.sampled_from(KEYS), max_size=4))
def test_a_conversation_keeps_its_key_and_a_new_one_gets_the_least_used(asked, resting):
    """While its key is well a conversation has no other; who has none, or is new, gets a key that is used least."""
    pools, used, own = pools_at(Clock()), Counter(), {}
    for key in resting:
        pools.record("p", key, LIMITED)
    well = [key for key in KEYS if key not in resting]
    for conversation in asked:
        key = pools.choose("p", KEYS, conversation, ())
        assert key in well
        if conversation in own:
            assert key == own[conversation]
        else:
            assert used[key] == min(used[each] for each in well)
        used[key] += 1
        if conversation:
            own[conversation] = key


def test_a_conversation_whose_key_was_refused_goes_on_with_another_and_stays_there():
    """What its new key's vendor has read of it by then is worth more than the old key."""
    clock = Clock()
    pools = pools_at(clock)
    first = pools.choose("p", KEYS, "talk", ())
    pools.record("p", first, LIMITED)
    second = pools.choose("p", KEYS, "talk", {first.mark})
    assert second != first
    clock.now += NAMED_WAIT + 1
    assert [pools.choose("p", KEYS, "talk", ()) for _ in range(3)] == [second] * 3


def test_a_silent_conversation_is_forgotten_after_an_hour_and_no_more_are_known_than_that():
    """It begins anew with the least used key; memory stays bounded whatever callers name."""
    clock = Clock()
    pools = pools_at(clock)
    assert [pools.choose("p", KEYS, "talk", ()).name for _ in range(2)] == ["a", "a"]
    clock.now += 3601
    assert pools.choose("p", KEYS, "talk", ()).name == "b"
    for number in range(MAX_CONVERSATIONS):
        pools.choose("p", KEYS, f"conversation {number}", ())
    least = pools.choose("p", KEYS, "", ())
    assert pools.choose("p", KEYS, "talk", ()) != least, "forgotten: it takes the least used one again"
