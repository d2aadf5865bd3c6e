"""Without pruning, a file is validated together with the stored configuration and need not repeat what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.files.importing import Imported, import_values

A = {"providerName": "a", "apiKey": "NOT_NEEDED", "endpoint": "https://a.example/v1", "defaultModel": "m"}
STORED = {"providers": [A], "routing": {"default": {"provider": "a"}}}


@pytest.fixture
def stored() -> Configuration:
    outcome = import_values(EMPTY, [STORED])
    assert outcome.accepted
    return outcome.configuration


def problems(outcome: Imported) -> list[tuple[str, str]]:
    return [(problem.field, problem.constraint) for problem in outcome.problems]


def test_a_file_with_one_route_is_merged_into_what_is_stored(stored: Configuration) -> None:
    """A file with only a route is merged, since its provider and the default route are already stored."""
    outcome = import_values(stored, [{"routing": {"new": {"provider": "a", "fallback": ["a/other"]}}}])
    assert problems(outcome) == []
    assert [route.task_type for route in outcome.configuration.routes] == ["default", "new"]
    assert [str(candidate.model) for candidate in outcome.configuration.routes[1].candidates] == ["None", "other"]
    assert outcome.configuration.providers == stored.providers


def test_a_file_with_one_provider_is_merged_into_what_is_stored(stored: Configuration) -> None:
    """A file with only a provider is merged into the stored configuration."""
    outcome = import_values(stored, [{"providers": [{**A, "providerName": "b"}]}])
    assert problems(outcome) == []
    assert [provider.name for provider in outcome.configuration.providers] == ["a", "b"]
    assert outcome.configuration.routes == stored.routes


def test_a_route_may_name_a_provider_of_another_file(stored: Configuration) -> None:
    """A route may name a provider of another file, regardless of the order of the files."""
    route, provider = {"routing": {"new": {"provider": "b"}}}, {"providers": [{**A, "providerName": "b"}]}
    for files in ([route, provider], [provider, route]):
        assert problems(import_values(stored, files)) == []


def test_unknown_provider_is_reported(stored: Configuration) -> None:
    """A route to a provider that is neither in the file nor stored is an error."""
    outcome = import_values(stored, [{"routing": {"new": {"provider": "ghost"}}}])
    assert problems(outcome) == [("routing.new.provider", "reference")]


def test_colliding_variables_are_reported_across_file_and_database(
    stored: Configuration,
) -> None:
    """If a new provider's variable is already used by a stored provider, this is reported with the new provider's
    path.
    """
    outcome = import_values(stored, [{"providers": [{**A, "providerName": "A"}]}])
    assert problems(outcome) == [("providers[0].providerName", "duplicate")]


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        ({"routing": {"new": {"provider": "a"}}}, ["providers", "routing.default", "routing.new.provider"]),
        ({"providers": [A]}, ["routing"]),
    ],
)
def test_replacing_import_needs_a_complete_file(
    stored: Configuration, value: dict[str, Any], missing: list[str]
) -> None:
    """With `prune` or in an empty installation the file must be complete by itself."""
    assert [field for field, _ in problems(import_values(stored, [value], prune=True))] == missing
    assert [field for field, _ in problems(import_values(EMPTY, [value]))] == missing
