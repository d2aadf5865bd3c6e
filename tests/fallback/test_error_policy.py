"""A route's error policy: presets, overrides, and what a caller can see.

An override names a fault, a status or a group of faults. The expected row for each fault is in expected_faults.py and
tested in test_fault_outcomes.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.policy import (
    ErrorPreset,
    Policy,
    caller_status,
    error_class_problem,
    error_classes,
    explain,
)
from routing_admin.core.fallback.table import GROUPS, Action, Effect

SEED = ErrorPreset.SEED
RETRIED = ["429", "500", "502", "503", "504", "408", "409", "425", "5xx"]
RAISED = ["400", "401", "403", "404", "413", "415", "422", "4xx"]


@pytest.mark.requirement("MMR-P8", "MMR-P10")
@pytest.mark.parametrize(("codes", "action"), [(RETRIED, Action.RETRY), (RAISED, Action.RAISE), (["402"], Action.NEXT)])
def test_default_policy_retries_falls_back_or_raises_by_status(codes, action):
    for code in codes:
        assert Policy().verdict(Failure(Fault(f"http_{code}"))).action is action


REFINED = [
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


def test_strict_preset_retries_every_429_and_5xx_and_raises_like_the_seed_preset():
    """`strict` differs from `seed` only for faults that `seed` passes to the next candidate without a retry."""
    for fault in Fault:
        seed, strict = (Policy(preset).verdict(Failure(fault)).action for preset in (SEED, ErrorPreset.STRICT))
        if fault.value in REFINED:
            assert (seed, strict) == (Action.NEXT, Action.RETRY)
        else:
            assert seed is strict


def test_resilient_preset_falls_back_after_401_403_404_413_and_422_with_an_alert():
    for fault in Fault:
        seed, resilient = (Policy(preset).verdict(Failure(fault)) for preset in (SEED, ErrorPreset.RESILIENT))
        if fault.value in ("http_401", "http_403", "http_404", "http_413", "http_422"):
            assert (resilient.action, resilient.alert) == (Action.NEXT, True)
        else:
            assert resilient == seed


def test_payment_and_quota_faults_start_a_long_cooldown_and_an_alert():
    """An exhausted account or quota does not recover within seconds."""
    for fault in (Fault.HTTP_402, Fault.HTTP_429_QUOTA):
        verdict = Policy().verdict(Failure(fault))
        assert (verdict.effect, verdict.alert) == (Effect.LONG, True)


@given(st.sampled_from(Fault), st.integers(400, 599), st.sampled_from(Action))
def test_most_specific_route_override_takes_precedence(fault, status, action):
    """A fault's own code takes precedence over its status, and its status over a group."""
    failure = Failure(fault, status=status)
    class_names = error_classes(failure)
    other = next(member for member in Action if member is not action)
    policy = Policy(on_error=dict.fromkeys(class_names[1:], other) | {class_names[0]: action})
    assert policy.own_action(failure) is action
    assert all(error_class_problem(name) is None for name in class_names)


def test_broken_stream_is_raised_regardless_of_route_overrides():
    """After the first content or the deadline, no other candidate can be called."""
    for fault in (Fault.STREAM_STALL, Fault.STREAM_BROKEN, Fault.STREAM_TRUNCATED, Fault.DEADLINE):
        assert Policy(on_error={fault.value: Action.NEXT}).verdict(Failure(fault)).action is Action.RAISE


def test_unknown_error_class_is_rejected_with_the_known_groups():
    assert "nonsense" in error_class_problem("nonsense")
    assert all(group in error_class_problem("nonsense") for group in GROUPS)


@given(st.sampled_from(Fault), st.none() | st.integers(100, 599))
def test_provider_401_and_403_are_shown_to_the_caller_as_502(fault, status):
    shown, code = caller_status(Failure(fault, status=status))
    assert 400 <= shown <= 599
    if fault in (Fault.HTTP_401, Fault.HTTP_403):
        assert (shown, code) == (502, {Fault.HTTP_401: "upstream_auth", Fault.HTTP_403: "upstream_forbidden"}[fault])
    if fault is Fault.HTTP_4XX and status and 400 <= status < 500:
        assert (shown, code) == (status, f"upstream_{status}")


def test_fault_explanation_has_meaning_action_and_override_names():
    explanation = explain(Failure(Fault.HTTP_404, status=404))
    assert explanation.meaning
    assert explanation.verdict.action is Action.RAISE
    assert explanation.words[:2] == ("http_404", "404")


@pytest.mark.parametrize("fault", [Fault.HTTP_401, Fault.HTTP_404])
def test_misconfiguration_starts_a_cooldown_only_if_the_route_falls_back(fault):
    """A fault that is raised starts no cooldown, so the next request gets the same error."""
    assert Policy().verdict(Failure(fault)).effect is Effect.NONE
    assert Policy(ErrorPreset.RESILIENT).verdict(Failure(fault)).effect is Effect.NOW
