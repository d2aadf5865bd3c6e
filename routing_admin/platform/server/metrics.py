"""Count the outcomes of requests after their responses, and render metrics for Prometheus.

Names and bucket boundaries follow OpenTelemetry's conventions for generative AI (`gen_ai.client.*`). Our own names
start with `routing_admin`. Counts are plain numbers by labels, because a server's processes exchange and sum them
(`worker_board.py`); prometheus_client only renders the result.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import INF, floatToGoString

from capabilities.core.prices import NANO
from capabilities.runtime import owned
from routing_admin.core.fallback.endings import request_ending
from routing_admin.platform.server.hooks import Sources, server_hooks

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
CALL_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")

Labels = tuple[str, ...]
Value = Any
"""A number or, for a histogram, the number of observations in each bucket (the last bucket is unbounded), followed by
the sum of all observations.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """A metric with a value for each set of labels, or without values if none is known. With buckets: a histogram.

    The values of several processes are summed; with `is_largest`, the largest value is used instead.
    """

    name: str
    explanation: str
    values: Mapping[Labels, Value]
    labels: Labels = ()
    only_grows: bool = False
    buckets: tuple[float, ...] = ()
    is_largest: bool = False

    @property
    def outlives_process(self) -> bool:
        """Return whether a process's counts remain valid after the process has ended."""
        return self.only_grows or bool(self.buckets)

    def merged(self, other: MetricFamily) -> MetricFamily:
        values = dict(self.values)
        for labels, value in other.values.items():
            values[labels] = self._join(values[labels], value) if labels in values else value
        return replace(self, values=values)

    def _join(self, left: Value, right: Value) -> Value:
        if self.buckets:
            return [first + second for first, second in zip(left, right, strict=True)]
        return max(left, right) if self.is_largest else left + right


def number(name: str, explanation: str, value: float | None, *, only_grows: bool = False) -> MetricFamily:
    """Return a metric family of our own with one unlabelled value, or without values if `value` is None.

    With `only_grows` it is a counter, otherwise a gauge.
    """
    values: dict[Labels, Value] = {} if value is None else {(): value}
    return MetricFamily(name=f"routing_admin_{name}", explanation=explanation, values=values, only_grows=only_grows)


def sum_families(*groups: Iterable[MetricFamily]) -> list[MetricFamily]:
    """Return each family once, with its combined values from all groups."""
    found: dict[str, MetricFamily] = {}
    for family in chain.from_iterable(groups):
        known = found.get(family.name)
        found[family.name] = family if known is None else known.merged(family)
    return list(found.values())


class Tally:
    """Thread-safe counts of one metric family in this process."""

    def __init__(self, name: str, explanation: str, labels: Labels, buckets: tuple[float, ...] = ()) -> None:
        self._values: dict[Labels, Value] = {}
        self._family = MetricFamily(
            name=name,
            explanation=explanation,
            values=self._values,
            labels=labels,
            only_grows=not buckets,
            buckets=buckets,
        )
        self._buckets, self._lock = buckets, threading.Lock()

    def add(self, amount: float, *labels: str) -> None:
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + amount

    def observe(self, value: float, *labels: str) -> None:
        with self._lock:
            counts = self._values.get(labels)
            if counts is None:
                counts = self._values[labels] = [0] * (len(self._buckets) + 2)
            counts[bisect_left(self._buckets, value)] += 1
            counts[-1] += value

    def family(self) -> MetricFamily:
        with self._lock:
            # Copy the histograms, because they are changed in place later.
            values = {labels: value[:] if self._buckets else value for labels, value in self._values.items()}
        return replace(self._family, values=values)


class RequestMetrics:
    """Counts of requests in this process."""

    def __init__(self) -> None:
        self._requests = Tally(
            "routing_admin_requests",
            "Requests by what became of them; `ending` is answered, failed, refused or cancelled.",
            ("route", "surface", "outcome", "ending"),
        )
        self._attempts = Tally(
            "routing_admin_attempts",
            "Candidates reached, by what became of each.",
            ("route", "provider", "model", "outcome"),
        )
        self._tokens = Tally("routing_admin_tokens", "Tokens by sort.", ("route", "provider", "model", "kind"))
        self._cost = Tally(
            "routing_admin_cost",
            "What calls cost, in the unit of each currency; without those that have no price.",
            ("route", "provider", "model", "currency"),
        )
        self._latency = Tally(
            "routing_admin_request_duration_seconds",
            "Time from a request's arrival to the end of its answer, with all its attempts.",
            ("route",),
            SECONDS,
        )
        self._duration = Tally(
            "gen_ai_client_operation_duration_seconds", "Time of a call.", (*CALL_LABELS, "error_type"), SECONDS
        )
        self._first = Tally(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Time to the first content of a stream.",
            CALL_LABELS,
            SECONDS,
        )
        self._usage = Tally(
            "gen_ai_client_token_usage", "Tokens of a call.", (*CALL_LABELS, "gen_ai_token_type"), TOKENS
        )
        self._agents = Tally(
            "routing_admin_agent_requests",
            "Requests of agents by how they ended, where ROUTING_ADMIN_METRICS_AGENTS allows it.",
            ("agent", "ending"),
        )
        self._refused_keys = Tally(
            "routing_admin_keys_refused",
            "Calls refused for their key or token, by the API they called and the code of the error.",
            ("door", "code"),
        )

    def families(self) -> list[MetricFamily]:
        return [family.family() for family in vars(self).values()]

    def count_request(self, route: str, surface: str, outcome: str, seconds: float) -> None:
        self._requests.add(1, route, surface, outcome, request_ending(outcome).value)
        self._latency.observe(seconds, route)

    def count_agent_request(self, agent: str, outcome: str) -> None:
        self._agents.add(1, agent, request_ending(outcome).value)

    def count_attempt(self, route: str, provider: str, model: str, outcome: str) -> None:
        self._attempts.add(1, route, provider, model, outcome)

    def observe_call(self, operation: str, provider: str, model: str, error: str, seconds: float) -> None:
        """Record the duration of a call to a provider; `error` is the fault's code, or "" for success."""
        self._duration.observe(seconds, operation, provider, model, error)

    def count_tokens(self, route: str, operation: str, provider: str, model: str, tokens: dict[str, int]) -> None:
        """Count an answer's tokens by type; `input` and `output` are totals, the other types are parts of them."""
        for kind, count in tokens.items():
            self._tokens.add(count, route, provider, model, kind)
        for kind in ("input", "output"):
            if kind in tokens:
                self._usage.observe(tokens[kind], operation, provider, model, kind)

    def count_cost(self, route: str, provider: str, model: str, currency: str, nanos: int) -> None:
        """Count the cost of a candidate's calls, in billionths of the currency's unit."""
        self._cost.add(nanos / NANO, route, provider, model, currency)

    def observe_first_content(self, operation: str, provider: str, model: str, seconds: float) -> None:
        self._first.observe(seconds, operation, provider, model)

    def count_refused_key(self, door: str, code: str) -> None:
        self._refused_keys.add(1, door, code)


request_metrics = owned(RequestMetrics)


def read_sources(sources: Sources) -> Iterator[MetricFamily]:
    return chain.from_iterable(source() for source in sources)


def list_process_families(pids: Mapping[str, int]) -> Iterator[MetricFamily]:
    """Yield memory, CPU time, descriptors and start time of each worker under Prometheus's own names."""
    for worker, pid in pids.items():
        for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():  # type: ignore[misc]
            yield MetricFamily(
                name=metric.name,
                explanation=metric.documentation,
                values={(worker,): metric.samples[0].value},
                labels=("worker",),
                only_grows=metric.type == "counter",
            )


def render(families: Iterable[MetricFamily]) -> bytes:
    """Return families in Prometheus's text format, excluding the series that the hooks' filters remove."""
    for leave_out in server_hooks().filters:
        families = map(leave_out, families)
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            if family.buckets:
                yield _build_histogram(family)
                continue
            kind = CounterMetricFamily if family.only_grows else GaugeMetricFamily
            metric = kind(family.name, family.explanation, labels=family.labels)
            for labels, value in family.values.items():
                metric.add_metric(labels, value)
            yield metric


def _build_histogram(family: MetricFamily) -> Metric:
    metric = HistogramMetricFamily(family.name, family.explanation, labels=family.labels)
    bounds = [floatToGoString(bound) for bound in (*family.buckets, INF)]  # type: ignore[no-untyped-call]
    for labels, (*counts, total) in family.values.items():
        metric.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
    return metric
