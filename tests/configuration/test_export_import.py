"""Exporting a configuration to files and importing it again loses nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.vocabulary import Source
from routing_admin.core.configuration.as_json import from_json, to_json
from routing_admin.core.configuration.specs import EMPTY, Configuration, KeyKind, KeySpec, ServiceSpec
from routing_admin.core.files.exporting import Mode, export
from routing_admin.core.files.importing import FileFormat, Imported, import_files, import_values
from routing_admin.core.files.keys import KeyContext
from routing_admin.core.files.llm_routing_checks import validate
from routing_admin.core.files.llmservices import validate_services
from tests.configuration.config_strategies import literal_keys, routing_files, services_files, words

EXAMPLES = Path(__file__).parent / "examples"
DEMO = Path(__file__).parents[2] / "routing_admin" / "console" / "demo"
PUBLIC_URL = "http://127.0.0.1:8000"


def export_texts(configuration: Configuration, mode: Mode = Mode.FULL) -> tuple[str, str]:
    routing, services = (export(configuration, item, mode, public_url=PUBLIC_URL).text for item in FileFormat)
    return routing, services


def imported(*values: Any, onto: Configuration = EMPTY, prune: bool = False) -> Imported:
    outcome = import_values(onto, values, prune=prune)
    assert outcome.accepted, outcome.problems
    return outcome


def example(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))


@pytest.mark.requirement("MMR-P1", "MCR-5.2")
def test_example_files_are_exported_unchanged() -> None:
    """Only a placeholder key is replaced by a reference to its variable."""
    routing = (EXAMPLES / "llm-routing.json").read_text(encoding="utf-8")
    services = (EXAMPLES / "llmservices.json").read_text(encoding="utf-8")
    outcome = import_files(EMPTY, [services, routing])
    assert outcome.accepted
    assert outcome.kept_unknown == ()
    assert export_texts(outcome.configuration) == (
        routing,
        services.replace('"xxx"', '"${LLM_PROVIDER_EXAMPLE_API_KEY}"'),
    )


@pytest.mark.requirement("MCR-5.5")
def test_demo_files_cause_no_warning_and_have_all_input_capabilities() -> None:
    files = [(DEMO / f"{name}.json").read_text(encoding="utf-8") for name in FileFormat]
    outcome = import_files(EMPTY, files)
    assert outcome.problems == ()
    assert list(export_texts(outcome.configuration)) == files
    capabilities = {
        capability for service in outcome.configuration.services for capability in service.effective_capabilities.input
    }
    assert capabilities >= {"text", "vision", "audio", "file"}
    design = outcome.configuration.route("design")
    assert design is not None
    assert [item.model for item in design.candidates] == ["echo-503", "echo-vision", "echo-text"]


@given(routing_files(), services_files())
def test_second_export_equals_the_first_byte_for_byte(routing: Any, services: Any) -> None:
    first = export_texts(imported(routing, services).configuration)
    second = import_files(EMPTY, first)
    assert second.accepted, second.problems
    assert export_texts(second.configuration) == first


@given(routing_files(), services_files(), st.booleans())
def test_importing_an_export_changes_nothing(routing: Any, services: Any, prune: bool) -> None:
    configuration = imported(routing, services).configuration
    outcome = import_files(configuration, export_texts(configuration), prune=prune)
    assert outcome.configuration == configuration
    assert outcome.keys == {}


@given(routing_files(keys=st.just("${LLM_PROVIDER_SHARED_API_KEY}") | st.just("NOT_NEEDED") | st.just("")))
def test_export_without_stored_keys_recreates_the_configuration(routing: Any) -> None:
    configuration = imported(routing).configuration
    assert import_files(EMPTY, export_texts(configuration)[:1]).configuration == configuration


@pytest.mark.requirement("MMR-P2")
@given(routing_files(), services_files())
def test_export_contains_every_imported_value_except_keys(routing: Any, services: Any) -> None:
    files_written = [json.loads(text) for text in export_texts(imported(routing, services).configuration)]
    for value, kind in (
        (routing, "providers"),
        (services, "services"),
        *zip(files_written, ("providers", "services"), strict=True),
    ):
        for entry in value[kind]:
            for entry_or_key in (entry, *(entry.get("keys") or ())):
                entry_or_key.pop("apiKey")
    assert files_written == [routing, services]


@pytest.mark.requirement("MMR-E1")
@given(routing_files(keys=literal_keys), services_files(keys=literal_keys), st.sampled_from(list(Mode)))
def test_exports_snapshots_and_problems_contain_no_key(routing: Any, services: Any, mode: Mode) -> None:
    outcome = imported(routing, services)
    secrets = [entry["apiKey"] for entry in (*routing["providers"], *services["services"])]
    all_text = "".join(
        (*export_texts(outcome.configuration, mode), json.dumps(to_json(outcome.configuration)), repr(outcome))
    )
    assert not any(secret in all_text for secret in secrets)
    assert set(outcome.keys.values()) <= set(secrets)
    stored = {item.name for item in outcome.configuration.providers if item.key.kind is KeyKind.STORED}
    assert set(outcome.keys) == stored


@given(routing_files(), services_files())
def test_snapshot_parses_back_to_the_configuration(routing: Any, services: Any) -> None:
    configuration = imported(routing, services).configuration
    assert from_json(json.loads(json.dumps(to_json(configuration)))) == configuration


def test_strings_of_a_snapshot_become_enumeration_members() -> None:
    """An enumeration member equals its string, so a comparison would not reveal a plain string."""
    sources = {"input:vision": Source.PROBED}
    configuration = replace(EMPTY, services=(ServiceSpec("s", "s", "p", "m", sources=sources),))
    (service,) = from_json(json.loads(json.dumps(to_json(configuration)))).services
    assert service.sources["input:vision"] is Source.PROBED


@given(routing_files(), services_files())
def test_exports_for_other_programs_are_valid_files(routing: Any, services: Any) -> None:
    configuration = imported(routing, services).configuration
    for mode in (Mode.SEED, Mode.GATEWAY):
        routed, served = (json.loads(text) for text in export_texts(configuration, mode))
        errors = [item for item in (*validate(routed), *validate_services(served)) if item.severity == "error"]
        assert {item.field for item in errors} <= {"routing.default"}


def test_unknown_fields_are_kept_and_listed() -> None:
    routing, services = example("llm-routing.json"), example("llmservices.json")
    routing["schema"] = 1
    routing["routing"]["a.b"] = {"provider": "openai", "note": "x", "fallback": [{"provider": "openai", "why": 1}]}
    services["services"][1] |= {"maxTokens": 4096, "timeout": 60}
    assert imported(routing, services).kept_unknown == (
        "schema",
        'routing["a.b"].note',
        'routing["a.b"].fallback[0].why',
        "services[1].maxTokens",
        "services[1].timeout",
    )


def test_error_in_one_file_rejects_the_whole_import() -> None:
    valid, invalid = example("llm-routing.json"), {"services": [{"id": "x"}]}
    outcome = import_values(EMPTY, [valid, invalid])
    assert outcome.configuration == EMPTY
    assert outcome.keys == {}
    assert {"services[0].baseURL", "services[0].model"} <= {item.field for item in outcome.problems}
    assert not import_files(EMPTY, [json.dumps(valid), "{"]).accepted
    assert import_files(EMPTY, [json.dumps(valid), "{"]).configuration == EMPTY
    assert not import_values(EMPTY, [{"something": 1}]).accepted


@pytest.mark.requirement("MMR-E1")
@pytest.mark.parametrize("text", ["", "NOT_NEEDED", "xxx", "sk-****cdef", "${LLM_PROVIDER_OPENAI_API_KEY}"])
def test_stored_key_is_replaced_only_by_a_different_key_or_origin(text: str) -> None:
    value = example("llm-routing.json")
    value["providers"][0]["apiKey"] = "sk-first-key"
    stored = imported(value).configuration
    value["providers"][0]["apiKey"] = text
    second = imported(value, onto=stored)
    assert second.configuration == stored
    value["providers"][0]["endpoint"] = "https://elsewhere.example.com/v1/chat/completions"
    moved = imported(value, onto=stored).configuration.provider("openai")
    assert moved is not None
    assert moved.key.kind is not KeyKind.STORED
    value["providers"][0] |= {"endpoint": "https://api.openai.com/v1", "apiKey": "sk-second-key"}
    changed = imported(value, onto=stored)
    assert changed.keys == {"openai": "sk-second-key"}


def test_imported_service_is_assigned_to_the_provider_with_its_url_and_key() -> None:
    services = example("llmservices.json")
    services["services"][0] |= {
        "baseURL": "https://api.openai.com/v1",
        "apiKey": "${LLM_PROVIDER_OPENAI_API_KEY}",
    }
    configuration = imported(services, example("llm-routing.json")).configuration
    assert [item.provider for item in configuration.services] == ["openai", "example", "example"]
    service = configuration.service_at("openai", "gpt-4")
    assert service is not None
    assert service.id == "text-model"
    assert [item.name for item in configuration.providers if item.in_routing_file] == ["openai", "anthropic"]


def test_each_url_and_key_pair_becomes_one_provider_with_a_stable_name() -> None:
    entry = example("llmservices.json")["services"][0]
    origins = [("https://a.cn/v1", "sk-one-1"), ("https://a.cn/v1", "sk-two-2"), ("https://a.cn/v2/", "sk-one-1")]
    services = [entry | {"id": f"s{i}", "baseURL": url, "apiKey": key} for i, (url, key) in enumerate(origins * 2)]
    first = imported({"services": services})
    names = [item.provider for item in first.configuration.services]
    assert names == ["a", "a-v1", "a-v2"] * 2
    assert first.keys == {"a": "sk-one-1", "a-v1": "sk-two-2", "a-v2": "sk-one-1"}
    second = imported({"services": services[::-1]}, onto=first.configuration)
    assert second.configuration == first.configuration
    rotated = [item | {"apiKey": "sk-new-3"} if item["apiKey"] == "sk-two-2" else item for item in services]
    after = imported({"services": rotated}, onto=first.configuration)
    assert [item.provider for item in after.configuration.services] == names
    assert after.keys == {"a-v1": "sk-new-3"}


def test_merging_keeps_stored_entries_and_pruning_removes_them() -> None:
    configuration = imported(example("llm-routing.json"), example("llmservices.json")).configuration
    small = {
        "providers": [example("llm-routing.json")["providers"][1]],
        "routing": {"fresh": {"provider": "anthropic"}, "default": {"provider": "anthropic"}},
    }
    merged = imported(small, onto=configuration).configuration
    assert [item.task_type for item in merged.routes] == ["planning", "chapter_generation", "default", "fresh"]
    assert merged.default_language == "zh"
    pruned = imported(small, onto=configuration, prune=True).configuration
    assert [item.name for item in pruned.providers] == ["anthropic", "example"]
    assert [item.task_type for item in pruned.routes] == ["fresh", "default"]
    assert pruned.default_language is None
    assert pruned.services == configuration.services


@pytest.mark.parametrize(
    ("entry", "provider", "model"),
    [
        ("siliconflow/deepseek-ai/DeepSeek-V3", "siliconflow", "deepseek-ai/DeepSeek-V3"),
        ("a/b", "a/b", None),
        ("a/b/c", "a", "b/c"),
        ("a", "a", None),
    ],
)
def test_fallback_entry_is_parsed_as_provider_or_as_provider_and_model(
    entry: str, provider: str, model: str | None
) -> None:
    base = example("llm-routing.json")["providers"][0]
    value = {
        "providers": [base | {"providerName": name} for name in ("siliconflow", "a/b", "a")],
        "routing": {"default": {"provider": "siliconflow", "model": "x", "fallback": [entry]}},
    }
    configuration = imported(value).configuration
    route = configuration.routes[0]
    assert (route.candidates[1].provider, route.candidates[1].model) == (provider, model)
    assert json.loads(export_texts(configuration)[0]) == value | {
        "providers": json.loads(export_texts(configuration)[0])["providers"]
    }


def test_imported_notation_is_exported_while_its_meaning_is_unchanged() -> None:
    value = example("llm-routing.json")
    value["routing"]["default"] |= {"fallback": [{"provider": "anthropic"}], "temperature": None, "enabled": True}
    configuration = imported(value).configuration
    assert json.loads(export_texts(configuration)[0])["routing"]["default"] == value["routing"]["default"]
    snapshot = to_json(configuration)
    snapshot["routes"][2] |= {"candidates": snapshot["routes"][2]["candidates"][:1], "enabled": False}
    edited = json.loads(export_texts(from_json(snapshot))[0])["routing"]["default"]
    assert edited == {"provider": "openai", "temperature": None, "enabled": False}


@given(words)
def test_pruning_import_that_removes_a_used_service_is_rejected(name: str) -> None:
    snapshot = to_json(imported(example("llmservices.json")).configuration)
    snapshot["agents"] = [{"id": name, "name": name, "service_id": "vision-model"}]
    configuration = from_json(snapshot)
    outcome = import_values(configuration, [{"services": example("llmservices.json")["services"][:1]}], prune=True)
    assert not outcome.accepted
    assert outcome.configuration == configuration


def test_seed_export_has_one_provider_per_model_and_reports_omissions() -> None:
    value = example("llm-routing.json")
    value["providers"][0]["endpoint"] = "https://api.openai.com/v1"
    value["providers"].append(example("llm-routing.json")["providers"][0] | {"providerName": "e", "protocol": "echo"})
    value["routing"]["planning"] |= {"fallback": ["anthropic/claude-3-opus", "anthropic", "e"], "retries": 0}
    outcome = export(imported(value).configuration, FileFormat.ROUTING, Mode.SEED)
    file = json.loads(outcome.text)
    assert [item["providerName"] for item in file["providers"]] == ["openai", "anthropic", "anthropic-claude-3-opus"]
    assert file["providers"][0]["endpoint"] == "https://api.openai.com/v1/chat/completions"
    assert file["providers"][2]["apiKey"] == "${LLM_PROVIDER_ANTHROPIC_API_KEY}"
    assert file["routing"]["planning"]["fallback"] == ["anthropic-claude-3-opus", "anthropic"]
    assert outcome.left_out == (
        "Provider “e” is left out: it uses the protocol echo.",
        "Route “planning”: its retries cannot be expressed.",
    )


def test_gateway_export_uses_the_gateways_url_for_every_task_and_service() -> None:
    configuration = imported(example("llm-routing.json"), example("llmservices.json")).configuration
    routing, services = (json.loads(text) for text in export_texts(configuration, Mode.GATEWAY))
    assert [item["endpoint"] for item in routing["providers"]] == ["http://127.0.0.1:8000/v1/chat/completions"]
    assert routing["routing"]["planning"] == {"provider": "routing-admin", "model": "task:planning"}
    assert [(item["baseURL"], item["model"]) for item in services["services"]] == [
        ("http://127.0.0.1:8000/v1", name) for name in ("text-model", "vision-model", "multimodal-model")
    ]
    with pytest.raises(ValueError, match="public URL"):
        export(configuration, FileFormat.ROUTING, Mode.GATEWAY)


def test_import_does_not_require_a_variable_for_a_stored_key() -> None:
    value = example("llm-routing.json")
    value["providers"][0]["apiKey"] = "sk-first-key"
    stored = imported(value).configuration
    problems = import_files(stored, export_texts(stored)[:1], key_context=KeyContext(env={})).problems
    assert [item.field for item in problems] == ["providers[1].apiKey"]
    assert stored.providers[0].key == KeySpec(KeyKind.STORED, fingerprint=stored.providers[0].key.fingerprint)


def test_import_warns_about_an_origin_that_may_not_be_called() -> None:
    around = KeyContext(refusal=lambda endpoint: "it may not be called" if "anthropic" in endpoint else None)
    outcome = import_values(EMPTY, [example("llm-routing.json")], key_context=around)
    assert outcome.accepted
    assert [(item.field, item.severity) for item in outcome.problems] == [("providers[1].endpoint", "warning")]


def test_origin_dependent_fingerprints_match_their_keys() -> None:
    def fingerprint(key: str, endpoint: str) -> str:
        return f"{key[-1]}@{endpoint.split('/')[2]}"

    routing, services = example("llm-routing.json"), example("llmservices.json")
    routing["providers"][0]["apiKey"] = "sk-first-key-1"
    services["services"][0] |= {"baseURL": "https://api.openai.com/v1", "apiKey": "sk-first-key-1"}
    first = import_values(EMPTY, [routing, services], fingerprint_at=fingerprint)
    assert first.keys == {"openai": "sk-first-key-1"}
    assert first.configuration.services[0].provider == "openai"
    second = import_values(first.configuration, [services, routing], fingerprint_at=fingerprint)
    assert (second.configuration, second.keys) == (first.configuration, {})


@pytest.mark.parametrize("mode", [Mode.SEED, Mode.GATEWAY])
def test_disabled_default_route_stays_in_exports_for_other_programs(mode: Mode) -> None:
    """The seed and gateway exports contain a disabled `default` route, since a file without it is invalid."""
    value = example("llm-routing.json")
    value["routing"]["default"]["enabled"] = False
    routing, _ = export_texts(imported(value).configuration, mode)
    assert validate(json.loads(routing)) == []
