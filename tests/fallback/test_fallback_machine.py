"""A state machine over routes, faults and time: runs, waits and outages in any order follow the fallback rules."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Plan, RunResult
from routing_admin.core.fallback.errors import AggregateRouterError, UpstreamRefused
from routing_admin.core.fallback.policy import ErrorPreset, Policy
from routing_admin.core.fallback.table import Action
from tests.fallback.expected_faults import EXPECTED
from tests.fallback.scripted_runs import FakeUpstream, Stage, chain

PROVIDERS = ("a", "b", "c", "d")
# The faults left out here change the next call or end the run, which the state machine below does not model.
STATELESS = sorted(set(Fault) - {Fault.UNSUPPORTED_PARAMETER, Fault.CAPABILITY_MISMATCH, Fault.DEADLINE})


class FallbackMachine(RuleBasedStateMachine):
    """Providers fail and recover, time passes, and requests run.

    Attempts and calls always follow the fallback rules.
    """

    @initialize()
    def begin(self) -> None:
        self.stage = Stage()
        self.failures: dict[str, Failure | None] = dict.fromkeys(PROVIDERS)
        self.waits_until: dict[str, float] = {}

    @rule(provider=st.sampled_from(PROVIDERS), fault=st.sampled_from(STATELESS), wait=st.none() | st.floats(0.5, 900))
    def fail(self, provider: str, fault: Fault, wait: float | None) -> None:
        named = wait if fault in (Fault.HTTP_429, Fault.HTTP_429_WAIT) else None
        self.failures[provider] = Failure(fault, "down", retry_after=named)

    @rule(provider=st.sampled_from(PROVIDERS))
    def recover(self, provider: str) -> None:
        self.failures[provider] = None

    @rule(seconds=st.floats(0, 700))
    def pass_time(self, seconds: float) -> None:
        self.stage.clock.now += seconds

    @rule(provider=st.sampled_from(PROVIDERS))
    def almost_finish_a_named_wait(self, provider: str) -> None:
        remaining = self.waits_until.get(provider, 0) - self.stage.clock.now
        self.stage.clock.now += max(0.0, remaining - 0.01)

    @rule(names=st.lists(st.sampled_from(PROVIDERS), min_size=1, max_size=5), preset=st.sampled_from(ErrorPreset))
    def run_request(self, names: list[str], preset: ErrorPreset) -> None:
        plan = Plan(chain(*names), policy=Policy(preset))
        script = {name: [self.failures[name] or "hello"] for name in PROVIDERS}
        before = self.stage.clock.now
        upstream = FakeUpstream(script)
        end = self.stage.run(plan, upstream)
        self.attempts_are_a_prefix_of_the_chain(names, end)
        self.result_matches_the_last_attempt(names, end, preset)
        self.no_named_wait_was_cut_short(upstream)
        self.learn(end, before)

    def attempts_are_a_prefix_of_the_chain(self, names: list[str], end: object) -> None:
        assert [attempt.provider for attempt in end.attempts] == names[: len(end.attempts)]  # type: ignore[attr-defined]
        called = [attempt.provider for attempt in end.attempts if attempt.tries]  # type: ignore[attr-defined]
        assert len(called) == len(set(called)), "a provider and model is called as one candidate only"

    def result_matches_the_last_attempt(self, names: list[str], end: object, preset: ErrorPreset) -> None:
        if isinstance(end, RunResult):
            assert self.failures[end.candidate.provider] is None
            assert end.attempts[-1].outcome == "ok"
        elif isinstance(end, UpstreamRefused):
            assert Policy(preset).verdict(end.failure).action is Action.RAISE
        else:
            assert isinstance(end, AggregateRouterError)
            assert len(end.attempts) == len(names)
            assert all(attempt.outcome != "ok" for attempt in end.attempts)

    def no_named_wait_was_cut_short(self, upstream: FakeUpstream) -> None:
        for call, moment in zip(upstream.calls, upstream.times, strict=True):
            assert self.waits_until.get(call.candidate.provider, 0) <= moment + 1e-6, "a named wait was cut short"

    def learn(self, end: object, before: float) -> None:
        for attempt in end.attempts:  # type: ignore[attr-defined]
            if attempt.tries:
                self.waits_until.pop(attempt.provider, None)
            if attempt.tries and attempt.retry_after is not None:
                ended = before + (attempt.started_ms + attempt.duration_ms) / 1000
                self.waits_until[attempt.provider] = ended + attempt.retry_after

    @invariant()
    def only_cooling_faults_cause_cooldowns(self) -> None:
        for provider in PROVIDERS:
            cooling = self.stage.run_context.cooldowns.look(provider, "m")
            if cooling is not None:
                fault = cooling.failure.fault.value
                assert EXPECTED[fault].third_cooldown is not None or fault in ("http_401", "http_404")
                assert 0 < cooling.seconds <= 3600


TestFallbackMachine = FallbackMachine.TestCase
