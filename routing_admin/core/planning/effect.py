"""Compare the requests of changed routes before and after a revision.

All measures vary by chance, so a trend is reported only if chance is an unlikely explanation. Small samples are not
compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from statistics import median
from typing import Any

from routing_admin.core.configuration.specs import CandidateSpec, Configuration

MIN_REQUESTS = 20
"""Minimum number of requests, both before and after the revision; smaller samples are not compared."""
MIN_STANDARD_ERRORS = 2.6
"""A difference counts if it is at least this many standard errors; by chance alone, this happens in one case in a
hundred.
"""
MIN_RATIO = 1.1
"""If the ratio of two median durations is at most this, they count as equal, regardless of the number of requests."""

DESCRIPTIVE_FIELDS = frozenset(
    {"name", "display_name", "description", "price", "sources", "capability_tags", "extra", "routed"},
)
"""Fields of a provider or service that do not affect requests."""


@dataclass(frozen=True, slots=True)
class EffectSample:
    """A request in a comparison: whether it failed, whether a fallback answered it, and how long it took in ms."""

    has_failed: bool
    fell_back: bool
    ms: float


class EffectMeasure(StrEnum):
    FAILURES = "failures"
    FALLBACKS = "fallbacks"
    DURATION = "duration"


class EffectTrend(StrEnum):
    SAME = "same"
    WORSE = "worse"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class EffectLine:
    """A measure before and after a revision: a fraction from 0 to 1, or the median duration in ms of answered requests.

    A value is None if no request was answered.
    """

    measure: EffectMeasure
    before: float | None
    after: float | None
    trend: EffectTrend = EffectTrend.SAME


@dataclass(frozen=True, slots=True)
class RevisionEffect:
    """The number of requests before and after a revision, and their measures.

    There are no measures if either number is below `MIN_REQUESTS`.
    """

    before: int
    after: int
    lines: tuple[EffectLine, ...] = ()

    @property
    def worse(self) -> tuple[EffectLine, ...]:
        return tuple(line for line in self.lines if line.trend is EffectTrend.WORSE)


def effect_between(before: Sequence[EffectSample], after: Sequence[EffectSample]) -> RevisionEffect:
    counts = len(before), len(after)
    if min(counts) < MIN_REQUESTS:
        return RevisionEffect(*counts)
    failures = [[sample.has_failed for sample in samples] for samples in (before, after)]
    fallbacks = [[sample.fell_back for sample in samples] for samples in (before, after)]
    times = [[sample.ms for sample in samples if not sample.has_failed] for samples in (before, after)]
    lines = (
        _compare_shares(EffectMeasure.FAILURES, *failures),
        _compare_shares(EffectMeasure.FALLBACKS, *fallbacks),
        _compare_times(*times),
    )
    return RevisionEffect(*counts, lines)


def _compare_shares(measure: EffectMeasure, before: Sequence[bool], after: Sequence[bool]) -> EffectLine:
    then, now = (sum(values) / len(values) for values in (before, after))
    return EffectLine(measure, then, now, _trend(then, now, len(before), len(after)))


def _compare_times(before: Sequence[float], after: Sequence[float]) -> EffectLine:
    then, now = (median(values) if values else None for values in (before, after))
    trend = EffectTrend.SAME
    if then is not None and now is not None and not then / MIN_RATIO < now < then * MIN_RATIO:
        # Test whether more than half of the later requests took longer than the earlier median; ties count as half.
        slower = sum((ms > then) + (ms == then) / 2 for ms in after) / len(after)
        trend = _trend(0.5, slower, len(before), len(after))
    return EffectLine(EffectMeasure.DURATION, then, now, trend)


def _trend(then: float, now: float, before: int, after: int) -> EffectTrend:
    # This is a two-proportion z-test with the pooled proportion.
    pooled = (then * before + now * after) / (before + after)
    error = sqrt(pooled * (1 - pooled) * (1 / before + 1 / after))
    # The standard error is 0 if both proportions are 0 or both are 1.
    if error == 0 or abs(now - then) < MIN_STANDARD_ERRORS * error:
        return EffectTrend.SAME
    return EffectTrend.WORSE if now > then else EffectTrend.BETTER


def changed_routes(changes: Iterable[Mapping[str, Any]], *configurations: Configuration) -> frozenset[str]:
    """Return the task types whose requests a revision's changes may affect under these configurations.

    A change has `kind`, `name` and `field`, as stored with a revision. A changed route affects itself. A changed
    provider or service affects every route that contains it. Other changes affect no route.
    """
    names, providers, services = set[str](), set[str](), set[str]()
    for change in changes:
        kind, name, field = change["kind"], change["name"], change.get("field") or ""
        if kind == "route" and name:
            names.add(name)
        elif field.partition(".")[0] in DESCRIPTIVE_FIELDS:
            continue
        elif kind == "provider":
            providers.add(name)
        elif kind == "service":
            services.add(name)
    for configuration in configurations:
        models = {
            (service.provider, service.model) for service in map(configuration.service, services) if service is not None
        }
        for route in configuration.routes:
            if any(
                candidate.provider in providers or _candidate_model(configuration, candidate) in models
                for candidate in route.candidates
            ):
                names.add(route.task_type)
    return frozenset(names)


def _candidate_model(configuration: Configuration, candidate: CandidateSpec) -> tuple[str, str]:
    provider = configuration.provider(candidate.provider)
    return candidate.provider, candidate.model or (provider.default_model if provider else "")
