"""A disabled model service is never called, whichever of its names a request uses."""

from __future__ import annotations

from dataclasses import replace

from routing_admin.core.configuration.specs import CandidateSpec, Configuration, ProviderSpec, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.planning.plan import RoutingQuery, make_plan

DISABLED = ServiceSpec("one", "One", "p", "m", "https://p.example/v1", enabled=False)
CONFIGURATION = Configuration(
    providers=(ProviderSpec("p", "https://p.example/v1", "m"),),
    services=(DISABLED,),
    routes=(RouteSpec("default", (CandidateSpec("p"), CandidateSpec("p", "m"), CandidateSpec("p", "other"))),),
)


def test_disabled_service_in_a_chain_is_skipped_with_its_name():
    first, second, unserved = make_plan(CONFIGURATION, RoutingQuery()).candidates
    for candidate in (first, second):
        assert candidate.skip is SkipReason.DISABLED
        assert "one" in candidate.skip_detail
    assert unserved.skip is None


def test_model_with_one_enabled_service_is_not_skipped():
    both = replace(CONFIGURATION, services=(DISABLED, replace(DISABLED, id="two", enabled=True)))
    assert [candidate.skip for candidate in make_plan(both, RoutingQuery()).candidates] == [None, None, None]
