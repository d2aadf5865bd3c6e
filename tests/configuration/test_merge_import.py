"""Without pruning, a file is validated together with the stored configuration, and does not have to repeat it."""

from __future__ import annotations

from typing import Any

import pytest

from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.files.importing import Imported, import_values

A = {"providerName": "a", "apiKey": "NOT_NEEDED", "endpoint": "https://a.example/v1", "defaultModel": "m"}
STORED = {"providers": [A], "routing": {"default": {"provider": "a"}}}


@pytest.fixture
def stored_configuration() -> Configuration:
    outcome = import_values(EMPTY, [STORED])
    assert outcome.accepted
    return outcome.configuration


def problems(outcome: Imported) -> list[tuple[str, str]]:
    return [(problem.field, problem.constraint) for problem in outcome.problems]


def test_file_with_one_route_is_merged_into_the_stored_configuration(stored_configuration: Configuration) -> None:
    outcome = import_values(stored_configuration, [{"routing": {"new": {"provider": "a", "fallback": ["a/other"]}}}])
    assert problems(outcome) == []
    assert [route.task_type for route in outcome.configuration.routes] == ["default", "new"]
    assert [str(candidate.model) for candidate in outcome.configuration.routes[1].candidates] == ["None", "other"]
    assert outcome.configuration.providers == stored_configuration.providers


def test_file_with_one_provider_is_merged_into_the_stored_configuration(stored_configuration: Configuration) -> None:
    outcome = import_values(stored_configuration, [{"providers": [{**A, "providerName": "b"}]}])
    assert problems(outcome) == []
    assert [provider.name for provider in outcome.configuration.providers] == ["a", "b"]
    assert outcome.configuration.routes == stored_configuration.routes


def test_route_may_reference_a_provider_of_another_file(stored_configuration: Configuration) -> None:
    route, provider = {"routing": {"new": {"provider": "b"}}}, {"providers": [{**A, "providerName": "b"}]}
    for files in ([route, provider], [provider, route]):
        assert problems(import_values(stored_configuration, files)) == []


def test_route_to_an_unknown_provider_is_reported(stored_configuration: Configuration) -> None:
    outcome = import_values(stored_configuration, [{"routing": {"new": {"provider": "ghost"}}}])
    assert problems(outcome) == [("routing.new.provider", "reference")]


def test_variable_that_collides_with_a_stored_provider_is_reported(
    stored_configuration: Configuration,
) -> None:
    outcome = import_values(stored_configuration, [{"providers": [{**A, "providerName": "A"}]}])
    assert problems(outcome) == [("providers[0].providerName", "duplicate")]


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        ({"routing": {"new": {"provider": "a"}}}, ["providers", "routing.default", "routing.new.provider"]),
        ({"providers": [A]}, ["routing"]),
    ],
)
def test_pruning_or_first_import_requires_a_complete_file(
    stored_configuration: Configuration, value: dict[str, Any], missing: list[str]
) -> None:
    assert [field for field, _ in problems(import_values(stored_configuration, [value], prune=True))] == missing
    assert [field for field, _ in problems(import_values(EMPTY, [value]))] == missing
