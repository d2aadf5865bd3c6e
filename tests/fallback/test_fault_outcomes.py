"""Each fault's result: the route's action, the cooldown, and what the agent gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capabilities.core.wire import Answer, Failure, Fault
from routing_admin.core.fallback.chain import Plan, RunResult
from routing_admin.core.fallback.cooldown import LocalCooldowns
from routing_admin.core.fallback.errors import AggregateRouterError, UpstreamRefused
from routing_admin.core.fallback.policy import ErrorPreset, Policy
from routing_admin.core.fallback.table import Action
from tests.fallback.expected_faults import EXPECTED, NAMED_WAIT, REFUSED_STATUS, ExpectedFault
from tests.fallback.scripted_runs import Clock, FakeUpstream, Stage, chain

DOCUMENT = Path(__file__).parents[2] / "docs" / "faults.md"
STATUS_IN_CODE = re.compile(r"http_(\d{3})")
EACH_FAULT = pytest.mark.parametrize("expected", EXPECTED.values(), ids=list(EXPECTED))


def make_failure(expected: ExpectedFault) -> Failure:
    status = STATUS_IN_CODE.match(expected.fault)
    return Failure(
        Fault(expected.fault),
        "as scripted",
        int(status[1]) if status else REFUSED_STATUS if expected.fault == "http_4xx" else None,
        param="temperature" if expected.fault == "unsupported_parameter" else None,
        retry_after=NAMED_WAIT if expected.fault == "http_429_wait" else None,
    )


def make_upstream(expected: ExpectedFault) -> FakeUpstream:
    """Return an upstream in which `a` and `c` always fail and `b` answers.

    For the fault `deadline`, each call takes all the time that the request has.
    """
    script = {"a": [make_failure(expected)], "b": ["hello"], "c": [make_failure(expected)]}
    return FakeUpstream(script, seconds=600 if expected.fault == "deadline" else 0.01)


def test_every_fault_has_a_row_of_expected_results() -> None:
    """A new fault needs a row in expected_faults.py."""
    assert sorted(EXPECTED) == sorted(fault.value for fault in Fault)


@EACH_FAULT
@pytest.mark.requirement("MMR-P8", "MMR-P10")
def test_each_policy_preset_handles_the_fault_as_expected(expected: ExpectedFault) -> None:
    verdicts = [Policy(preset).verdict(make_failure(expected)) for preset in ErrorPreset]
    assert [preset.value for preset in ErrorPreset] == ["seed", "resilient", "strict"]
    assert [verdict.action.value for verdict in verdicts] == [expected.seed, expected.resilient, expected.strict]
    assert verdicts[0].alert is expected.alert
    assert verdicts[1].alert is (expected.alert or expected.resilient != expected.seed), (
        "passed on against the default: with an alert"
    )


@EACH_FAULT
def test_failing_candidate_is_called_the_expected_number_of_times(expected: ExpectedFault) -> None:
    """If the fault is raised, the agent gets the row's status and code. Otherwise, the second candidate answers."""
    upstream = make_upstream(expected)
    end = Stage().run(Plan(chain("a", "b")), upstream)
    assert upstream.called == ["a"] * expected.tries + ["b"] * (expected.seed != "raise")
    if expected.seed == "raise":
        assert isinstance(end, AggregateRouterError if expected.fault == "deadline" else UpstreamRefused)
        assert (end.status, end.code) == (expected.status, expected.code)
    else:
        assert isinstance(end, RunResult)
        assert end.answer == Answer("hello")


@EACH_FAULT
def test_raised_fault_has_the_expected_status_and_code(expected: ExpectedFault) -> None:
    """A route can raise any fault immediately. The agent gets the status and code in the fault's row."""
    upstream = make_upstream(expected)
    end = Stage().run(Plan(chain("a", "b"), policy=Policy(on_error={expected.fault: Action.RAISE})), upstream)
    assert "b" not in upstream.called
    assert (end.status, end.code) == (expected.status, expected.code)  # type: ignore[union-attr]


@EACH_FAULT
@pytest.mark.requirement("MMR-P9")
def test_exhausted_chain_has_the_expected_status(expected: ExpectedFault) -> None:
    """The status is 429 if every candidate was rate limited, 504 if every one timed out, and otherwise 502."""
    upstream = make_upstream(expected)
    policy = Policy(on_error={expected.fault: Action.NEXT})
    if expected.exhausted is None:
        Stage().run(Plan(chain("a", "b"), policy=policy), upstream)
        assert upstream.called == ["a"], "whatever the route says"
    else:
        end = Stage().run(Plan(chain("a", "c"), policy=policy), upstream)
        assert isinstance(end, AggregateRouterError)
        assert (end.status, end.code) == (expected.exhausted, "all_providers_failed")


@EACH_FAULT
def test_fault_starts_a_cooldown_of_the_expected_length(expected: ExpectedFault) -> None:
    """The model's or provider's cooldown is checked after the first and after the third failure in a row."""
    cooldowns, failure = LocalCooldowns(Clock(), lambda: 0.0), make_failure(expected)
    seconds: list[float | None] = []
    for _ in range(3):
        cooldowns.record_failure("a", "m", failure, Policy().verdict(failure))
        cooling = cooldowns.look("a", "m")
        seconds.append(cooling.seconds if cooling else None)
    assert [seconds[0], seconds[2]] == [expected.first_cooldown, expected.third_cooldown]
    other_model = cooldowns.look("a", "other")
    assert (other_model is not None) is (expected.cools == "provider")
    assert cooldowns.look("b", "m") is None


def documented_rows() -> dict[str, list[str]]:
    lines = [line.strip("|\n").split("|") for line in DOCUMENT.read_text(encoding="utf-8").splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) > 2]
    return {line[1].strip("`"): line for line in cells if line[1].startswith("`")}


COOLDOWN_WORDS = {
    (None, None): "–",
    (None, 30.0): "after 3 in a row",
    (30.0, 90.0): "at once",
    (60.0, 60.0): "1 minute",
    (600.0, 600.0): "10 minutes",
    (NAMED_WAIT, NAMED_WAIT): "as long as named",
}
PASSED_ON = frozenset({"http_401", "http_404"})
"""Faults that start a cooldown only if the route falls back. Their expected rows are for a route that raises them."""


@EACH_FAULT
def test_fault_document_agrees_with_the_expected_rows(expected: ExpectedFault) -> None:
    _, _, seed, resilient, strict, cooldown, seen, alert = documented_rows()[expected.fault]
    assert (seed, resilient, strict, alert == "yes") == (
        expected.seed,
        expected.resilient,
        expected.strict,
        expected.alert,
    )
    duration = COOLDOWN_WORDS[expected.first_cooldown, expected.third_cooldown]
    scope = ", whole provider" if expected.cools == "provider" else ""
    assert cooldown == ("at once where a route goes on" if expected.fault in PASSED_ON else duration + scope)
    if expected.in_the_stream:
        assert seen == f"what came, then an error event `{expected.code}` as the last one"
    elif expected.fault == "http_4xx":
        assert seen == "the provider's own status, `upstream_<status>`"
    else:
        assert seen == f"{expected.status} `{expected.code}`"
