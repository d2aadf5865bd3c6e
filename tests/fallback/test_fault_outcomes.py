"""The result of each fault, row by row: the route's action, the cooldown, and what the agent sees."""

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
LINES = pytest.mark.parametrize("line", EXPECTED.values(), ids=list(EXPECTED))


def failure_of(line: ExpectedFault) -> Failure:
    """Return the fault with the status, long wait or parameter that a provider sends with it."""
    status = STATUS_IN_CODE.match(line.fault)
    return Failure(
        Fault(line.fault),
        "as scripted",
        int(status[1]) if status else REFUSED_STATUS if line.fault == "http_4xx" else None,
        param="temperature" if line.fault == "unsupported_parameter" else None,
        retry_after=NAMED_WAIT if line.fault == "http_429_wait" else None,
    )


def upstream_of(line: ExpectedFault) -> FakeUpstream:
    """`a` and `c` always fail, `b` answers. A deadline is reached because the call takes the whole time."""
    script = {"a": [failure_of(line)], "b": ["hello"], "c": [failure_of(line)]}
    return FakeUpstream(script, seconds=600 if line.fault == "deadline" else 0.01)


def test_every_fault_has_its_line() -> None:
    """A new fault needs a row in expected_faults.py."""
    assert sorted(EXPECTED) == sorted(fault.value for fault in Fault)


@LINES
@pytest.mark.requirement("MMR-P8", "MMR-P10")
def test_each_preset_does_what_the_line_says(line: ExpectedFault) -> None:
    verdicts = [Policy(preset).verdict(failure_of(line)) for preset in ErrorPreset]
    assert [preset.value for preset in ErrorPreset] == ["seed", "resilient", "strict"]
    assert [verdict.action.value for verdict in verdicts] == [line.seed, line.resilient, line.strict]
    assert verdicts[0].alert is line.alert
    assert verdicts[1].alert is (line.alert or line.resilient != line.seed), "let go on against the default: marked"


@LINES
def test_a_failing_candidate_is_called_that_often_and_then_the_next_one_or_nobody(line: ExpectedFault) -> None:
    """In a chain of two the second answers, unless the fault is raised: then the agent sees its status and code."""
    upstream = upstream_of(line)
    end = Stage().run(Plan(chain("a", "b")), upstream)
    assert upstream.asked == ["a"] * line.tries + ["b"] * (line.seed != "raise")
    if line.seed == "raise":
        assert isinstance(end, AggregateRouterError if line.fault == "deadline" else UpstreamRefused)
        assert (end.status, end.code) == (line.status, line.code)
    else:
        assert isinstance(end, RunResult)
        assert end.answer == Answer("hello")


@LINES
def test_a_route_that_raises_it_shows_the_agent_its_status_and_code(line: ExpectedFault) -> None:
    """A route can raise any fault at once; the agent sees the status and code of its row."""
    upstream = upstream_of(line)
    end = Stage().run(Plan(chain("a", "b"), policy=Policy(on_error={line.fault: Action.RAISE})), upstream)
    assert "b" not in upstream.asked
    assert (end.status, end.code) == (line.status, line.code)  # type: ignore[union-attr]


@LINES
@pytest.mark.requirement("MMR-P9")
def test_a_chain_that_ended_so_everywhere_answers_one_status(line: ExpectedFault) -> None:
    """The status is 429 if every candidate was rate limited or out of quota, 504 if every one timed out, else 502."""
    upstream = upstream_of(line)
    policy = Policy(on_error={line.fault: Action.NEXT})
    if line.exhausted is None:
        Stage().run(Plan(chain("a", "b"), policy=policy), upstream)
        assert upstream.asked == ["a"], "whatever the route says"
    else:
        end = Stage().run(Plan(chain("a", "c"), policy=policy), upstream)
        assert isinstance(end, AggregateRouterError)
        assert (end.status, end.code) == (line.exhausted, "all_providers_failed")


@LINES
def test_the_candidate_is_left_alone_that_long(line: ExpectedFault) -> None:
    """The cooldown after the first and the third failure in a row is that of the row, for the model or its provider."""
    cooldowns, failure = LocalCooldowns(Clock(), lambda: 0.0), failure_of(line)
    seconds: list[float | None] = []
    for _ in range(3):
        cooldowns.record_failure("a", "m", failure, Policy().verdict(failure))
        cooling = cooldowns.look("a", "m")
        seconds.append(cooling.seconds if cooling else None)
    assert [seconds[0], seconds[2]] == [line.first_cooldown, line.third_cooldown]
    other = cooldowns.look("a", "other")
    assert (other is not None) is (line.leaves == "provider")
    assert cooldowns.look("b", "m") is None


def documented() -> dict[str, list[str]]:
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
"""These start no cooldown where they are raised, and the row covers only that."""


@LINES
def test_the_document_says_the_same(line: ExpectedFault) -> None:
    """docs/faults.md agrees with the expected rows."""
    _, _, seed, resilient, strict, cooldown, seen, alert = documented()[line.fault]
    assert (seed, resilient, strict, alert == "yes") == (line.seed, line.resilient, line.strict, line.alert)
    words = COOLDOWN_WORDS[line.first_cooldown, line.third_cooldown]
    whole = ", whole provider" if line.leaves == "provider" else ""
    assert cooldown == ("at once where a route goes on" if line.fault in PASSED_ON else words + whole)
    if line.in_the_stream:
        assert seen == f"what came, then an error event `{line.code}` as the last one"
    elif line.fault == "http_4xx":
        assert seen == "the provider's own status, `upstream_<status>`"
    else:
        assert seen == f"{line.status} `{line.code}`"
