"""Fire drills while a chain runs: the provider counts as unavailable, but there is no retry wait and no cooldown."""

from __future__ import annotations

import pytest

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Plan, RunResult
from routing_admin.core.fallback.errors import UpstreamRefused
from routing_admin.core.fallback.policy import Policy
from routing_admin.core.fallback.scripts import SKEW_SECONDS, DrillWindow
from routing_admin.core.fallback.table import Action
from tests.fallback.scripted_runs import FakeUpstream, Stage, chain

DRILL = DrillWindow(number=1, provider="a", actor="Ada", began=1000.0, ends=1060.0)


@pytest.mark.parametrize("stream", [False, True])
def test_fire_drill_falls_back_immediately_without_a_cooldown(stream: bool) -> None:
    """Once the drill ends, the provider is called as before."""
    stage, upstream = Stage(), FakeUpstream({"a": [DRILL.failure()], "b": ["ok"]})
    for _ in range(5):
        end = stage.run(Plan(chain("a", "b")), upstream, stream=stream)
        assert isinstance(end, RunResult)
        assert [(attempt.outcome, attempt.retry_attempts) for attempt in end.attempts] == [("fire_drill", 0), ("ok", 0)]
        assert end.attempts[0].error == "Fire drill by Ada: not called."
        assert not end.attempts[0].alert
    assert stage.waits == []
    assert stage.run_context.cooldowns.list_cooling() == []


@pytest.mark.parametrize("error_class", ["5xx", "503", "fire_drill"])
def test_policy_for_status_503_applies_to_a_fire_drill(error_class: str) -> None:
    """A policy of raising a 503 applies to a drill. With a policy of retrying, the drill's 503 is not retried."""
    upstream = FakeUpstream({"a": [DRILL.failure()], "b": ["ok"]})
    raised = Stage().run(Plan(chain("a", "b"), policy=Policy(on_error={error_class: Action.RAISE})), upstream)
    assert isinstance(raised, UpstreamRefused)
    assert (raised.status, raised.code) == (503, "fire_drill")
    stage = Stage()
    end = stage.run(Plan(chain("a", "b"), policy=Policy(on_error={error_class: Action.RETRY})), upstream)
    assert isinstance(end, RunResult)
    assert (end.attempts[0].retry_attempts, stage.waits) == (0, [])


def test_fire_drill_lasts_from_its_start_to_its_end() -> None:
    """Some clock skew is tolerated at the start of a drill. Setting the clock back further ends the drill."""
    assert [DRILL.lasts(time) for time in (995.0, 1000.0, 1059.9, 1060.0)] == [True, True, True, False]
    assert DRILL.lasts(1000.0 - SKEW_SECONDS)
    assert not DRILL.lasts(1000.0 - SKEW_SECONDS - 1)
    assert DRILL.stops("a", 1030.0)
    assert not DRILL.stops("b", 1030.0)
    assert [DRILL.seconds_left(time) for time in (1000.0, 1059.5, 1060.0)] == [60, 1, 0]


def test_fire_drill_failure_has_its_own_fault() -> None:
    """There is no HTTP status, since the provider was not called."""
    assert DRILL.failure() == Failure(Fault.FIRE_DRILL, "Fire drill by Ada: not called.")
