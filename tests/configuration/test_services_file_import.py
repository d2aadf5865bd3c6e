"""Importing `llmservices.json`: a service gets the capabilities that it declares, or only text if it declares none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.services.registry import LlmServiceRegistry
from capabilities.core.vocabulary import TEXT_ONLY, Source
from routing_admin.core.configuration.as_json import from_json, to_json
from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.files.exporting import services_value
from routing_admin.core.files.importing import import_values
from routing_admin.core.files.llmservices import validate_services
from tests.configuration.config_strategies import capabilities, json_values, services_files, words

SERVICE: dict[str, Any] = {
    "id": "s",
    "name": "S",
    "baseURL": "https://api.example.com/v1",
    "model": "m",
    "apiKey": "",
    "capabilityTags": ["文本对话"],
    "description": "",
}


def imported(**changes: Any) -> Configuration:
    return import_values(EMPTY, [{"services": [SERVICE | changes]}]).configuration


@pytest.mark.requirement("MCR-1.1", "MCR-1.2", "MCR-5.1", "MCR-P1")
@given(capabilities)
def test_declared_capabilities_are_imported_and_exported(declared: dict[str, list[str]]) -> None:
    configuration = imported(capabilities=declared)
    able = configuration.services[0].capabilities
    assert able is not None
    assert (list(able.input), list(able.output)) == (declared["input"], declared["output"])
    assert services_value(configuration)["services"][0]["capabilities"] == declared


@pytest.mark.requirement("MCR-1.5", "MCR-5.2", "MCR-5.3", "MCR-P6")
@given(services_files())
def test_service_without_capabilities_has_text_and_is_exported_without_them(value: dict[str, Any]) -> None:
    for entry in value["services"]:
        entry.pop("capabilities", None)
    outcome = import_values(EMPTY, [value])
    assert outcome.accepted
    assert {item.effective_capabilities for item in outcome.configuration.services} <= {TEXT_ONLY}
    assert not [item for item in outcome.problems if "capabilities" in item.field]
    assert not any("capabilities" in entry for entry in services_value(outcome.configuration)["services"])


@pytest.mark.requirement("MCR-1.3", "MCR-5.4")
@given(words)
def test_any_capability_name_is_accepted(name: str) -> None:
    value = {"services": [SERVICE | {"capabilities": {"input": ["text", name], "output": ["text"]}}]}
    assert validate_services(value) == []
    able = import_values(EMPTY, [value]).configuration.services[0].effective_capabilities
    assert able.has(name) or name == "text"


@pytest.mark.requirement("MCR-1.4", "MCR-E1", "MCR-P1")
@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("vision", "services[0].capabilities"),
        ({"input": "vision"}, "services[0].capabilities.input"),
        ({"input": ["text", 1]}, "services[0].capabilities.input[1]"),
        ({"output": [""]}, "services[0].capabilities.output[0]"),
    ],
)
def test_invalid_capabilities_are_a_warning_and_exported_unchanged(value: Any, field: str) -> None:
    outcome = import_values(EMPTY, [{"services": [SERVICE | {"capabilities": value}]}])
    assert [(item.field, item.severity) for item in outcome.problems] == [(field, "warning")]
    assert outcome.configuration.services[0].effective_capabilities == TEXT_ONLY
    assert services_value(outcome.configuration)["services"][0]["capabilities"] == value


@pytest.mark.requirement("MCR-1.4")
@given(services_files(), json_values)
def test_invalid_service_is_skipped_by_the_registry_and_rejected_by_imports(value: dict[str, Any], junk: Any) -> None:
    spoilt = {**value, "services": [*value["services"], {"id": "spoilt", "name": junk}]}
    registry = LlmServiceRegistry.from_document(spoilt)
    assert [service.id for service in registry] == [entry["id"] for entry in value["services"]]
    path = f"services[{len(value['services'])}].baseURL"
    for problems in (registry.problems, validate_services(spoilt)):
        assert path in {item.field for item in problems if item.severity == "error"}
    assert not import_values(EMPTY, [spoilt]).accepted


@pytest.mark.requirement("MCR-1.4")
@pytest.mark.parametrize("name", ["id", "name", "baseURL", "model", "apiKey", "capabilityTags", "description"])
def test_missing_required_field_of_a_service_is_reported_with_its_path(name: str) -> None:
    entry = {key: item for key, item in SERVICE.items() if key != name}
    assert [(item.field, item.constraint) for item in validate_services({"services": [entry]})] == [
        (f"services[0].{name}", "required")
    ]


def test_duplicate_service_id_is_reported() -> None:
    problems = validate_services({"services": [SERVICE, SERVICE]})
    assert [(item.field, item.constraint) for item in problems] == [("services[1].id", "duplicate")]


@given(json_values | st.builds(lambda services: {"services": services}, json_values | st.lists(json_values)))
def test_any_json_value_is_validated_without_an_exception(value: Any) -> None:
    assert isinstance(validate_services(value), list)
    assert isinstance(LlmServiceRegistry.from_document(value).problems, tuple)
    assert import_values(EMPTY, [value]).configuration is not None


def test_only_declared_capabilities_are_exported() -> None:
    snapshot = to_json(imported(capabilities={"input": ["text"], "output": ["text"]}))
    snapshot["services"][0] |= {
        "capabilities": {"input": ["text", "vision"], "output": ["text"]},
        "sources": {"input:vision": Source.PROBED.value},
    }
    configuration = from_json(json.loads(json.dumps(snapshot)))
    assert configuration.services[0].effective_capabilities.has("vision")
    entry = services_value(configuration)["services"][0]
    assert entry["capabilities"] == {"input": ["text"], "output": ["text"]}


def test_imported_placeholder_key_changes_neither_stored_key_nor_provider_name() -> None:
    value = {"services": [SERVICE | {"apiKey": "xxx"}]}
    stored = import_values(EMPTY, [{"services": [SERVICE | {"apiKey": "sk-a-real-key"}]}]).configuration
    assert import_values(stored, [value]).configuration == stored
    value["services"].append(SERVICE | {"id": "t", "apiKey": "xxx"})
    outcome = import_values(stored, [value])
    assert [item.provider for item in outcome.configuration.services] == ["example", "example"]


@pytest.mark.requirement("MCR-5.3")
def test_timeouts_and_extra_body_survive_export_and_import() -> None:
    fields = {"timeouts": {"firstContent": 300}, "extraBody": {"enable_thinking": False}}
    configuration = imported(**fields)
    service = configuration.services[0]
    assert (service.timeouts, service.extra_body) == (fields["timeouts"], fields["extraBody"])
    assert fields.keys().isdisjoint(service.extra)
    file = services_value(configuration)
    assert import_values(EMPTY, [file]).configuration == configuration
    assert services_value(imported())["services"][0].keys().isdisjoint(fields)
