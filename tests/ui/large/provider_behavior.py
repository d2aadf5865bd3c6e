"""How providers behave in the simulated time: their speed, failures and incidents, fire drills, and which fail now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Call
from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.core.fallback.table import TABLE
from tests.ui.large.configuration import Planned
from tests.ui.large.providers import LOCAL_DOMAIN, ProviderState

STATUSES: Mapping[Fault, int] = {
    **{fault: int(fault.value[5:8]) for fault in Fault if fault.value[:5] == "http_" and fault.value[5:8].isdigit()},
    Fault.UNSUPPORTED_PARAMETER: 400,
    Fault.CAPABILITY_MISMATCH: 400,
    Fault.HTTP_4XX: 451,
    Fault.HTTP_52X: 522,
    Fault.HTTP_5XX: 505,
    Fault.HTTP_OTHER: 300,
    Fault.REDIRECT: 301,
    **dict.fromkeys((Fault.BAD_CONTENT_TYPE, Fault.BAD_JSON, Fault.BAD_SHAPE, Fault.EMPTY_CHOICES), 200),
    **dict.fromkeys((Fault.EMPTY_CONTENT, Fault.GENERATION_FAILED), 200),
}
FAULT_MESSAGES: Mapping[Fault, str] = {
    Fault.HTTP_400: "Invalid value for 'tools[0].function.parameters': schema must be an object.",
    Fault.CONTEXT_LENGTH: "This model's maximum context length is 131072 tokens, however you requested 148211 tokens.",
    Fault.CONTENT_POLICY: "The response was filtered due to the prompt triggering our content management policy.",
    Fault.UNSUPPORTED_PARAMETER: "Unsupported parameter: 'top_k' is not supported with this model.",
    Fault.CAPABILITY_MISMATCH: "This model does not support image input.",
    Fault.HTTP_401: "Incorrect API key provided: sk-****cdef. You can find your API key in your account settings.",
    Fault.HTTP_402: "Insufficient balance. Please recharge. 账户余额不足",
    Fault.HTTP_403: "Your project does not have access to this model.",
    Fault.HTTP_404: "The model does not exist or you do not have access to it.",
    Fault.HTTP_413: "Request body too large: 31457280 bytes, limit 26214400.",
    Fault.HTTP_429: "Rate limit reached on tokens per min (TPM): Limit 300000, Used 291022. Please try again in 412ms.",
    Fault.HTTP_429_WAIT: "Too many requests. Retry after 45 seconds.",
    Fault.HTTP_429_QUOTA: "You exceeded your current quota, please check your plan and billing details.",
    Fault.HTTP_500: "The server had an error while processing your request.",
    Fault.HTTP_502: "<html><head><title>502 Bad Gateway</title></head></html>",
    Fault.HTTP_503: "The engine is currently overloaded, please try again later.",
    Fault.HTTP_529: "Overloaded",
}
FAULT_WEIGHTS: Mapping[Fault, int] = {
    Fault.HTTP_429: 30,
    Fault.HTTP_503: 18,
    Fault.HTTP_500: 9,
    Fault.READ_TIMEOUT: 8,
    Fault.HTTP_529: 6,
    Fault.HTTP_429_WAIT: 4,
    Fault.HTTP_502: 4,
    Fault.RESET_BEFORE_HEADERS: 4,
    Fault.CONNECT_TIMEOUT: 3,
    Fault.EMPTY_CONTENT: 3,
    Fault.HTTP_400: 6,
    Fault.CONTEXT_LENGTH: 4,
    Fault.CONTENT_POLICY: 4,
    Fault.UNSUPPORTED_PARAMETER: 2,
    Fault.BAD_JSON: 1,
}
"""Weights of everyday failures, according to how often they occur."""
STREAM_FAULTS = (Fault.STREAM_STALL, Fault.STREAM_BROKEN, Fault.STREAM_TRUNCATED)
INJECTABLE = tuple(fault for fault in Fault if fault not in (Fault.ORIGIN_REFUSED, Fault.KEY_MISSING, Fault.FIRE_DRILL))
"""Failures that the simulation can cause in a call. The other three are caused by the configuration or by fire
drills.
"""
INCIDENT_FAULTS = (
    Fault.HTTP_503,
    Fault.HTTP_529,
    Fault.HTTP_429,
    Fault.READ_TIMEOUT,
    Fault.CONNECT_REFUSED,
    Fault.HTTP_500,
)
HOUR, DAY = 3600.0, 86_400.0
SLOW_FAULTS = {Fault.READ_TIMEOUT, Fault.TTFT_TIMEOUT, Fault.SLOW_BODY}


@dataclass(frozen=True)
class Incident:
    """A period in which some of a provider's calls fail with a fault. Times are in seconds since 1970."""

    provider: str
    begins: float
    ends: float
    fault: Fault
    share: float


@dataclass(frozen=True)
class SimulatedResult:
    """How a call ends: with a failure, or with an answer after `seconds`. `cut` is the failure that breaks its
    stream.
    """

    seconds: float
    failure: Failure | None = None
    cut: Failure | None = None


def make_failure(fault: Fault) -> Failure:
    words = FAULT_MESSAGES.get(fault) or TABLE[fault].message or TABLE[fault].meaning
    param = {Fault.UNSUPPORTED_PARAMETER: "top_k", Fault.CAPABILITY_MISMATCH: "vision"}.get(fault)
    wait = {Fault.HTTP_429: 0.4, Fault.HTTP_429_WAIT: 45.0, Fault.HTTP_503: 1.0}.get(fault)
    return Failure(fault, words, STATUSES.get(fault), param=param, retry_after=wait)


class ProviderBehavior:
    """The behaviour of all providers until `now` (seconds since 1970). The seed determines it."""

    def __init__(self, planned: Planned, now: float) -> None:
        self._rng = Random(f"weather {planned.seed}")
        self._states = planned.providers.states
        names = [*self._states]
        self._pace = {name: self._usual_pace(name, LOCAL_DOMAIN) for name in names}
        self._rate = {name: min(0.25, self._rng.lognormvariate(-3.4, 0.8)) for name in names}
        self._incidents: dict[str, list[Incident]] = {}
        self._last: tuple[str, Fault | None] = ("", None)
        for name in self._rng.choices(names, k=max(12, len(names))):
            begins = now - self._rng.uniform(0.2, 30) * DAY
            lasts = self._rng.lognormvariate(math.log(1.5 * HOUR), 0.8)
            incident = Incident(
                name, begins, begins + lasts, self._rng.choice(INCIDENT_FAULTS), self._rng.uniform(0.4, 1.0)
            )
            self._incidents.setdefault(name, []).append(incident)
        # In these incidents, a key is rejected or an account is empty. Each ends after a few hours, as if an
        # administrator had fixed the cause.
        self._refusals: list[Incident] = []
        usable = [name for name in names if self._states[name] is ProviderState.READY]
        for at, name in enumerate(self._rng.sample(usable, min(6, len(usable)))):
            begins = now - (2.0 + at * 1.7) * DAY
            fault = Fault.HTTP_402 if at % 2 else Fault.HTTP_401
            self._refusals.append(Incident(name, begins, begins + self._rng.uniform(3, 7) * HOUR, fault, 1.0))
            self._incidents.setdefault(name, []).append(self._refusals[-1])
        broken = {ProviderState.REFUSED: Fault.HTTP_401, ProviderState.BUSY: Fault.HTTP_429_WAIT}
        for name, state in self._states.items():
            if state in broken:
                lasting = Incident(name, now - 5 * HOUR, now + HOUR, broken[state], 1.0)
                self._incidents.setdefault(name, []).append(lasting)

    def _usual_pace(self, name: str, domain: str) -> tuple[float, float]:
        """Return the median time to the first content in seconds, and the number of tokens per second."""
        if self._states[name] is ProviderState.SLOW:
            return self._rng.uniform(14, 25), 9.0
        return self._rng.lognormvariate(math.log(0.7), 0.5), self._rng.uniform(35, 160)

    def call(
        self, call: Call, at: float, stream: bool, staged: Fault | None, drill: DrillWindow | None
    ) -> SimulatedResult:
        """Return how a call at time `at` ends. It fails if the drill stops the provider, or with the fault `staged`."""
        name, rng = call.candidate.provider, self._rng
        if drill is not None and drill.stops(name, at):
            return SimulatedResult(0.0, drill.failure())
        fault = staged or self._repeated_fault(call) or self._fault(name, at)
        self._last = (call.candidate.name, fault)
        if fault in STREAM_FAULTS or (fault is None and stream and rng.random() < 0.004):
            cut = fault if fault in STREAM_FAULTS else rng.choice(STREAM_FAULTS)
            return SimulatedResult(self.first_content(name), cut=make_failure(cut))
        if fault is None:
            seconds = self.first_content(name)
            if seconds > call.timeouts.first_content:
                timeout = Fault.TTFT_TIMEOUT if stream else Fault.READ_TIMEOUT
                return SimulatedResult(call.timeouts.first_content, make_failure(timeout))
            return SimulatedResult(seconds)
        seconds = rng.uniform(0.05, 0.6)
        if fault in SLOW_FAULTS:
            seconds = min(call.timeouts.first_content, 30.0)
        elif fault is Fault.CONNECT_TIMEOUT:
            seconds = call.timeouts.connect
        elif fault is Fault.DEADLINE:
            return SimulatedResult(call.timeouts.total, make_failure(fault))
        return SimulatedResult(min(seconds, call.timeouts.total), make_failure(fault))

    def _repeated_fault(self, call: Call) -> Fault | None:
        """Return the fault of the previous try in most cases, since an immediate retry often fails in the same way."""
        name, fault = self._last
        return fault if call.try_number > 1 and call.candidate.name == name and self._rng.random() < 0.7 else None

    def _fault(self, name: str, at: float) -> Fault | None:
        rng = self._rng
        for incident in self._incidents.get(name, ()):
            if incident.begins <= at < incident.ends and rng.random() < incident.share:
                return incident.fault
        if rng.random() < self._rate.get(name, 0.0):
            return rng.choices([*FAULT_WEIGHTS], [*FAULT_WEIGHTS.values()])[0]
        return None

    def first_content(self, name: str) -> float:
        median, _speed = self._pace.get(name, (0.05, 400.0))
        return self._rng.lognormvariate(math.log(median), 0.45)

    def generation_seconds(self, name: str, tokens: int) -> float:
        """Return how many seconds pass between the first and the last generated token."""
        return tokens / self._pace.get(name, (0.05, 400.0))[1] * self._rng.uniform(0.8, 1.3)

    def key_incidents(self) -> Sequence[Incident]:
        """Return the past incidents that caused an alert."""
        return self._refusals

    def failing_providers(self) -> Sequence[str]:
        """Return the providers that are failing now, which only recent requests show."""
        shown = (ProviderState.REFUSED, ProviderState.BUSY, ProviderState.SLOW)
        return [name for name, state in self._states.items() if state in shown]
