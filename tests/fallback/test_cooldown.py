"""Cooldowns of models and providers: start, length and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.cooldown import LocalCooldowns
from routing_admin.core.fallback.policy import Policy
from tests.fallback.scripted_runs import Clock


def failing(cooldowns: LocalCooldowns, fault: Fault, model: str = "m", retry_after: float | None = None) -> None:
    failure = Failure(fault, retry_after=retry_after)
    cooldowns.record_failure("a", model, failure, Policy().verdict(failure))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cooldowns(clock: Clock) -> LocalCooldowns:
    return LocalCooldowns(clock, lambda: 0.0)


def test_the_third_failure_in_a_row_begins_a_cooldown(cooldowns):
    """Two failures start no cooldown; an answer resets the count."""
    for _ in range(2):
        failing(cooldowns, Fault.HTTP_500)
    assert cooldowns.enter("a", "m") is None
    cooldowns.record_success("a", "m")
    for _ in range(2):
        failing(cooldowns, Fault.HTTP_500)
    assert cooldowns.look("a", "m") is None
    failing(cooldowns, Fault.HTTP_500)
    assert cooldowns.look("a", "m").seconds == 30


def test_cooldowns_grow_up_to_five_minutes_and_an_answer_forgets_them(cooldowns, clock):
    """A cooldown lasts 30 s times its round, at most 300 s, and an answer resets the round."""
    lengths = []
    for _ in range(12):
        failing(cooldowns, Fault.TOO_LARGE)
        lengths.append(cooldowns.look("a", "m").seconds)
        clock.now += lengths[-1]
    assert lengths == [30.0 * n for n in range(1, 11)] + [300.0, 300.0]
    cooldowns.record_success("a", "m")
    failing(cooldowns, Fault.TOO_LARGE)
    assert cooldowns.look("a", "m").seconds == 30


def test_an_empty_account_rests_ten_minutes_even_when_a_rate_limit_names_a_shorter_wait(cooldowns):
    """Gemini sends the delay of its rate limit with an exhausted daily quota. Ten minutes apply, or a longer delay."""
    failing(cooldowns, Fault.HTTP_429_QUOTA, retry_after=34)
    assert cooldowns.look("a", "m").seconds == 600
    failing(cooldowns, Fault.HTTP_402, retry_after=1800)
    assert cooldowns.look("a", "m").seconds == 1800


def test_after_a_cooldown_one_request_probes_and_the_others_wait_for_it(cooldowns, clock):
    """The first request claims the probe; it is released if it ends without a result, and success ends the cooldown."""
    failing(cooldowns, Fault.TOO_LARGE)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    assert cooldowns.enter("a", "m").probing
    cooldowns.release_probe("a", "m")
    assert cooldowns.enter("a", "m") is None
    cooldowns.record_success("a", "m")
    assert [cooldowns.enter("a", "m") for _ in range(3)] == [None, None, None]


def test_a_probe_that_fails_begins_a_longer_cooldown_at_once(cooldowns, clock):
    """After a cooldown a single failure is enough, even of a fault that is otherwise counted."""
    for _ in range(3):
        failing(cooldowns, Fault.HTTP_503)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    failing(cooldowns, Fault.HTTP_503)
    assert cooldowns.look("a", "m").seconds == 60


def test_a_lost_probe_blocks_nobody_for_ever(cooldowns, clock):
    """The claim on a probe expires."""
    failing(cooldowns, Fault.TOO_LARGE)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    clock.now += 30
    assert cooldowns.enter("a", "m") is None


def test_a_fault_of_the_whole_provider_leaves_all_its_models_alone(cooldowns):
    """A refused connection cools the whole provider, an oversized answer only its model."""
    failing(cooldowns, Fault.TOO_LARGE, "m")
    assert cooldowns.look("a", "other") is None
    failing(cooldowns, Fault.CONNECT_REFUSED, "m")
    assert cooldowns.look("a", "other").failure.fault is Fault.CONNECT_REFUSED
    assert cooldowns.look("b", "m") is None


@given(st.floats(0.001, 10_000))
def test_a_named_wait_is_kept_exactly_up_to_an_hour(seconds):
    """A provider's Retry-After is used exactly, up to one hour."""
    # The highest jitter, which must not be added to a named wait.
    cooldowns = LocalCooldowns(Clock(), lambda: 0.999)
    failing(cooldowns, Fault.HTTP_429_WAIT, retry_after=seconds)
    assert cooldowns.look("a", "m").seconds == pytest.approx(min(seconds, 3600), abs=1e-6)


@given(
    st.sampled_from([Fault.HTTP_500, Fault.TOO_LARGE, Fault.HTTP_429_BAD_HEADER, Fault.HTTP_402]),
    st.integers(3, 15),
    st.floats(0, 1, exclude_max=True),
)
def test_chance_stretches_a_cooldown_of_ours_by_a_tenth_at_most_and_never_shortens_it(fault, failures, chance):
    """Jitter adds at most a tenth to a cooldown of our own: 30 s per round, one minute, or ten minutes for payment."""
    cooldowns = LocalCooldowns(lambda: 0.0, lambda: chance)
    for _ in range(failures):
        failing(cooldowns, fault)
    # Of counted faults, the third failure in a row is the first round.
    rounds = {Fault.HTTP_500: failures - 2, Fault.TOO_LARGE: failures}
    floor = {Fault.HTTP_429_BAD_HEADER: 60, Fault.HTTP_402: 600}.get(fault) or min(30 * rounds[fault], 300)
    assert floor <= cooldowns.look("a", "m").seconds <= floor * 1.1


def test_two_processes_that_lost_a_provider_together_come_back_to_it_apart():
    """Each process draws its own jitter, so that they do not all call the provider at the same moment."""
    lengths = []
    for chance in (0.0, 0.5):
        cooldowns = LocalCooldowns(Clock(), lambda chance=chance: chance)
        failing(cooldowns, Fault.CONNECT_REFUSED)
        lengths.append(cooldowns.look("a", "m").seconds)
    # 30 s · (1 + 0.1 · chance)
    assert lengths == pytest.approx([30.0, 31.5])


def test_a_rate_limit_with_a_wait_that_makes_no_sense_rests_a_minute(cooldowns):
    """The call is retried as if no wait were named, then the candidate cools down after one failure, not three."""
    failing(cooldowns, Fault.HTTP_429_BAD_HEADER)
    assert cooldowns.look("a", "m").seconds == 60
    assert cooldowns.look("a", "other") is None


@pytest.mark.parametrize("fault", [Fault.HTTP_402, Fault.HTTP_429_QUOTA])
def test_a_provider_that_wants_to_be_paid_is_left_alone_for_ten_minutes(cooldowns, fault):
    """An empty account does not recover within seconds, so the cooldown is ten minutes."""
    failing(cooldowns, fault)
    assert cooldowns.look("a", "other").seconds == 600


@pytest.mark.parametrize("fault", [Fault.HTTP_400, Fault.CONTEXT_LENGTH, Fault.HTTP_422, Fault.CAPABILITY_MISMATCH])
def test_a_caller_s_own_mistake_cools_nobody(cooldowns, fault):
    """A fault of the request itself starts no cooldown, however often it occurs."""
    for _ in range(10):
        failing(cooldowns, fault)
    assert cooldowns.look("a", "m") is None


def test_who_is_left_alone_is_listed_and_forgotten_by_provider(cooldowns, clock):
    """The list has cooling providers and models, without ended cooldowns; clearing one provider keeps the others."""
    failing(cooldowns, Fault.HTTP_402)
    failing(cooldowns, Fault.TOO_LARGE, "n")
    verdict = Policy().verdict(Failure(Fault.HTTP_402))
    cooldowns.record_failure("b", "m", Failure(Fault.HTTP_402), verdict)
    found = {key: (cooling.seconds, cooling.failure.fault) for key, cooling in cooldowns.list_cooling()}
    assert found[("a", "n")] == (30.0, Fault.TOO_LARGE)
    assert set(found) == {("a", None), ("a", "n"), ("b", None)}
    clock.now += 40
    assert {key for key, _ in cooldowns.list_cooling()} == {("a", None), ("b", None)}
    cooldowns.forget("a")
    assert [key for key, _ in cooldowns.list_cooling()] == [("b", None)]
    assert cooldowns.look("a", "m") is None
