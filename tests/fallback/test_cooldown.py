"""Who is left alone, for how long, and how they come back."""

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
    """Two failures change nothing; an answer between them starts the count again."""
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
    """30 s times the number of the round, at most 300 s."""
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
    """Gemini sends the delay of its rate limit beside a used-up quota of the day; a longer one is kept."""
    failing(cooldowns, Fault.HTTP_429_QUOTA, retry_after=34)
    assert cooldowns.look("a", "m").seconds == 600
    failing(cooldowns, Fault.HTTP_402, retry_after=1800)
    assert cooldowns.look("a", "m").seconds == 1800


def test_after_a_cooldown_one_request_probes_and_the_others_wait_for_it(cooldowns, clock):
    """The probe is claimed by who asks first, freed when it tells nothing, and ends the cooldown when it succeeds."""
    failing(cooldowns, Fault.TOO_LARGE)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    assert cooldowns.enter("a", "m").probing
    cooldowns.release_probe("a", "m")
    assert cooldowns.enter("a", "m") is None
    cooldowns.record_success("a", "m")
    assert [cooldowns.enter("a", "m") for _ in range(3)] == [None, None, None]


def test_a_probe_that_fails_begins_a_longer_cooldown_at_once(cooldowns, clock):
    """One failure is enough after a cooldown, even of a kind that is counted."""
    for _ in range(3):
        failing(cooldowns, Fault.HTTP_503)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    failing(cooldowns, Fault.HTTP_503)
    assert cooldowns.look("a", "m").seconds == 60


def test_a_lost_probe_blocks_nobody_for_ever(cooldowns, clock):
    """A claim lapses by itself."""
    failing(cooldowns, Fault.TOO_LARGE)
    clock.now += 30
    assert cooldowns.enter("a", "m") is None
    clock.now += 30
    assert cooldowns.enter("a", "m") is None


def test_a_fault_of_the_whole_provider_leaves_all_its_models_alone(cooldowns):
    """A refused connection concerns the provider, an oversized answer only its model."""
    failing(cooldowns, Fault.TOO_LARGE, "m")
    assert cooldowns.look("a", "other") is None
    failing(cooldowns, Fault.CONNECT_REFUSED, "m")
    assert cooldowns.look("a", "other").failure.fault is Fault.CONNECT_REFUSED
    assert cooldowns.look("b", "m") is None


@given(st.floats(0.001, 10_000))
def test_a_named_wait_is_kept_exactly_up_to_an_hour(seconds):
    """As long as the provider said, no longer; nobody can ask for more than an hour."""
    cooldowns = LocalCooldowns(Clock(), lambda: 0.999)
    failing(cooldowns, Fault.HTTP_429_WAIT, retry_after=seconds)
    assert cooldowns.look("a", "m").seconds == pytest.approx(min(seconds, 3600), abs=1e-6)


@given(
    st.sampled_from([Fault.HTTP_500, Fault.TOO_LARGE, Fault.HTTP_429_BAD_HEADER, Fault.HTTP_402]),
    st.integers(3, 15),
    st.floats(0, 1, exclude_max=True),
)
def test_chance_stretches_a_cooldown_of_ours_by_a_tenth_at_most_and_never_shortens_it(fault, failures, chance):
    """Floors by round: 30 s, 60 s … 300 s; a minute after a wait that makes no sense; ten minutes without money."""
    cooldowns = LocalCooldowns(lambda: 0.0, lambda: chance)
    for _ in range(failures):
        failing(cooldowns, fault)
    rounds = {Fault.HTTP_500: failures - 2, Fault.TOO_LARGE: failures}
    floor = {Fault.HTTP_429_BAD_HEADER: 60, Fault.HTTP_402: 600}.get(fault) or min(30 * rounds[fault], 300)
    assert floor <= cooldowns.look("a", "m").seconds <= floor * 1.1


def test_two_processes_that_lost_a_provider_together_come_back_to_it_apart():
    """Each draws its own chance, so that the provider does not wake to all of them at once."""
    lengths = []
    for chance in (0.0, 0.5):
        cooldowns = LocalCooldowns(Clock(), lambda chance=chance: chance)
        failing(cooldowns, Fault.CONNECT_REFUSED)
        lengths.append(cooldowns.look("a", "m").seconds)
    assert lengths == pytest.approx([30.0, 31.5])


def test_a_rate_limit_with_a_wait_that_makes_no_sense_rests_a_minute(cooldowns):
    """Tried again as if none were named, then left alone at once and not only after the third in a row."""
    failing(cooldowns, Fault.HTTP_429_BAD_HEADER)
    assert cooldowns.look("a", "m").seconds == 60
    assert cooldowns.look("a", "other") is None


@pytest.mark.parametrize("fault", [Fault.HTTP_402, Fault.HTTP_429_QUOTA])
def test_a_provider_that_wants_to_be_paid_is_left_alone_for_ten_minutes(cooldowns, fault):
    """Money does not come back in seconds."""
    failing(cooldowns, fault)
    assert cooldowns.look("a", "other").seconds == 600


@pytest.mark.parametrize("fault", [Fault.HTTP_400, Fault.CONTEXT_LENGTH, Fault.HTTP_422, Fault.CAPABILITY_MISMATCH])
def test_a_caller_s_own_mistake_cools_nobody(cooldowns, fault):
    """However often a request is wrong, the candidate stays."""
    for _ in range(10):
        failing(cooldowns, fault)
    assert cooldowns.look("a", "m") is None


def test_who_is_left_alone_is_listed_and_forgotten_by_provider(cooldowns, clock):
    """Providers as a whole and single models; one that rests no more is not named, and others stay as they are."""
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
