"""The plan for the large installation depends only on the seed. It includes all states and all reasons for failure."""

from __future__ import annotations

from tests.ui.large import SMALL, Size
from tests.ui.large.configuration import Unable, plan_configuration
from tests.ui.large.providers import ProviderState


def test_plan_contains_every_provider_state_and_every_cause_of_unusable_routes() -> None:
    for size in (SMALL, Size()):
        planned = plan_configuration(size, 1)
        assert len(planned.unable) == size.unable
        assert set(planned.unable.values()) == set(Unable)
        assert set(planned.providers.states.values()) == set(ProviderState)


def test_same_seed_gives_the_same_configuration() -> None:
    planned = plan_configuration(SMALL, 3)
    assert plan_configuration(SMALL, 3).routes == planned.routes
    assert plan_configuration(SMALL, 4).routes != planned.routes
