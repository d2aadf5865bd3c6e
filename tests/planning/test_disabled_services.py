"""A disabled model service is not called, whichever name is used to reach it."""

from __future__ import annotations

from dataclasses import replace

from routing_admin.core.configuration.specs import CandidateSpec, Configuration, ProviderSpec, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.planning.plan import RoutingQuery, make_plan

ONE = ServiceSpec("one", "One", "p", "m", "https://p.example/v1", enabled=False)
CONFIGURATION = Configuration(
    providers=(ProviderSpec("p", "https://p.example/v1", "m"),),
    services=(ONE,),
    routes=(RouteSpec("default", (CandidateSpec("p"), CandidateSpec("p", "m"), CandidateSpec("p", "other"))),),
)


def test_a_disabled_service_in_a_chain_is_skipped_with_its_name():
    """A disabled service is skipped, by name or as the provider's default. A model without a service is called."""
    first, second, other = make_plan(CONFIGURATION, RoutingQuery()).candidates
    for candidate in (first, second):
        assert candidate.skip is SkipReason.DISABLED
        assert "one" in candidate.skip_detail
    assert other.skip is None


def test_one_enabled_service_at_the_same_model_is_enough():
    """Two services can share a provider and model; the model is skipped only if all of them are disabled."""
    both = replace(CONFIGURATION, services=(ONE, replace(ONE, id="two", enabled=True)))
    assert [candidate.skip for candidate in make_plan(both, RoutingQuery()).candidates] == [None, None, None]
