"""The plan for a request, made before any provider is called."""

from __future__ import annotations

import pytest

from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.wire import Failure, Fault
from routing_admin.core.configuration.specs import (
    DESCRIBE_ROUTE,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.fallback.chain import SkipReason, Timeouts
from routing_admin.core.fallback.policy import ErrorPreset, Policy
from routing_admin.core.fallback.table import Action
from routing_admin.core.planning.plan import (
    NoRouteError,
    RoutingQuery,
    find_unusable,
    make_plan,
    resolve_plan,
    route_policy,
    wants_describer_along,
)
from tests.fallback.scripted_runs import Stage

KEYED = KeySpec(KeyKind.ENV, "LLM_PROVIDER_KEYED_API_KEY")
CONFIGURATION = Configuration(
    providers=(
        ProviderSpec("open", "https://open.example/v1", "open-m", timeouts={"connect": 2, "between": 9, "total": 50}),
        ProviderSpec("keyed", "https://keyed.example/v1", "keyed-m", key=KEYED),
        ProviderSpec("off", "https://off.example/v1", "off-m", enabled=False),
        ProviderSpec("near", "http://localhost:11434/v1", "near-m"),
    ),
    services=(ServiceSpec("s", "S", "open", "special", "https://open.example/v1", timeouts={"between": 7}),),
    routes=(
        RouteSpec(
            "default",
            (
                CandidateSpec("open", "special"),
                *(CandidateSpec(name) for name in ("keyed", "off", "near", "ghost")),
                CandidateSpec("open", "special"),
            ),
            first_content=11,
        ),
        RouteSpec("closed", (CandidateSpec("open"),), enabled=False),
    ),
)


def test_uncallable_providers_stay_in_the_plan_with_a_skip_reason():
    unusable = find_unusable(CONFIGURATION, {}, OriginPolicy())
    plan = make_plan(CONFIGURATION, RoutingQuery(), unusable=unusable)
    assert [candidate.skip for candidate in plan.candidates] == [
        *(None, SkipReason.NO_KEY, SkipReason.DISABLED, SkipReason.ORIGIN_REFUSED, SkipReason.MISSING, None),
    ]
    assert "LLM_PROVIDER_KEYED_API_KEY" in plan.candidates[1].skip_detail
    assert "ROUTING_ADMIN_ALLOWED_ORIGINS" in plan.candidates[3].skip_detail
    assert find_unusable(CONFIGURATION, {"keyed": "sk-1"}, OriginPolicy(everything=True)) == {}


def test_candidate_that_cannot_read_the_request_is_skipped():
    plan = make_plan(
        CONFIGURATION, RoutingQuery(), cannot_read=lambda provider, model: "no eyes" if model == "special" else None
    )
    assert (plan.candidates[0].skip, plan.candidates[0].skip_detail) == (SkipReason.CANNOT_READ, "no eyes")
    assert plan.candidates[1].skip is None


def test_route_timeouts_override_service_and_provider_timeouts():
    """Each timeout is resolved on its own: the route's value, else the service's, the provider's, or the default."""
    plan = make_plan(CONFIGURATION, RoutingQuery())
    assert plan.candidates[0].timeouts == Timeouts(connect=2, first_content=11, between=7, total=50)
    assert plan.timeouts == Timeouts(first_content=11)


def test_candidate_keeps_its_longer_total_timeout_unless_the_route_sets_a_deadline():
    slow = ProviderSpec("slow", "https://slow.example/v1", "m", timeouts={"total": 1800})
    quick = ProviderSpec("quick", "https://quick.example/v1", "m")
    chain = (CandidateSpec("quick"), CandidateSpec("slow"))
    free = make_plan(Configuration((slow, quick), routes=(RouteSpec("default", chain),)), RoutingQuery())
    assert free.timeouts.total == 1800
    assert [candidate.timeouts.total for candidate in free.candidates] == [600, 1800]
    bound = make_plan(Configuration((slow, quick), routes=(RouteSpec("default", chain, deadline=60),)), RoutingQuery())
    assert bound.timeouts.total == 60


def test_disabled_route_counts_as_not_configured():
    """The route `default` is used, and `matched` is false."""
    plan = make_plan(CONFIGURATION, RoutingQuery("closed"))
    assert (plan.task_type, plan.matched) == ("default", False)


def test_missing_default_route_raises_an_error_that_names_the_setting():
    with pytest.raises(NoRouteError, match=r"routing\.default"):
        make_plan(Configuration(), RoutingQuery("x"))


def test_route_error_policy_is_a_preset_or_a_table():
    candidate = CandidateSpec("open")
    assert route_policy(RouteSpec("r", (candidate,), on_error="strict", retries=0)) == Policy(
        ErrorPreset.STRICT, retries=0
    )
    table = route_policy(
        RouteSpec("r", (candidate,), on_error={"404": "next", "preset": "resilient", "fallbackOn": ["quota"]})
    )
    assert table == Policy(ErrorPreset.RESILIENT, {"404": Action.NEXT}, ("quota",))
    assert route_policy(RouteSpec("r", (candidate,))) == Policy()


def test_resolve_lists_the_chain_without_calling_a_provider():
    stage = Stage()
    failure = Failure(Fault.HTTP_402)
    stage.run_context.cooldowns.record_failure("keyed", "keyed-m", failure, Policy().verdict(failure))
    plan = make_plan(CONFIGURATION, RoutingQuery("none", "zh-CN"))
    candidates = resolve_plan(plan, stage.run_context.cooldowns)
    assert (plan.task_type, plan.matched, plan.language) == ("default", False, "zh")
    assert [candidate.outcome for candidate in candidates] == [
        *("ready", "skipped_cooling", "skipped_disabled", "ready", "skipped_missing", "skipped_duplicate"),
    ]
    assert all(candidate.reason for candidate in candidates if candidate.outcome != "ready")


@pytest.mark.parametrize(("name", "needs_describer"), [("default", True), (DESCRIBE_ROUTE, False)])
def test_only_the_describer_route_never_needs_a_describer(name: str, needs_describer: bool) -> None:
    route = RouteSpec(name, (CandidateSpec("open"),), content={"policy": "extract+describer"})
    assert wants_describer_along(CONFIGURATION, route) is needs_describer
