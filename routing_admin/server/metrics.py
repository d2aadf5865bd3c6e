"""Request outcomes, counted since this process began, for Prometheus; behind the answers, never before them.

Names are OpenTelemetry's for generative AI where it has one (semantic conventions, `gen_ai.client.*`), with its advice
on buckets; ours begin with `routing_admin`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from capabilities.core.prices import NANO
from routing_admin.core.fallback.endings import ending_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_CHILDREN = 4096
"""Sets of labels that are found without asking the library."""
OTHER = "other"
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
PLACE = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")


disable_created_metrics()  # type: ignore[no-untyped-call]  # when a label was first seen helps nobody


class RequestMetrics:
    """The counts of one process in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry, call = self.registry, (*PLACE, "error_type")
        self._requests = Counter(
            "routing_admin_requests",
            "Requests by what became of them; `ending` is answered, failed, refused or cancelled.",
            ("route", "surface", "outcome", "ending"),
            registry=registry,
        )
        self._attempts = Counter(
            "routing_admin_attempts",
            "Candidates reached, by what became of each.",
            ("route", "provider", "model", "outcome"),
            registry=registry,
        )
        self._tokens = Counter(
            "routing_admin_tokens", "Tokens by sort.", ("route", "provider", "model", "kind"), registry=registry
        )
        self._cost = Counter(
            "routing_admin_cost",
            "What calls cost, in the unit of each currency; without those that nobody has a price for.",
            ("route", "provider", "model", "currency"),
            registry=registry,
        )
        self._duration = Histogram(
            "gen_ai_client_operation_duration_seconds", "Time of a call.", call, buckets=SECONDS, registry=registry
        )
        self._first = Histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Time to the first content of a stream.",
            PLACE,
            buckets=SECONDS,
            registry=registry,
        )
        usage = (*PLACE, "gen_ai_token_type")
        self._usage = Histogram(
            "gen_ai_client_token_usage", "Tokens of a call.", usage, buckets=TOKENS, registry=registry
        )
        self._refused_keys = Counter(
            "routing_admin_keys_refused",
            "Calls refused for their key or token, by the door they came to and the code they were told.",
            ("door", "code"),
            registry=registry,
        )
        self._child = lru_cache(maxsize=MOST_CHILDREN)(_child_of)

    def count_request(self, route: str, surface: str, outcome: str) -> None:
        """One more request, and what became of it."""
        self._child(self._requests, route, surface, outcome, ending_of(outcome).value).inc()

    def count_attempt(self, route: str, provider: str, model: str, outcome: str) -> None:
        """One more candidate that was reached."""
        self._child(self._attempts, route, provider, model, outcome).inc()

    def observe_call(self, operation: str, provider: str, model: str, error: str, seconds: float) -> None:
        """How long a call took; `error` is the fault's code, empty where it answered."""
        self._child(self._duration, operation, provider, model, error).observe(seconds)

    def count_tokens(self, route: str, operation: str, provider: str, model: str, tokens: dict[str, int]) -> None:
        """The tokens of an answer by sort; `input` and `output` are the whole, the others parts of them."""
        for kind, count in tokens.items():
            self._child(self._tokens, route, provider, model, kind).inc(count)
        for kind in ("input", "output"):
            if kind in tokens:
                self._child(self._usage, operation, provider, model, kind).observe(tokens[kind])

    def count_cost(self, route: str, provider: str, model: str, currency: str, nanos: int) -> None:
        """What a candidate's calls cost, in thousand-millionths of the currency's unit."""
        self._child(self._cost, route, provider, model, currency).inc(nanos / NANO)

    def observe_first_content(self, operation: str, provider: str, model: str, seconds: float) -> None:
        """How long a streamed answer took to begin."""
        self._child(self._first, operation, provider, model).observe(seconds)

    def count_refused_key(self, door: str, code: str) -> None:
        """One more call whose key or token did not open that door."""
        self._refused_keys.labels(door, code).inc()


def _child_of(metric: Any, *labels: str) -> Any:
    """What counts for these labels; the library looks each up with a lock and a text of its own."""
    return metric.labels(*labels)


class Numbers(Collector):
    """Numbers read at this moment: (name, explanation, value), those that only grow apart."""

    def __init__(self, gauges: Iterable[tuple[str, str, int]], counters: Iterable[tuple[str, str, int]]) -> None:
        self._gauges, self._counters = gauges, counters

    def collect(self) -> Iterable[Metric]:
        """Each as a family of its own."""
        for name, explanation, value in self._gauges:
            yield GaugeMetricFamily(name, explanation, value=value)
        for name, explanation, value in self._counters:
            yield CounterMetricFamily(name, explanation, value=value)


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A number of this moment for each set of labels; none where nothing is known."""

    name: str
    explanation: str
    values: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()
    only_grows: bool = False


class Families(Collector):
    """Families read at this moment."""

    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        """Each in Prometheus' form."""
        for each in self._families:
            kind = CounterMetricFamily if each.only_grows else GaugeMetricFamily
            family = kind(each.name, each.explanation, labels=each.labels)
            for labels, value in each.values.items():
                family.add_metric(labels, value)
            yield family


sources: list[Callable[[], Iterable[MetricFamily]]] = []
"""Who else has families to show; filled by the rooms above."""


def render(*numbers: Collector) -> bytes:
    """The numbers of the moment and the counts of this process, in Prometheus' text form."""
    now = CollectorRegistry()
    for each in (*numbers, *(Families(source()) for source in sources)):
        now.register(each)
    return generate_latest(now) + generate_latest(request_metrics.registry)


request_metrics = RequestMetrics()
"""The counts of this process."""
