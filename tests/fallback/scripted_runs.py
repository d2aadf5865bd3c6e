"""Helpers for routing tests: a scripted upstream, clocks that tests set, and generated chains."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from capabilities.core.wire import Answer, Failure, Fault
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, ProviderSpec, RouteSpec
from routing_admin.core.fallback.chain import Call, Plan, PlannedCandidate, PoolKey, RunResult
from routing_admin.core.fallback.context import RunContext, local_context
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.fallback.scripts import drive

STATUS_FAULTS = {
    400: Fault.HTTP_400,
    401: Fault.HTTP_401,
    402: Fault.HTTP_402,
    403: Fault.HTTP_403,
    404: Fault.HTTP_404,
    429: Fault.HTTP_429,
    500: Fault.HTTP_500,
    502: Fault.HTTP_502,
    503: Fault.HTTP_503,
    504: Fault.HTTP_504,
    529: Fault.HTTP_529,
}

ScriptedOutcome = int | str | Failure
Outcome = Answer | Failure


def make_outcome(scripted: ScriptedOutcome) -> Outcome:
    if isinstance(scripted, Failure):
        return scripted
    if isinstance(scripted, int):
        return Failure(STATUS_FAULTS[scripted], f"status {scripted}", scripted)
    return Answer(scripted)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class RealClock(Clock):
    """The system clock, for runs over real sockets."""

    def __call__(self) -> float:
        return time.monotonic()


@dataclass
class FakeUpstream:
    """An upstream that plays each provider's script, and then repeats its last entry. Every call takes `seconds`.

    If a provider has several keys, `script` contains each key's script under `provider/key`.
    """

    script: Mapping[str, Sequence[ScriptedOutcome]]
    clock: Clock = field(default_factory=Clock)
    seconds: float = 0.01
    calls: list[Call] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def __call__(self, call: Call) -> Outcome:
        outcomes = self.script[candidate_label(call)]
        count = sum(1 for earlier in self.calls if candidate_label(earlier) == candidate_label(call))
        self.calls.append(call)
        self.times.append(self.clock.now)
        self.clock.sleep(self.seconds)
        return make_outcome(outcomes[min(count, len(outcomes) - 1)])

    @property
    def called(self) -> list[str]:
        """Return the called providers in order, including retries.

        A provider with several keys is given as `provider/key`.
        """
        return [candidate_label(call) for call in self.calls]


def candidate_label(call: Call) -> str:
    return f"{call.candidate.provider}/{call.key.name}" if call.key else call.candidate.provider


@dataclass
class Stage:
    """A fallback run's context: a clock, cooldowns, and a fixed random number."""

    clock: Clock = field(default_factory=Clock)
    random: float = 0.5
    waits: list[float] = field(default_factory=list)
    run_context: RunContext = field(init=False)

    def __post_init__(self) -> None:
        self.run_context = replace(local_context(self.clock, lambda: 0.0), random=lambda: self.random)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.sleep(seconds)

    def run(self, plan: Plan, upstream: FakeUpstream, *, stream: bool = False) -> RunResult[Answer] | RouterError:
        upstream.clock = self.clock
        run: FallbackRun[Answer] = FallbackRun(plan, self.run_context, stream=stream)
        try:
            return drive(run, upstream, self.sleep)
        except RouterError as error:
            return error


def candidate_with_keys(index: int, provider: str, *keys: str) -> PlannedCandidate:
    return PlannedCandidate(index, provider, "m", keys=tuple(PoolKey(key, f"mark of {key}") for key in keys))


def chain(*providers: str) -> tuple[PlannedCandidate, ...]:
    return tuple(PlannedCandidate(position, provider, "m") for position, provider in enumerate(providers))


NAMES = ("deepseek", "gemini", "qwen", "openai", "zhipu", "moonshot")
TASKS = ("planning", "design", "chapter_generation", "constructor", "__proto__", "任务")

temperatures = st.none() | st.sampled_from([0.0, 0.3, 1.0, 2.0])
token_limits = st.none() | st.integers(1, 100_000)
languages = st.sampled_from(["en", "zh", "zh-CN", "en-GB", "fr", "", "EN"]) | st.text(max_size=5)


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    providers = tuple(ProviderSpec(name, f"https://{name}.example/v1", f"{name}-large") for name in names)

    def route(task: str) -> RouteSpec:
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        primary = CandidateSpec(chosen[0], draw(st.none() | st.just("special")))
        rest = tuple(CandidateSpec(name, None, draw(temperatures), draw(token_limits)) for name in chosen[1:])
        return RouteSpec(task, (primary, *rest), draw(temperatures), draw(token_limits))

    tasks = draw(st.lists(st.sampled_from(TASKS), unique=True))
    default_language = draw(st.none() | st.sampled_from(["en", "zh", "zh-CN"]))
    return Configuration(
        providers, routes=tuple(route(task) for task in ("default", *tasks)), default_language=default_language
    )
