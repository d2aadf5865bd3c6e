"""A route's way with errors: presets, its own words over them, and what a caller may see.

Each fault's line stands in expected_faults.py and is tested in test_fault_outcomes.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.policy import ErrorPreset, Policy, caller_of, explain, word_problem, words_of
from routing_admin.core.fallback.table import GROUPS, Action, Effect

SEED = ErrorPreset.SEED
RETRIED = ["429", "500", "502", "503", "504", "408", "409", "425", "5xx"]
RAISED = ["400", "401", "403", "404", "413", "415", "422", "4xx"]


@pytest.mark.requirement("MMR-P8", "MMR-P10")
@pytest.mark.parametrize(("codes", "action"), [(RETRIED, Action.RETRY), (RAISED, Action.RAISE), (["402"], Action.NEXT)])
def test_statuses_lead_where_the_decision_says(codes, action):
    """429 and 5xx are retried, 402 goes on, 400/401/403 and other 4xx are raised (decision 6)."""
    for code in codes:
        assert Policy().verdict(Failure(Fault(f"http_{code}"))).action is action


REFINED_AWAY = [
    "read_timeout",
    "slow_body",
    "bad_content_type",
    "bad_shape",
    "empty_content",
    "http_429_wait",
    "http_429_quota",
    "http_501",
    "http_529",
    "ttft_timeout",
]


def test_strict_retries_every_429_and_5xx_and_raises_what_seed_raises():
    """`strict` differs from `seed` only where seed refines a retry away: these faults go on at once there."""
    for fault in Fault:
        seed, strict = (Policy(preset).verdict(Failure(fault)).action for preset in (SEED, ErrorPreset.STRICT))
        if fault.value in REFINED_AWAY:
            assert (seed, strict) == (Action.NEXT, Action.RETRY)
        else:
            assert seed is strict


def test_resilient_lets_the_provider_s_own_refusals_go_on_marked_red():
    """401, 403, 404, 413, 422 and nothing else."""
    for fault in Fault:
        seed, resilient = (Policy(preset).verdict(Failure(fault)) for preset in (SEED, ErrorPreset.RESILIENT))
        if fault.value in ("http_401", "http_403", "http_404", "http_413", "http_422"):
            assert (resilient.action, resilient.alert) == (Action.NEXT, True)
        else:
            assert resilient == seed


def test_payment_and_quota_cool_for_long_and_alert():
    """402 and an exhausted quota do not pass by waiting seconds."""
    for fault in (Fault.HTTP_402, Fault.HTTP_429_QUOTA):
        verdict = Policy().verdict(Failure(fault))
        assert (verdict.effect, verdict.alert) == (Effect.LONG, True)


@given(st.sampled_from(Fault), st.integers(400, 599), st.sampled_from(Action))
def test_the_most_exact_word_of_a_route_wins(fault, status, action):
    """A fault's own code beats its status, its status beats a group."""
    failure = Failure(fault, status=status)
    words = words_of(failure)
    other = next(one for one in Action if one is not action)
    policy = Policy(on_error=dict.fromkeys(words[1:], other) | {words[0]: action})
    assert policy.own_action(failure) is action
    assert all(word_problem(word) is None for word in words)


def test_a_broken_stream_never_goes_on_whatever_a_route_says():
    """After the first content and after the deadline there is no other candidate."""
    for fault in (Fault.STREAM_STALL, Fault.STREAM_BROKEN, Fault.STREAM_TRUNCATED, Fault.DEADLINE):
        assert Policy(on_error={fault.value: Action.NEXT}).verdict(Failure(fault)).action is Action.RAISE


def test_an_unknown_word_is_answered_with_the_known_ones():
    """The sentence names the word and what can stand there."""
    assert "nonsense" in word_problem("nonsense")
    assert all(group in word_problem("nonsense") for group in GROUPS)


@given(st.sampled_from(Fault), st.none() | st.integers(100, 599))
def test_a_caller_never_sees_a_provider_s_401_or_403_as_its_own(fault, status):
    """Upstream 401 and 403 are 502 with a code of their own; a raised 4xx keeps its status; all are errors."""
    shown, code = caller_of(Failure(fault, status=status))
    assert 400 <= shown <= 599
    if fault in (Fault.HTTP_401, Fault.HTTP_403):
        assert (shown, code) == (502, {Fault.HTTP_401: "upstream_auth", Fault.HTTP_403: "upstream_forbidden"}[fault])
    if fault is Fault.HTTP_4XX and status and 400 <= status < 500:
        assert (shown, code) == (status, f"upstream_{status}")


def test_an_error_can_be_explained():
    """Meaning, verdict and the words by which a route can decide otherwise."""
    told = explain(Failure(Fault.HTTP_404, status=404))
    assert told.meaning
    assert told.verdict.action is Action.RAISE
    assert told.words[:2] == ("http_404", "404")


@pytest.mark.parametrize("fault", [Fault.HTTP_401, Fault.HTTP_404])
def test_our_own_misconfiguration_cools_only_where_the_route_goes_on_after_it(fault):
    """Raised, it cools nobody: the next request must be told the same; passed on, it is not met at every request."""
    assert Policy().verdict(Failure(fault)).effect is Effect.NONE
    assert Policy(ErrorPreset.RESILIENT).verdict(Failure(fault)).effect is Effect.NOW
