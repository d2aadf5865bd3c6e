"""LlmServiceRegistry loads every valid service exactly as configured, whatever else the document contains."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.services.registry import (
    LlmServiceRegistry,
    document_path,
    parse_capabilities,
    parse_direction,
    parse_service,
)
from capabilities.core.vocabulary import STANDARD_CAPABILITIES, TEXT_ONLY, Capabilities, Direction

SEED_DOCUMENT: dict[str, Any] = {
    "services": [
        {
            "id": "text-model",
            "name": "纯文本模型",
            "baseURL": "https://api.example.com/v1",
            "model": "gpt-4",
            "apiKey": "xxx",
            "capabilityTags": ["文本对话", "工具调用"],
            "capabilities": {"input": ["text"], "output": ["text", "structured_output", "tool_calling"]},
            "description": "纯文本对话模型",
        },
        {
            "id": "vision-model",
            "name": "视觉模型",
            "baseURL": "https://api.example.com/v1",
            "model": "gpt-4-vision",
            "apiKey": "xxx",
            "capabilityTags": ["视觉理解", "图像分析"],
            "capabilities": {"input": ["text", "vision"], "output": ["text", "structured_output"]},
            "description": "支持图片理解的模型",
        },
        {
            "id": "multimodal-model",
            "name": "多模态模型",
            "baseURL": "https://api.example.com/v1",
            "model": "gemini-pro",
            "apiKey": "xxx",
            "capabilityTags": ["多模态", "视觉理解", "音频理解"],
            "capabilities": {
                "input": ["text", "vision", "audio", "file"],
                "output": ["text", "structured_output", "tool_calling"],
            },
            "description": "支持多种输入类型的模型",
        },
    ]
}


def service(**changes: Any) -> dict[str, Any]:
    """Return a valid service entry without capabilities, as in older files, with `changes` applied."""
    return {
        "id": "old",
        "name": "Old",
        "baseURL": "https://api.example.com/v1",
        "model": "gpt-4",
        "apiKey": "sk-secret",
        "capabilityTags": [],
        "description": "",
    } | changes


def registry(*services: Any) -> LlmServiceRegistry:
    return LlmServiceRegistry.from_document({"services": list(services)})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
capability_names = st.sampled_from((*STANDARD_CAPABILITIES, "reasoning")) | st.text(min_size=1)
capability_lists = st.lists(capability_names, max_size=6)
near_services = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just("a") | json_values,
        "name": st.just("n") | json_values,
        "baseURL": st.just("u") | json_values,
        "model": st.just("m") | json_values,
        "apiKey": st.just("") | json_values,
        "capabilityTags": st.just([]) | json_values,
        "description": st.just("") | json_values,
        "capabilities": json_values
        | st.fixed_dictionaries(
            {}, optional={"input": json_values | capability_lists, "output": json_values | capability_lists}
        ),
    },
)


@pytest.mark.requirement("MCR-1.1", "MCR-1.3", "MCR-5.1", "MCR-5.5")
def test_requirements_example_loads_without_problems() -> None:
    loaded = LlmServiceRegistry.from_document(SEED_DOCUMENT)
    assert loaded.problems == ()
    assert [entry.id for entry in loaded] == ["text-model", "vision-model", "multimodal-model"]
    assert loaded.get_capabilities("multimodal-model") == Capabilities(
        ("text", "vision", "audio", "file"), ("text", "structured_output", "tool_calling")
    )
    first = loaded.get("text-model")
    assert first is not None
    assert (first.base_url, first.model, first.capability_tags) == (
        "https://api.example.com/v1",
        "gpt-4",
        ("文本对话", "工具调用"),
    )


@pytest.mark.requirement("MCR-1.2", "MCR-6.1", "MCR-6.2", "MCR-6.4", "MCR-P7")
@given(capability_lists, capability_lists, capability_names)
def test_service_capabilities_equal_the_configuration_without_duplicates(
    reads: list[str], writes: list[str], capability: str
) -> None:
    loaded = registry(service(capabilities={"input": reads, "output": writes}))
    assert loaded.has_capability("old", capability) == (capability in reads)
    assert loaded.has_capability("old", capability, "input") == (capability in reads)
    assert loaded.has_capability("old", capability, "output") == (capability in writes)
    assert loaded.has_capability("old", capability, "both") == (capability in reads and capability in writes)
    assert loaded.get_capabilities("old") == Capabilities(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))
    for direction in Direction:
        services = loaded.get_services_by_capability(capability, direction)
        assert bool(services) == loaded.has_capability("old", capability, direction)


@pytest.mark.requirement("MCR-1.4", "MCR-P1")
@given(
    json_values
    | st.fixed_dictionaries(
        {}, optional={"input": json_values | capability_lists, "output": json_values | capability_lists}
    )
)
def test_invalid_capabilities_count_as_text_only_with_a_warning(raw: Any) -> None:
    def valid_side(side: Any) -> bool:
        return side is None or (isinstance(side, list) and all(isinstance(name, str) and name for name in side))

    says_a_side = isinstance(raw, dict) and (not raw or "input" in raw or "output" in raw)
    valid = raw is None or (says_a_side and valid_side(raw.get("input")) and valid_side(raw.get("output")))
    capabilities, problems = parse_capabilities(raw)
    assert valid == (not problems)
    if problems:
        assert capabilities == TEXT_ONLY
        assert all(problem.severity == "warning" and problem.constraint == "type" for problem in problems)
        assert all(
            problem.field.startswith("capabilities") and problem.field in problem.message for problem in problems
        )
    elif raw:
        for side in ("input", "output"):
            given_side = raw.get(side)
            expected = ("text",) if given_side is None else tuple(dict.fromkeys(given_side))
            assert getattr(capabilities, side) == expected


@pytest.mark.requirement("MCR-1.5", "MCR-5.2", "MCR-5.3", "MCR-P6")
@pytest.mark.parametrize("absent", [{}, {"capabilities": None}, {"capabilities": {}}], ids=["absent", "null", "empty"])
def test_service_without_capabilities_loads_silently_as_text_only(
    absent: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Older files have no capabilities and must load without a log line."""
    with caplog.at_level(logging.DEBUG):
        loaded = registry(service(**absent))
    assert loaded.get_capabilities("old") == TEXT_ONLY
    assert loaded.problems == ()
    assert caplog.records == []
    entry = loaded.get("old")
    assert entry is not None
    assert not entry.declared


@pytest.mark.requirement("MCR-P6")
@given(st.text(min_size=1), st.text(min_size=1), st.text(), st.text(), st.lists(st.text()))
def test_service_from_an_older_file_keeps_every_field(
    name: str, model: str, key: str, description: str, tags: list[str]
) -> None:
    loaded = registry(
        service(id=name, name=name, model=model, apiKey=key, description=description, capabilityTags=tags)
    )
    entry = loaded.get(name)
    assert loaded.problems == ()
    assert entry is not None
    assert (entry.name, entry.model, entry.api_key, entry.description) == (name, model, key, description)
    assert entry.capability_tags == tuple(tags)
    assert loaded.has_capability(name, "text", "both")
    assert not loaded.has_capability(name, "vision")


def test_missing_capability_list_means_text_and_empty_list_stays_empty() -> None:
    assert parse_capabilities({"input": ["vision", "vision"]}) == (Capabilities(("vision",), ("text",)), [])
    assert parse_capabilities({"output": []}) == (Capabilities(("text",), ()), [])
    assert parse_capabilities({"input": None, "output": ["text"]}) == (TEXT_ONLY, [])


@pytest.mark.requirement("MCR-E1", "MCR-1.4")
@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("vision", "services[0].capabilities"),
        (["vision"], "services[0].capabilities"),
        ({"input": "vision"}, "services[0].capabilities.input"),
        ({"input": ["text", ""]}, "services[0].capabilities.input[1]"),
        ({"output": ["text", 7]}, "services[0].capabilities.output[1]"),
        ({"input": ["vision"], "output": [None]}, "services[0].capabilities.output[0]"),
        ({"inputs": ["vision"]}, "services[0].capabilities"),
    ],
)
def test_service_with_invalid_capabilities_still_loads(raw: Any, field: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        loaded = registry(service(capabilities=raw))
    assert loaded.get_capabilities("old") == TEXT_ONLY
    assert [entry.declared for entry in loaded] == [False]
    assert [(problem.field, problem.severity) for problem in loaded.problems] == [(field, "warning")]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert field in caplog.text


@pytest.mark.requirement("MCR-E2", "MCR-5.4")
def test_custom_capability_is_accepted_and_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        loaded = registry(service(capabilities={"input": ["text", "smell"]}))
    assert loaded.has_capability("old", "smell")
    assert loaded.problems == ()
    assert [(record.levelname, "smell" in record.getMessage()) for record in caplog.records] == [("DEBUG", True)]


@pytest.mark.requirement("MCR-E3")
def test_unknown_service_has_no_capabilities_and_is_logged_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    loaded = LlmServiceRegistry.from_document(SEED_DOCUMENT)
    with caplog.at_level(logging.WARNING):
        assert loaded.has_capability("no\nbody", "text") is False
        assert loaded.get_capabilities("unknown") is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert all("\n" not in record.getMessage() for record in caplog.records)


@pytest.mark.requirement("MCR-E3")
@pytest.mark.parametrize("service_id", [None, 7, ["a"], {}])
def test_invalid_service_id_is_an_unknown_service(service_id: Any) -> None:
    """An agent without a service has the service id None."""
    loaded = LlmServiceRegistry.from_document(SEED_DOCUMENT)
    assert loaded.has_capability(service_id, "text") is False
    assert loaded.get_capabilities(service_id) is None


def test_unknown_direction_has_no_capability_and_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    loaded = LlmServiceRegistry.from_document(SEED_DOCUMENT)
    with caplog.at_level(logging.WARNING):
        assert loaded.has_capability("text-model", "text", "sideways") is False
        assert loaded.get_services_by_capability("text", "sideways") == ()
    assert "sideways" in caplog.text
    assert parse_direction("both") is Direction.BOTH


def test_registry_capabilities_are_immutable() -> None:
    document = json.loads(json.dumps(SEED_DOCUMENT))
    loaded = LlmServiceRegistry.from_document(document)
    document["services"][0]["capabilities"]["input"].append("vision")
    capabilities = loaded.get_capabilities("text-model")
    assert capabilities is not None
    with pytest.raises(AttributeError):
        capabilities.input = ("vision",)  # type: ignore[misc]
    assert not loaded.has_capability("text-model", "vision")


@pytest.mark.parametrize(
    ("changes", "field", "constraint"),
    [
        ({"id": ""}, "services[0].id", "required"),
        ({"model": None}, "services[0].model", "type"),
        ({"baseURL": 7}, "services[0].baseURL", "type"),
        ({"apiKey": None}, "services[0].apiKey", "type"),
        ({"description": []}, "services[0].description", "type"),
        ({"capabilityTags": "x"}, "services[0].capabilityTags", "type"),
    ],
)
def test_invalid_service_is_skipped_and_the_others_load(changes: dict[str, Any], field: str, constraint: str) -> None:
    loaded = registry(service(**changes), service(id="good"))
    assert [entry.id for entry in loaded] == ["good"]
    assert [(problem.field, problem.constraint, problem.severity) for problem in loaded.problems] == [
        (field, constraint, "error")
    ]


@pytest.mark.parametrize("name", ["id", "name", "baseURL", "model", "apiKey", "description", "capabilityTags"])
def test_missing_required_field_is_reported_by_path(name: str) -> None:
    entry = service()
    del entry[name]
    parsed, problems = parse_service(entry, "services[3]")
    assert parsed is None
    assert [(problem.field, problem.constraint) for problem in problems] == [(f"services[3].{name}", "required")]


def test_invalid_capability_tag_is_omitted_with_a_warning() -> None:
    loaded = registry(service(capabilityTags=["视觉理解", 7]))
    entry = loaded.get("old")
    assert entry is not None
    assert entry.capability_tags == ("视觉理解",)
    assert [(problem.field, problem.severity) for problem in loaded.problems] == [
        ("services[0].capabilityTags[1]", "warning")
    ]


def test_second_service_with_the_same_id_is_reported_as_duplicate() -> None:
    loaded = registry(service(model="first"), service(model="second"))
    assert [entry.model for entry in loaded] == ["first"]
    assert [(problem.field, problem.constraint) for problem in loaded.problems] == [("services[1].id", "duplicate")]


@pytest.mark.parametrize("document", [None, [], "services", 7, {}, {"services": None}, {"services": {}}])
def test_malformed_document_loads_as_an_empty_registry_with_one_problem(document: Any) -> None:
    loaded = LlmServiceRegistry.from_document(document)
    assert len(loaded) == 0
    assert len(loaded.problems) == 1
    assert "services" in loaded.problems[0].message


def test_unknown_service_fields_are_kept() -> None:
    entry = registry(service(maxTokens=10, timeout=5)).get("old")
    assert entry is not None
    assert entry.extra == {"maxTokens": 10, "timeout": 5}


@given(
    json_values | st.fixed_dictionaries({"services": json_values | st.lists(near_services | json_values, max_size=4)})
)
def test_any_document_loads_without_raising_and_yields_only_valid_services(document: Any) -> None:
    loaded = LlmServiceRegistry.from_document(document)
    for entry in loaded:
        assert entry.id
        assert entry.model
        assert loaded.get_capabilities(entry.id) == entry.capabilities
    entries = document.get("services") if isinstance(document, dict) else None
    if not isinstance(entries, list) or len(loaded) < len(entries):
        assert any(problem.severity == "error" for problem in loaded.problems)


def test_hundred_thousand_nested_lists_do_not_raise() -> None:
    """A problem names the type of an invalid value and never its content, so the depth does not matter."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    loaded = registry(service(capabilities={"input": [nested]}), nested, service(id=nested))
    assert [problem.field for problem in loaded.problems] == [
        "services[0].capabilities.input[0]",
        "services[1]",
        "services[2].id",
    ]
    while nested:
        nested = nested.pop()


def test_keys_are_absent_from_repr_problems_and_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        loaded = registry(
            service(extra_key="sk-secret"),
            service(id="", capabilities=["sk-secret"]),
            service(capabilityTags="sk-secret"),
        )
    assert "sk-secret" not in f"{list(loaded)} {loaded.problems} {caplog.text}"


@pytest.mark.parametrize(("key", "needed"), [("sk-1", True), ("", False), ("NOT_NEEDED", False)])
def test_empty_api_key_means_that_no_key_is_needed(key: str, needed: bool) -> None:
    entry = registry(service(apiKey=key)).get("old")
    assert entry is not None
    assert entry.needs_key == needed


def test_local_services_file_takes_precedence_over_the_shared_file(tmp_path: Path) -> None:
    path = tmp_path / "llmservices.json"
    assert document_path(path) == path
    (tmp_path / "llmservices.local.json").write_text("{}")
    assert document_path(path) == tmp_path / "llmservices.local.json"
