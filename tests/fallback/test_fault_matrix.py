"""The fault matrix: every scenario of the fault lab over real sockets, streamed and not, with action and result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from capabilities.core.wire import Answer, Failure, Fault, Finish
from routing_admin.core.fallback.chain import PlannedCandidate, RunResult, Timeouts
from routing_admin.core.fallback.errors import AggregateRouterError, UpstreamRefused
from tests.fallback.expected_faults import BYTES_DIFFER, EXPECTED
from tests.fallback.network_runs import QUICK, NetworkRun, protocol
from tests.lab import SCENARIOS, Lab
from tests.lab.shapes import VENDORS

COMMENTS = "comments_forever"
"""A stream of keep-alive comments without content. Comments count as activity, so only the total timeout ends it."""
OWN_STATUS = {"http_418": (418, "upstream_418"), "http_499": (499, "upstream_499")}
"""The status and code that the agent sees for a 4xx status that has no row in expected_faults.py."""
CASES = [
    pytest.param(name, scenario, stream, id=f"{name}-{scenario.name}-{'stream' if stream else 'plain'}")
    for name in VENDORS
    for scenario in SCENARIOS.values()
    for stream in (False, True)
    if name in scenario.needs and (name == "openai" or scenario.name in BYTES_DIFFER)
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


TIMED = frozenset({Fault.READ_TIMEOUT, Fault.TTFT_TIMEOUT, Fault.STREAM_STALL, Fault.SLOW_BODY})
"""Faults that depend on time. Only these run with short timeouts, so that a busy machine does not cause other faults.
"""

LONG_TIMEOUTS = Timeouts(connect=10, first_content=20, between=20, total=60)


def expected_fault(scenario_name: str, stream: bool) -> Fault | None:
    scenario = SCENARIOS[scenario_name]
    if scenario_name == COMMENTS and stream:
        return Fault.DEADLINE
    return scenario.stream if stream else scenario.plain


@pytest.mark.requirement("MMR-P8", "MMR-P9", "MMR-P10")
@pytest.mark.parametrize(("name", "scenario", "stream"), CASES)
async def test_every_lab_fault_ends_with_the_expected_action_and_status(lab, name, scenario, stream):
    """Each scenario causes the expected fault, number of tries and action.

    The caller gets the status and code in the fault's row.
    """
    lab.requests.clear()
    fault = expected_fault(scenario.name, stream)
    urls = {"bad": lab.url(name, "bad"), "good": lab.url(name, "good")}
    network_run = NetworkRun(urls, protocol(name), stream)
    timeouts = replace(QUICK, total=1.2) if fault is Fault.DEADLINE else QUICK if fault in TIMED else LONG_TIMEOUTS
    end = await network_run.run(
        PlannedCandidate(0, "bad", f"fault:{scenario.name}"),
        PlannedCandidate(1, "good", "lab-model"),
        timeouts=timeouts,
    )
    played = lab.played_for("bad")
    assert set(played) == {scenario.name}, "the fault itself was played"
    if fault is None:
        assert isinstance(end, RunResult)
        assert [attempt.outcome for attempt in end.attempts] == ["ok"]
        assert isinstance(end.answer, Answer) or isinstance(network_run.events[-1], Finish)
        return
    expected = EXPECTED[fault.value]
    if expected.in_the_stream or (fault is Fault.DEADLINE and scenario.name != COMMENTS):
        assert isinstance(end, RunResult)
        broken = network_run.events[-1]
        assert isinstance(broken, Failure)
        assert (broken.fault, lab.played_for("good")) == (fault, []), "after content no other candidate is called"
        return
    attempt = end.attempts[0]
    assert (attempt.outcome, len(played)) == (fault.value, expected.tries)
    assert attempt.retry_attempts == expected.tries - 1
    assert attempt.error
    assert "sk-secret" not in attempt.error
    if fault is Fault.DEADLINE:
        assert isinstance(end, AggregateRouterError)
        assert (end.status, end.code) == (504, "deadline_exceeded")
    elif expected.seed == "raise":
        assert isinstance(end, UpstreamRefused)
        assert (end.status, end.code) == OWN_STATUS.get(scenario.name, (expected.status, expected.code))
        assert lab.played_for("good") == []
    else:
        assert isinstance(end, RunResult)
        assert [attempt.outcome for attempt in end.attempts] == [fault.value, "ok"]
        assert lab.played_for("good") == ["ok"]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    "fault",
    [Fault.CONNECT_REFUSED, Fault.CONNECT_TIMEOUT, Fault.DNS_ERROR, Fault.TLS_ERROR, Fault.TLS_CERT_ERROR],
)
async def test_unreachable_provider_is_classified_and_the_next_candidate_answers(lab, fault, stream):
    """A refused connection, a silent or unknown address, missing TLS and a bad certificate are different faults."""
    lab.requests.clear()
    urls = {"bad": lab.broken_url(fault.value), "good": lab.url("openai", "good")}
    network_run = NetworkRun(urls, protocol("openai"), stream)
    timeouts = replace(QUICK, connect=0.3, first_content=2)
    end = await network_run.run(PlannedCandidate(0, "bad", "m"), PlannedCandidate(1, "good", "m"), timeouts=timeouts)
    assert [attempt.outcome for attempt in end.attempts] == [fault.value, "ok"]
    assert end.attempts[0].retry_attempts == EXPECTED[fault.value].tries - 1
    assert lab.played_for("good") == ["ok"]


def test_fault_lab_has_a_scenario_for_every_fault_caused_by_a_response():
    """The fault lab plays every fault except those without a response, such as a missing key.

    Other tests cover these.
    """
    shown = {scenario.plain for scenario in SCENARIOS.values()} | {scenario.stream for scenario in SCENARIOS.values()}
    without_bytes = {
        *(Fault.ORIGIN_REFUSED, Fault.KEY_MISSING, Fault.FIRE_DRILL, Fault.CONNECT_REFUSED, Fault.CONNECT_TIMEOUT),
        *(Fault.DNS_ERROR, Fault.TLS_ERROR, Fault.TLS_CERT_ERROR),
    }
    assert set(Fault) - shown <= without_bytes
