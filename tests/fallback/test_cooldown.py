"""Cooldowns of models and providers: start, length and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.cooldown import LocalCooldowns
from routing_admin.core.fallback.policy import Policy
from tests.fallback.scripted_runs import Clock


def record_failure(cooldowns: LocalCooldowns, fault: Fault, model: str = "m", retry_after: float | None = None) -> None:
    failure = Failure(fault, retry_after=retry_after)
    cooldowns.record_failure("a", model, failure, Policy().verdict(failure))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cooldowns(clock: Clock) -> LocalCooldowns:
    return LocalCooldowns(clock, lambda: 0.0)


def test_third_consecutive_failure_starts_a_cooldown_and_an_answer_resets_the_count(cooldowns):
    for _ in range(2):
        record_failure(cooldowns, Fault.HTTP_500)
    assert cooldowns.enter("a", "m") is None
    cooldowns.record_success("a", "m")
    for _ in range(2):
        record_failure(cooldowns, Fault.HTTP_500)
    assert cooldowns.look("a", "m") is None
    record_failure(cooldowns, Fault.HTTP_500)
    assert cooldowns.look("a", "m").seconds == 30


def test_consecutive_cooldowns_grow_to_five_minutes_until_an_answer(cooldowns, clock):
    """The n-th cooldown in a row lasts n · 30 s, at most 300 s."""
    lengths = []
    for _ in range(12):
        record_failure(cooldowns, Fault.TOO_LARGE)
        lengths.append(cooldowns.look("a", "m").seconds)
        clock.now += lengths[-1]
    assert lengths == [30.0 * n for n in range(1, 11)] + [300.0, 300.0]
    cooldowns.record_success("a", "m")
    record_failure(cooldowns, Fault.TOO_LARGE)
    assert cooldowns.look("a", "m").seconds == 30


def test_exhausted_quota_starts_a_cooldown_of_at_least_ten_minutes(cooldowns):
    """Gemini reports an exhausted daily quota with its rate limit's delay, which is too short."""
    record_failure(cooldowns, Fault.HTTP_429_QUOTA, retry_after=34)
    assert cooldowns.look("a", "m").seconds == 600
    record_failure(cooldowns, Fault.HTTP_402, retry_after=1800)
    assert cooldowns.look("a", "m").seconds == 1800


def test_only_one_request_probes_a_candidate_after_its_cooldown(cooldowns, clock):
    """The first request claims the right to probe, and releases it if the request ends without a result."""
    record_failure(cooldowns, Fault.TOO_LARGE)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    assert cooldowns.enter("a", "m").probing
    cooldowns.release_probe("a", "m")
    assert cooldowns.enter("a", "m") is None
    cooldowns.record_success("a", "m")
    assert [cooldowns.enter("a", "m") for _ in range(3)] == [None, None, None]


def test_failed_probe_starts_a_longer_cooldown_immediately(cooldowns, clock):
    """After a cooldown, a single failure is enough, even if the fault normally needs three."""
    for _ in range(3):
        record_failure(cooldowns, Fault.HTTP_503)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    record_failure(cooldowns, Fault.HTTP_503)
    assert cooldowns.look("a", "m").seconds == 60


def test_unfinished_probe_expires(cooldowns, clock):
    record_failure(cooldowns, Fault.TOO_LARGE)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    clock.now += 30
    assert cooldowns.enter("a", "m") is None


def test_provider_fault_starts_a_cooldown_for_all_models_of_the_provider(cooldowns):
    """After a refused connection, the whole provider cools down.

    After a response that is too large, only its model does.
    """
    record_failure(cooldowns, Fault.TOO_LARGE, "m")
    assert cooldowns.look("a", "other") is None
    record_failure(cooldowns, Fault.CONNECT_REFUSED, "m")
    assert cooldowns.look("a", "other").failure.fault is Fault.CONNECT_REFUSED
    assert cooldowns.look("b", "m") is None


@given(st.floats(0.001, 10_000))
def test_cooldown_lasts_exactly_retry_after_up_to_an_hour(seconds):
    # A random number of 0.999 gives the highest jitter, which must not be added to a provider's Retry-After.
    cooldowns = LocalCooldowns(Clock(), lambda: 0.999)
    record_failure(cooldowns, Fault.HTTP_429_WAIT, retry_after=seconds)
    assert cooldowns.look("a", "m").seconds == pytest.approx(min(seconds, 3600), abs=1e-6)


@given(
    st.sampled_from([Fault.HTTP_500, Fault.TOO_LARGE, Fault.HTTP_429_BAD_HEADER, Fault.HTTP_402]),
    st.integers(3, 15),
    st.floats(0, 1, exclude_max=True),
)
def test_jitter_adds_at_most_a_tenth_to_a_cooldown(fault, failures, chance):
    """Jitter is added to cooldowns that the gateway chooses: multiples of 30 s, a minute, or ten minutes."""
    cooldowns = LocalCooldowns(lambda: 0.0, lambda: chance)
    for _ in range(failures):
        record_failure(cooldowns, fault)
    # For faults that count towards a cooldown, the third failure in a row starts the first cooldown.
    rounds = {Fault.HTTP_500: failures - 2, Fault.TOO_LARGE: failures}
    floor = {Fault.HTTP_429_BAD_HEADER: 60, Fault.HTTP_402: 600}.get(fault) or min(30 * rounds[fault], 300)
    assert floor <= cooldowns.look("a", "m").seconds <= floor * 1.1


def test_processes_draw_different_jitter():
    """With the same jitter, all processes would call the provider again at the same moment."""
    lengths = []
    for chance in (0.0, 0.5):
        cooldowns = LocalCooldowns(Clock(), lambda chance=chance: chance)
        record_failure(cooldowns, Fault.CONNECT_REFUSED)
        lengths.append(cooldowns.look("a", "m").seconds)
    # The cooldown lasts 30 s · (1 + 0.1 · chance).
    assert lengths == pytest.approx([30.0, 31.5])


def test_rate_limit_with_an_invalid_retry_after_starts_a_cooldown_of_one_minute(cooldowns):
    """A single rate limit with an invalid Retry-After starts a cooldown. Other faults may need three failures."""
    record_failure(cooldowns, Fault.HTTP_429_BAD_HEADER)
    assert cooldowns.look("a", "m").seconds == 60
    assert cooldowns.look("a", "other") is None


@pytest.mark.parametrize("fault", [Fault.HTTP_402, Fault.HTTP_429_QUOTA])
def test_payment_fault_starts_a_provider_cooldown_of_ten_minutes(cooldowns, fault):
    """An account without credit does not recover within seconds."""
    record_failure(cooldowns, fault)
    assert cooldowns.look("a", "other").seconds == 600


@pytest.mark.parametrize("fault", [Fault.HTTP_400, Fault.CONTEXT_LENGTH, Fault.HTTP_422, Fault.CAPABILITY_MISMATCH])
def test_fault_caused_by_the_request_starts_no_cooldown(cooldowns, fault):
    for _ in range(10):
        record_failure(cooldowns, fault)
    assert cooldowns.look("a", "m") is None


def test_cooldowns_are_listed_and_cleared_by_provider(cooldowns, clock):
    record_failure(cooldowns, Fault.HTTP_402)
    record_failure(cooldowns, Fault.TOO_LARGE, "n")
    verdict = Policy().verdict(Failure(Fault.HTTP_402))
    cooldowns.record_failure("b", "m", Failure(Fault.HTTP_402), verdict)
    listed = {key: (cooling.seconds, cooling.failure.fault) for key, cooling in cooldowns.list_cooling()}
    assert listed[("a", "n")] == (30.0, Fault.TOO_LARGE)
    assert set(listed) == {("a", None), ("a", "n"), ("b", None)}
    clock.now += 40
    assert {key for key, _ in cooldowns.list_cooling()} == {("a", None), ("b", None)}
    cooldowns.forget("a")
    assert [key for key, _ in cooldowns.list_cooling()] == [("b", None)]
    assert cooldowns.look("a", "m") is None
