"""An export names the provider of each service, so that an import need not guess it from the base URL."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from routing_admin.core.configuration.diff import diff
from routing_admin.core.configuration.specs import (
    EMPTY,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.files.endpoints import without_foreign_base_urls
from routing_admin.core.files.exporting import Mode, export, routing_value, services_value
from routing_admin.core.files.importing import FileFormat, import_files, import_values

SHARED = KeySpec(KeyKind.ENV, "LLM_PROVIDER_SHARED_API_KEY")
OLD = ProviderSpec("old", "https://old.example/v1", "m", key=KeySpec(KeyKind.ENV, "LLM_PROVIDER_OLD_API_KEY"))
NEW = ProviderSpec("new", "https://new.example/v1", "m", key=KeySpec(KeyKind.ENV, "LLM_PROVIDER_NEW_API_KEY"))
TWINS = tuple(ProviderSpec(name, "https://one.example/v1", "m", key=SHARED) for name in ("left", "right"))


def export_texts(configuration: Configuration) -> list[str]:
    return [export(configuration, file_format).text for file_format in FileFormat]


def reimport(configuration: Configuration) -> list[Configuration]:
    """Export the configuration, import it in three ways, and return the results.

    The export is imported into an empty configuration, and into the exported one with and without pruning.
    """
    files = export_texts(configuration)
    outcomes = [
        import_files(EMPTY, files),
        *(import_files(configuration, files, prune=prune) for prune in (False, True)),
    ]
    assert all(outcome.accepted for outcome in outcomes)
    return [outcome.configuration for outcome in outcomes]


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.SEED])
def test_export_never_pairs_a_key_with_another_providers_url(mode: Mode) -> None:
    """A service that moved to another provider may keep the base URL of the old one."""
    moved = ServiceSpec("s", "S", "new", "m", base_url="https://old.example/v1")
    configuration = Configuration(providers=(OLD, NEW), services=(moved,))
    entry = json.loads(export(configuration, FileFormat.SERVICES, mode).text)["services"][0]
    assert (entry["baseURL"], entry["apiKey"]) == ("https://new.example/v1", "${LLM_PROVIDER_NEW_API_KEY}")
    assert all(diff(without_foreign_base_urls(configuration), imported) == () for imported in reimport(configuration))


def test_providers_with_the_same_url_keep_their_own_services() -> None:
    services = tuple(ServiceSpec(f"s-{provider.name}", "S", provider.name, "m") for provider in TWINS)
    for configuration in (
        Configuration(providers=TWINS, services=services),
        Configuration(providers=(TWINS[0], replace(TWINS[1], in_routing_file=False)), services=services),
    ):
        assert all(diff(configuration, imported) == () for imported in reimport(configuration))


@pytest.mark.parametrize(
    "fields",
    [
        {"display_name": "Ours"},
        {"protocol": "anthropic"},
        {"quirks": {"x": True}},
        {"timeouts": {"connect": 3}},
        {"proxy": "none"},
        {"env_name": "OWN"},
        {"enabled": False},
        {"default_model": "another"},
        {"more_keys": (KeySpec(KeyKind.ENV, "LLM_PROVIDER_OWN_API_KEY_2", name="b"),)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_provider_created_for_services_is_exported_once_a_field_is_set(fields: dict[str, Any]) -> None:
    values = {"services": [{**SERVICE, "baseURL": "https://api.example.com/v1"}]}
    brought = import_values(EMPTY, [values]).configuration
    assert routing_value(brought)["providers"] == []
    assert services_value(brought) == values
    configuration = replace(brought, providers=(replace(brought.providers[0], **fields),))
    assert all(diff(configuration, imported) == () for imported in reimport(configuration))


SERVICE = {
    "id": "s",
    "name": "S",
    "baseURL": "https://api.example.com/v1",
    "model": "m",
    "apiKey": "NOT_NEEDED",
    "capabilityTags": [],
    "description": "",
}


def test_unused_provider_survives_a_pruning_import() -> None:
    configuration = Configuration(providers=(replace(OLD, in_routing_file=False),))
    assert all(diff(configuration, imported) == () for imported in reimport(configuration))


def test_changed_endpoint_replaces_the_url_of_its_services() -> None:
    values = [{"services": [SERVICE | {"baseURL": "https://api.example.com/v1/chat/completions"}]}]
    brought = import_values(EMPTY, values).configuration
    assert brought.services[0].base_url == "https://api.example.com/v1/chat/completions"
    moved = replace(brought, providers=(replace(brought.providers[0], endpoint="https://elsewhere.example/v1"),))
    for imported in reimport(without_foreign_base_urls(moved)):
        assert [item.name for item in imported.providers] == ["example"]
        assert services_value(imported)["services"][0]["baseURL"] == "https://elsewhere.example/v1"


def test_provider_name_of_a_service_overrides_its_base_url() -> None:
    """A provider name that contradicts the service's URL is a warning. If the entry also has a key, it is an error."""
    configuration = Configuration(providers=(OLD, NEW))
    entry = SERVICE | {"providerName": "new", "baseURL": OLD.endpoint}
    outcome = import_values(configuration, [{"services": [entry]}])
    assert [(problem.field, problem.severity) for problem in outcome.problems] == [("services[0].baseURL", "warning")]
    assert (outcome.configuration.services[0].provider, outcome.configuration.providers) == (
        "new",
        configuration.providers,
    )
    refused = import_values(configuration, [{"services": [entry | {"apiKey": "sk-a-key-of-old"}]}])
    assert not refused.accepted
    assert refused.configuration == configuration
    accepted = import_values(
        configuration, [{"services": [entry | {"baseURL": NEW.endpoint, "apiKey": "sk-a-key-of-new"}]}]
    )
    assert accepted.keys == {"new": "sk-a-key-of-new"}


def test_service_with_an_unknown_provider_name_creates_the_provider() -> None:
    outcome = import_values(EMPTY, [{"services": [SERVICE | {"providerName": "ours"}]}])
    assert [provider.name for provider in outcome.configuration.providers] == ["ours"]


def test_file_with_providers_only_is_valid() -> None:
    configuration = Configuration(providers=(OLD,))
    assert all(diff(configuration, imported) == () for imported in reimport(configuration))
    invalid_file = routing_value(replace(configuration, routes=(RouteSpec("task", (CandidateSpec("old"),)),)))
    assert [problem.field for problem in import_values(EMPTY, [invalid_file]).problems] == ["routing.default"]


def test_seed_export_contains_no_disabled_key() -> None:
    further = KeySpec(KeyKind.ENV, "LLM_PROVIDER_OLD_API_KEY_2", name="b")
    off = replace(OLD.key, enabled=False)
    routes = (RouteSpec("default", (CandidateSpec("old"), CandidateSpec("new"))),)
    services = (ServiceSpec("s", "S", "old", "m"),)
    configuration = Configuration((replace(OLD, key=off, more_keys=(further,)), NEW), services, routes)
    for file_format in FileFormat:
        text = export(configuration, file_format, Mode.SEED).text
        assert "${LLM_PROVIDER_OLD_API_KEY_2}" in text
        assert "${LLM_PROVIDER_OLD_API_KEY}" not in text
    without_key = replace(configuration, providers=(replace(OLD, key=off), NEW))
    assert [export(without_key, file_format, Mode.SEED).left_out[0] for file_format in FileFormat] == [
        "Provider “old” is left out: all its keys are disabled.",
        "Model service “s” is left out: every key of old is disabled.",
    ]
