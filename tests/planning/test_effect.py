"""A configuration revision's effect, measured by comparing the requests before it with those after it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.vocabulary import Capabilities
from routing_admin.core.configuration.specs import (
    CandidateSpec,
    Configuration,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.planning.effect import (
    MIN_REQUESTS,
    EffectMeasure,
    EffectSample,
    EffectTrend,
    changed_routes,
    effect_between,
)

WELL, SLOW, FAILED = EffectSample(False, False, 100), EffectSample(False, False, 900), EffectSample(True, False, 5)
FELL_BACK = EffectSample(False, True, 100)


def trends(before: list[EffectSample], after: list[EffectSample]) -> dict[EffectMeasure, EffectTrend]:
    return {line.measure: line.trend for line in effect_between(before, after).lines}


def test_more_failures_fallbacks_and_longer_durations_are_worse_and_fewer_are_better() -> None:
    good, bad = [WELL] * 100, [*[WELL] * 50, *[FAILED] * 20, *[FELL_BACK] * 30]
    assert trends(good, bad)[EffectMeasure.FAILURES] is EffectTrend.WORSE
    assert trends(good, bad)[EffectMeasure.FALLBACKS] is EffectTrend.WORSE
    assert trends(bad, good)[EffectMeasure.FAILURES] is EffectTrend.BETTER
    assert trends(good, [SLOW] * 100)[EffectMeasure.DURATION] is EffectTrend.WORSE
    assert trends([SLOW] * 100, good)[EffectMeasure.DURATION] is EffectTrend.BETTER
    # One failure and one fallback among a hundred requests do not show a trend.
    assert set(trends(good, [*good[2:], FAILED, FELL_BACK]).values()) == {EffectTrend.SAME}


def test_significance_depends_on_the_number_of_requests() -> None:
    before = [WELL] * 900 + [FAILED] * 100
    # With a pooled proportion of about 11 %, the standard error is 3.3 points for 100 later requests and 6.2 for 27.
    assert trends(before, [WELL] * 80 + [FAILED] * 20)[EffectMeasure.FAILURES] is EffectTrend.WORSE
    assert trends(before, [WELL] * 21 + [FAILED] * 6)[EffectMeasure.FAILURES] is EffectTrend.SAME


def test_effect_has_no_verdict_for_few_requests() -> None:
    effect = effect_between([WELL] * 100, [FAILED] * (MIN_REQUESTS - 1))
    assert (effect.before, effect.after, effect.lines, effect.worse) == (100, MIN_REQUESTS - 1, (), ())


def test_median_duration_is_none_without_answered_requests() -> None:
    line = effect_between([WELL] * 30, [FAILED] * 30).lines[-1]
    assert (line.before, line.after, line.trend) == (100, None, EffectTrend.SAME)


samples = st.lists(st.builds(EffectSample, st.booleans(), st.booleans(), st.floats(1, 1e5)), max_size=60)


@given(samples, samples)
def test_swapping_before_and_after_reverses_the_effect_trends(
    before: list[EffectSample], after: list[EffectSample]
) -> None:
    forward, back = effect_between(before, after), effect_between(after, before)
    assert (forward.before, forward.after) == (len(before), len(after))
    opposite = {"same": "same", "worse": "better", "better": "worse"}
    assert [opposite[entry.trend] for entry in forward.lines[:2]] == [entry.trend for entry in back.lines[:2]]
    assert {entry.trend for entry in effect_between(before, before).lines} <= {EffectTrend.SAME}


URL = "https://models.example/v1"
HERE = Configuration(
    providers=(ProviderSpec("qwen", URL, "vl"), ProviderSpec("deepseek", URL, "chat")),
    services=(ServiceSpec("eyes", "Eyes", "qwen", "vl", URL, Capabilities(("text", "vision"), ("text",))),),
    routes=(
        RouteSpec("default", (CandidateSpec("deepseek"),)),
        RouteSpec("look", (CandidateSpec("qwen"), CandidateSpec("deepseek"))),
    ),
)


def affected_routes(kind: str, name: str, field: str = "", *configurations: Configuration) -> set[str]:
    change: dict[str, Any] = {"kind": kind, "name": name, "field": field}
    return set(changed_routes([change], *(configurations or (HERE,))))


def test_configuration_change_affects_routes_whose_chain_contains_the_changed_item() -> None:
    """A change to a service affects all routes that use its model, even as the provider's default model."""
    assert affected_routes("route", "look", "retries") == {"look"}
    assert affected_routes("route", "gone") == {"gone"}
    assert affected_routes("provider", "deepseek", "endpoint") == {"default", "look"}
    assert affected_routes("service", "eyes", "capabilities.input") == {"look"}
    assert affected_routes("provider", "qwen", "", Configuration(), HERE) == {"look"}


def test_display_only_changes_affect_no_route() -> None:
    for kind, name, field in (
        *(("agent", "text-agent", ""), ("language", "pt", ""), ("route", "", "")),
        *(("provider", "qwen", "display_name"), ("service", "eyes", "price.input"), ("service", "none", "")),
    ):
        assert affected_routes(kind, name, field) == set()
