"""ConfigLoader parses a routing file or reports every problem in it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.configuration.specs import EMPTY
from routing_admin.core.documents.problem_sentences import InvalidConfigurationError, errors
from routing_admin.core.files.importing import import_values
from routing_admin.core.seeds.config_loader import ConfigLoader, RoutingConfig
from tests.configuration.config_strategies import json_values, routing_files, unknown_fields, words

EXAMPLE = Path(__file__).parent / "examples" / "llm-routing.json"
REQUIRED = ("providerName", "apiKey", "endpoint", "defaultModel")


def parse_value(value: Any) -> RoutingConfig:
    return ConfigLoader.parse(json.dumps(value))


def example() -> dict[str, Any]:
    value: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return value


def validation_errors(value: Any) -> set[tuple[str, str]]:
    return {(problem.field, problem.constraint) for problem in ConfigLoader.validate(value)}


@pytest.mark.requirement("MMR-P1")
@given(routing_files())
def test_serialized_configuration_parses_back_to_itself(value: dict[str, Any]) -> None:
    config = parse_value(value)
    assert ConfigLoader.parse(ConfigLoader.serialize(config)) == config


@pytest.mark.requirement("MMR-P2")
@given(routing_files(), unknown_fields, st.data())
def test_unknown_fields_do_not_change_the_parsed_value(
    value: dict[str, Any], unknown: dict[str, Any], data: st.DataObject
) -> None:
    extended = copy.deepcopy(value)
    objects = [extended, *extended["providers"], *extended["routing"].values()]
    chosen = data.draw(st.sampled_from(objects))
    chosen.update({key: item for key, item in unknown.items() if key not in chosen})
    assert parse_value(extended) == parse_value(value)


@pytest.mark.requirement("MMR-P3")
@given(routing_files(with_own_fields=False), st.data())
def test_missing_required_field_is_reported_by_name(value: dict[str, Any], data: st.DataObject) -> None:
    route = data.draw(st.sampled_from(sorted(value["routing"])))
    index = data.draw(st.integers(0, len(value["providers"]) - 1))
    broken = copy.deepcopy(value)
    entry, field = data.draw(
        st.sampled_from(
            [(broken, "providers"), (broken, "routing"), (broken["routing"], "default")]
            + [(broken["routing"][route], "provider")]
            + [(broken["providers"][index], name) for name in REQUIRED]
        )
    )
    del entry[field]
    problems = [item for item in ConfigLoader.validate(broken) if item.constraint == "required"]
    assert any(item.field.endswith(field) and field in item.message for item in problems if item.severity == "error")
    with pytest.raises(InvalidConfigurationError, match=field):
        parse_value(broken)


@pytest.mark.requirement("MMR-P4")
@given(routing_files(with_own_fields=False), words, st.data())
def test_route_to_an_unknown_provider_is_an_error(value: dict[str, Any], name: str, data: st.DataObject) -> None:
    unknown = f"missing-{name}".replace("/", "-")
    route = value["routing"][data.draw(st.sampled_from(sorted(value["routing"])))]
    if data.draw(st.booleans()):
        route["provider"] = unknown
    else:
        route["fallback"] = [*route.get("fallback", []), unknown]
    problems = [problem for problem in ConfigLoader.validate(value) if problem.constraint == "reference"]
    assert len(problems) == 1
    assert unknown in problems[0].message
    assert problems[0].severity == "error"


@given(
    json_values
    | st.builds(lambda providers, routing: {"providers": providers, "routing": routing}, json_values, json_values)
)
def test_any_json_value_is_validated_without_an_exception(value: Any) -> None:
    constraints = {"required", "type", "reference", "enum", "duplicate", "range"}
    problems = ConfigLoader.validate(value)
    assert {problem.constraint for problem in problems} <= constraints
    assert import_values(EMPTY, [value]).configuration is not None


@given(routing_files(with_own_fields=False), json_values, st.data())
def test_any_value_at_any_path_is_validated_without_an_exception(value: Any, junk: Any, data: st.DataObject) -> None:
    objects = [value, value["routing"], *value["providers"], *value["routing"].values()]
    chosen = data.draw(st.sampled_from(objects))
    chosen[data.draw(st.sampled_from(sorted(chosen)))] = junk
    outcome = import_values(EMPTY, [value])
    assert outcome.accepted or outcome.configuration == EMPTY


@pytest.mark.requirement("MMR-E3")
def test_invalid_file_raises_one_error_with_every_problem(tmp_path: Path) -> None:
    value = example()
    del value["providers"][0]["endpoint"]
    value["routing"]["planning"]["temperature"] = 3
    value["routing"]["a.b"] = {"provider": "unknown"}
    value["defaultLanguage"] = None
    path = tmp_path / "llm-routing.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(InvalidConfigurationError) as caught:
        ConfigLoader.load(path)
    assert [problem.field for problem in caught.value.problems] == [
        "providers[0].endpoint",
        "routing.planning.temperature",
        'routing["a.b"].provider',
        "defaultLanguage",
    ]
    assert all(problem.field in str(caught.value) for problem in caught.value.problems)


@pytest.mark.requirement("MMR-E2")
def test_missing_configuration_file_yields_none(tmp_path: Path) -> None:
    """Without a file, the environment can be used instead."""
    assert ConfigLoader.load(tmp_path / "llm-routing.json") is None
    config = ConfigLoader.load(EXAMPLE)
    assert config is not None
    assert [item.provider_name for item in config.providers] == ["openai", "anthropic"]
    assert config.routing["planning"].fallback == ("anthropic",)
    assert config.default_language == "zh"


@pytest.mark.requirement("MMR-E1")
def test_nonempty_environment_variable_overrides_the_provider_key() -> None:
    config = ConfigLoader.load(EXAMPLE)
    assert config is not None
    env = {"LLM_PROVIDER_OPENAI_API_KEY": "sk-from-env", "LLM_PROVIDER_ANTHROPIC_API_KEY": ""}
    keys = [item.api_key for item in ConfigLoader.apply_env_overrides(config, env).providers]
    assert keys == ["sk-from-env", "${LLM_PROVIDER_ANTHROPIC_API_KEY}"]


@pytest.mark.parametrize(
    ("change", "field", "constraint"),
    [
        ({"temperature": "hot"}, "routing.planning.temperature", "type"),
        ({"temperature": True}, "routing.planning.temperature", "type"),
        ({"temperature": 2.1}, "routing.planning.temperature", "range"),
        ({"maxTokens": 0}, "routing.planning.maxTokens", "range"),
        ({"maxTokens": 0.5}, "routing.planning.maxTokens", "type"),
        ({"provider": None}, "routing.planning.provider", "type"),
        ({"fallback": "anthropic"}, "routing.planning.fallback", "type"),
        ({"fallback": ["anthropic", 1]}, "routing.planning.fallback[1]", "type"),
        ({"fallback": ["anthropic", "qwen2"]}, "routing.planning.fallback[1]", "reference"),
        ({"fallback": [{"provider": "qwen2"}]}, "routing.planning.fallback[0].provider", "reference"),
        ({"fallback": ["anthropic", "anthropic"]}, "routing.planning.fallback[1]", "duplicate"),
        ({"onError": "brave"}, "routing.planning.onError", "enum"),
        ({"retries": -1}, "routing.planning.retries", "range"),
        ({"deadline": 0}, "routing.planning.deadline", "range"),
    ],
)
def test_invalid_route_field_is_reported_with_path_and_constraint(
    change: dict[str, Any], field: str, constraint: str
) -> None:
    value = example()
    value["routing"]["planning"].update(change)
    assert validation_errors(value) == {(field, constraint)}


@pytest.mark.parametrize(
    ("change", "field", "constraint"),
    [
        ({"apiKey": None}, "providers[1].apiKey", "type"),
        ({"apiKey": "密钥"}, "providers[1].apiKey", "type"),
        ({"apiKey": "sk-abc\n"}, "providers[1].apiKey", "type"),
        ({"apiKey": "Bearer ${LLM_PROVIDER_OPENAI_API_KEY}"}, "providers[1].apiKey", "type"),
        ({"apiKey": "${DATABASE_URL}"}, "providers[1].apiKey", "enum"),
        ({"apiKey": "sk-xxx"}, "providers[1].apiKey", "required"),
        ({"endpoint": "localhost:8000"}, "providers[1].endpoint", "type"),
        ({"endpoint": "https://me:secret@host/v1"}, "providers[1].endpoint", "type"),
        ({"endpoint": "http://["}, "providers[1].endpoint", "type"),
        ({"providerName": "openai"}, "providers[1].providerName", "duplicate"),
        ({"protocol": "smtp"}, "providers[1].protocol", "enum"),
    ],
)
def test_invalid_provider_field_is_reported_without_the_key(
    change: dict[str, Any], field: str, constraint: str
) -> None:
    value = example()
    value["providers"][1].update(change)
    for route in value["routing"].values():
        route.update(provider="openai", fallback=[])
    assert validation_errors(value) == {(field, constraint)}
    key = change.get("apiKey")
    assert not (key and "$" not in key and any(key in item.message for item in ConfigLoader.validate(value)))


@pytest.mark.parametrize("severity", ["warning"])
def test_duplicates_similar_names_and_placeholders_are_only_warnings(severity: str) -> None:
    value = example()
    value["providers"] += [{**value["providers"][0], "providerName": "OpenAI", "apiKey": "xxx"}]
    value["providers"] += [{**value["providers"][0], "providerName": "深度", "apiKey": "NOT_NEEDED"}]
    value["routing"]["planning"]["fallback"] = ["anthropic", "anthropic"]
    problems = ConfigLoader.validate(value)
    assert {problem.severity for problem in problems} == {severity}
    assert {problem.field for problem in problems} == {
        "providers[2].apiKey",
        "providers[2].providerName",
        "providers[3].providerName",
        "routing.planning.fallback[1]",
    }
    assert import_values(EMPTY, [value]).accepted


@pytest.mark.parametrize(
    ("data", "words_in_it"),
    [
        (b'{"providers": [],\n  "routing": }', "line 2, column 14"),
        ('{"providers": []}'.encode("utf-16"), "UTF-16"),
        ('{"providers": []}'.encode("utf-16-le"), "UTF-16"),
        ('{"note": "规划路由配置"}'.encode("gb18030"), "GB18030"),
        (b'{"providers": NaN}', "NaN"),
        (b"[" * 5000 + b"]" * 5000, "levels deep"),
        (b"", "line 1"),
    ],
)
def test_invalid_json_error_names_the_position_encoding_or_depth(data: bytes, words_in_it: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=words_in_it) as caught:
        ConfigLoader.parse(data)
    assert len(caught.value.problems) == 1


def test_byte_order_mark_is_accepted() -> None:
    assert ConfigLoader.parse(b"\xef\xbb\xbf" + EXAMPLE.read_bytes()) == ConfigLoader.load(EXAMPLE)


def test_duplicate_json_field_is_an_error() -> None:
    """A repeated field's value is ambiguous."""
    text = EXAMPLE.read_text(encoding="utf-8").replace('"temperature": 0.8', '"temperature": 0.1, "temperature": 0.8')
    with pytest.raises(InvalidConfigurationError) as caught:
        ConfigLoader.parse(text)
    assert [(item.field, item.constraint) for item in caught.value.problems] == [
        ("routing.planning.temperature", "duplicate")
    ]
    assert errors(caught.value.problems)


def test_provider_repr_contains_no_key() -> None:
    """The provider's `repr` may be logged."""
    value = example()
    value["providers"][0]["apiKey"] = "sk-very-secret-indeed"
    assert "very-secret" not in repr(parse_value(value))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"404": "next", "5xx": "retry", "http_429_quota": "raise", "preset": "strict", "fallbackOn": ["quota"]}, []),
        ({"404": "nxt"}, [('["404"]', "enum", "error")]),
        ({"preset": "seedy"}, [(".preset", "enum", "error")]),
        ({"fallbackOn": "quota"}, [(".fallbackOn", "type", "error")]),
        ({"no_such_error": "next"}, [(".no_such_error", "enum", "warning")]),
        ({"fallbackOn": ["no_such_error"]}, [(".fallbackOn", "enum", "warning")]),
    ],
)
def test_unknown_action_in_an_error_table_is_an_error(
    table: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    """An unknown fault in an error table only causes a warning, because it has no effect."""
    value = example()
    value["routing"]["default"]["onError"] = table
    path = "routing.default.onError"
    problems = ConfigLoader.validate(value)
    assert [(item.field, item.constraint, item.severity) for item in problems] == [
        (path + field, constraint, severity) for field, constraint, severity in expected
    ]


def test_invalid_option_is_an_error_and_a_misspelled_option_a_warning() -> None:
    """A misspelled option has no effect."""
    value = example()
    value["providers"][0] |= {"quirks": {"sistem_role": "developer"}, "timeouts": {"conect": 5}}
    value["providers"][1] |= {"quirks": {"system_role": "boss"}, "timeouts": {"connect": 0}}
    assert [(item.field, item.constraint, item.severity) for item in ConfigLoader.validate(value)] == [
        ("providers[0].quirks.sistem_role", "enum", "warning"),
        ("providers[0].timeouts.conect", "enum", "warning"),
        ("providers[1].quirks.system_role", "enum", "error"),
        ("providers[1].timeouts.connect", "range", "error"),
    ]


@pytest.mark.parametrize("name", ["", "  "])
def test_empty_task_type_is_an_error(name: str) -> None:
    """No request could select an unnamed task type."""
    value = example()
    value["routing"][name] = {"provider": "openai"}
    (problem,) = ConfigLoader.validate(value)
    assert (problem.field, problem.constraint) == (f'routing["{name}"]', "required")
