"""JSON Schemas are translated to the subset that each vendor supports.

Unsupported constraints are moved into descriptions and reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest, Message, Role, TextPart, Tool
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.dialects import (
    CLAUDE_ENFORCED,
    CLAUDE_TOOL,
    CLAUDE_TOOL_ENFORCED,
    GEMINI_ANSWER,
    GEMINI_TOOL,
    OPENAI_PLAIN,
    OPENAI_STRICT,
    Dialect,
)
from capabilities.core.protocols.schema_fit import (
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SINGLE_SCHEMAS,
    UnfitSchemaError,
    fit_schema,
    phrase,
)
from capabilities.core.wire import Target, UpstreamRequest

ALL = {
    "claude": CLAUDE_ENFORCED,
    "claude tool": CLAUDE_TOOL,
    "claude strict tool": CLAUDE_TOOL_ENFORCED,
    "openai strict": OPENAI_STRICT,
    "openai": OPENAI_PLAIN,
    "gemini": GEMINI_ANSWER,
    "gemini tool": GEMINI_TOOL,
}
CLOSED = {"additionalProperties": False}


def object_schema(required: bool = True, **properties: Any) -> dict[str, Any]:
    needed = {"required": list(properties)} if required else {}
    return {"type": "object", "properties": properties, **needed, **CLOSED}


NODE = {**object_schema(next={"$ref": "#/$defs/Node"}, required=False)}
CYCLE = {**object_schema(head={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}}
RING = {**CYCLE, "$defs": {"Node": {**NODE, "required": ["next"]}}}
"""A schema with a required property that refers to the schema itself."""
EITHER: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
EITHER |= {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}


@pytest.mark.parametrize(
    ("dialect", "schema", "expected", "lost_keyword"),
    [
        (
            CLAUDE_ENFORCED,
            {"type": "integer", "minimum": 1},
            {"type": "integer", "description": "(minimum 1)"},
            "minimum",
        ),
        (
            CLAUDE_ENFORCED,
            {"type": "array", "items": {"type": "string"}, "maxItems": 5, "minItems": 1, "description": "Tags."},
            {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "Tags.\n\n(at most 5 items)",
            },
            "maxItems",
        ),
        (CLAUDE_ENFORCED, {"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}, ""),
        (
            CLAUDE_ENFORCED,
            {"type": "string", "format": "phone"},
            {"type": "string", "description": "(in the format phone)"},
            "format",
        ),
        (CLAUDE_ENFORCED, {"oneOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}, ""),
        (
            OPENAI_STRICT,
            object_schema(n={"type": "integer", "minimum": 1}),
            object_schema(n={"type": "integer", "minimum": 1}),
            "",
        ),
        (
            OPENAI_STRICT,
            object_schema(s={"type": "string", "minLength": 2}),
            object_schema(s={"type": "string", "description": "(at least 2 characters)"}),
            "properties.s.minLength",
        ),
        (GEMINI_ANSWER, {"const": "x", "type": "string"}, {"type": "string", "enum": ["x"]}, ""),
        (
            GEMINI_ANSWER,
            {"type": "string", "pattern": "^a"},
            {"type": "string", "description": "(matching the regular expression ^a)"},
            "pattern",
        ),
        (GEMINI_TOOL, {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^a"}, ""),
        (
            CLAUDE_TOOL,
            EITHER,
            {
                "type": "object",
                "properties": EITHER["properties"],
                "description": "(one of these sets of properties: a | b)",
            },
            "anyOf",
        ),
        (
            OPENAI_PLAIN,
            EITHER,
            {
                "type": "object",
                "properties": EITHER["properties"],
                "description": "(one of these sets of properties: a | b)",
            },
            "anyOf",
        ),
        (OPENAI_PLAIN, {"type": "object", "minProperties": 1}, {"type": "object", "minProperties": 1}, ""),
        (OPENAI_STRICT, RING, RING, ""),
        (GEMINI_ANSWER, CYCLE, CYCLE, ""),
    ],
)
def test_unsupported_schema_keywords_move_to_the_description(
    dialect: Dialect, schema: dict[str, Any], expected: dict[str, Any], lost_keyword: str
) -> None:
    """Unsupported keywords are reported with their paths. A schema that needs no change is returned as the same
    object.
    """
    fitted, paths = fit_schema(schema, dialect, "s")
    assert fitted == expected
    assert paths == ((f"s.{lost_keyword}",) if lost_keyword else ())
    assert list(fitted) == list(expected) or schema != expected
    assert fitted is schema or schema != expected


@pytest.mark.parametrize("dialect", [CLAUDE_ENFORCED, OPENAI_STRICT, GEMINI_ANSWER, GEMINI_TOOL])
def test_reference_with_a_description_is_replaced_by_its_definition(dialect: Dialect) -> None:
    """A reference without other keywords is kept.

    A reference with a description, as pydantic writes it, is replaced with its definition.
    """
    defs = {"City": object_schema(name={"type": "string"})}
    schema = {
        **object_schema(a={"$ref": "#/$defs/City"}, b={"$ref": "#/$defs/City", "description": "Home."}),
        "$defs": defs,
    }
    fitted, lost_paths = fit_schema(schema, dialect)
    assert fitted["properties"]["a"] == {"$ref": "#/$defs/City"}
    assert fitted["properties"]["b"] == {**defs["City"], "description": "Home."}
    assert lost_paths == ()


def test_recursive_reference_keeps_its_description() -> None:
    """A recursive reference cannot be replaced by its definition, so it is moved into an `anyOf` next to the
    description.
    """
    node = object_schema(required=False, next={"$ref": "#/$defs/Node", "description": "The next."})
    fitted, lost_paths = fit_schema(
        {**object_schema(head={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}, GEMINI_ANSWER
    )
    inner = fitted["$defs"]["Node"]["properties"]["next"]
    assert inner["description"] == "The next."
    assert inner["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/Node"}], "description": "The next."}
    assert lost_paths == ()


def test_object_schemas_in_all_of_are_merged() -> None:
    schema = {
        "allOf": [object_schema(a={"type": "string"}), {"$ref": "#/$defs/B"}],
        "$defs": {"B": object_schema(b={"type": "null"})},
    }
    fitted, lost_paths = fit_schema(schema, GEMINI_ANSWER)
    assert set(fitted["properties"]) == {"a", "b"} == set(fitted["required"])
    assert "allOf" not in fitted
    assert lost_paths == ()


@pytest.mark.parametrize(
    ("dialect", "schema"),
    [
        (CLAUDE_ENFORCED, CYCLE),
        (CLAUDE_ENFORCED, {"type": "object", "additionalProperties": {"type": "string"}}),
        (CLAUDE_ENFORCED, {"$ref": "https://example.com/a.json"}),
        (GEMINI_ANSWER, RING),
        (OPENAI_STRICT, object_schema(required=False, a={"type": "string"})),
        (OPENAI_STRICT, EITHER),
        (OPENAI_STRICT, object_schema(a={})),
        (OPENAI_STRICT, {"type": "object", "additionalProperties": True}),
        (OPENAI_PLAIN, {"$ref": {"type": "object"}}),
        (OPENAI_PLAIN, {"allOf": [EITHER, {"oneOf": [EITHER], "type": "object"}]}),
    ],
)
def test_schema_that_does_not_fit_a_dialect_raises_an_error(dialect: Dialect, schema: Any) -> None:
    """`fit_schema` raises an error, so that its caller can leave the schema out."""
    with pytest.raises(UnfitSchemaError):
        fit_schema(schema, dialect)


def test_exponentially_growing_references_raise_an_error() -> None:
    """Thirty definitions that each refer to the next one twice would expand to a billion schemas."""
    step = {number: {"$ref": f"#/$defs/d{number + 1}", "title": "x"} for number in range(30)}
    defs: dict[str, Any] = {f"d{number}": object_schema(a=reference, b=reference) for number, reference in step.items()}
    defs["d30"] = {"type": "string"}
    with pytest.raises(UnfitSchemaError):
        fit_schema({**object_schema(a={"$ref": "#/$defs/d0", "title": "a"}), "$defs": defs}, OPENAI_STRICT)


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3)
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "array", "object", ["object", "null"]]),
        "description": st.just("Words."),
        "minimum": st.integers(0, 9),
        "exclusiveMaximum": st.integers(0, 9),
        "minLength": st.integers(0, 9),
        "minItems": st.integers(0, 3),
        "uniqueItems": st.just(True),
        "format": st.sampled_from(["email", "phone"]),
        "pattern": st.sampled_from(["^a", "(?=a)b"]),
        "const": SCALARS,
        "enum": st.lists(SCALARS | st.just([1]), min_size=1, max_size=2),
        "default": SCALARS,
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/definitions/b", "#/nowhere", "http://x"]) | SCALARS,
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True) | SCALARS,
        "additionalProperties": st.booleans(),
    },
)


def _containing_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    schemas_by_name = st.dictionaries(st.sampled_from(["a", "b", "minimum"]), inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    nested = st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("properties", "$defs", "definitions", "patternProperties"), schemas_by_name),
            **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), several | SCALARS),
            **dict.fromkeys(("items", "not", "additionalProperties"), inner),
        },
    )
    return st.builds(lambda bounds, keywords: {**bounds, **keywords}, BOUNDS, nested)


SCHEMAS = st.recursive(BOUNDS, _containing_schemas, max_leaves=6)


def schemas_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, list):
        for item in schema:
            yield from schemas_in(item)
    if not isinstance(schema, dict):
        return
    yield schema
    for key, value in schema.items():
        if key in SCHEMA_MAPS and isinstance(value, dict):
            for item in value.values():
                yield from schemas_in(item)
        elif key in SINGLE_SCHEMAS or key in SCHEMA_LISTS:
            yield from schemas_in(value)


@pytest.mark.parametrize("dialect", ALL.values(), ids=list(ALL))
@given(schema=SCHEMAS)
def test_any_fitted_schema_uses_only_keywords_of_the_dialect(dialect: Dialect, schema: dict[str, Any]) -> None:
    before = json.dumps(schema)
    try:
        fitted, lost_paths = fit_schema(schema, dialect)
    except UnfitSchemaError:
        return
    assert json.dumps(schema) == before
    assert json.dumps(fit_schema(schema, dialect)[0]) == json.dumps(fitted)
    assert fit_schema(fitted, dialect)[0] == fitted
    for part in schemas_in(fitted):
        assert dialect.keywords is None or set(part) <= dialect.keywords
    descriptions = json.dumps([part.get("description") for part in schemas_in(fitted)], ensure_ascii=False)
    for key in {path.rpartition(".")[2] for path in lost_paths} - {"anyOf", "oneOf", "allOf", "additionalProperties"}:
        assert phrase(key, "§").partition("§")[0] in descriptions


def encode(
    protocol: str, endpoint: str = "https://api.openai.com/v1", quirks: dict[str, Any] | None = None, **chat: Any
) -> UpstreamRequest:
    messages = (Message(Role.USER, (TextPart("hi"),)),)
    target = Target("p", endpoint, "m", "k", quirks=quirks or {})
    return PROTOCOLS[protocol].encode(ChatRequest(messages, **chat), target, stream=False)


def schema_format(schema: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **fields}}


LIMITED = object_schema(n={"type": "integer", "minLength": 1, "pattern": "(?=a)"})
FORMAT_PATH = "response_format.json_schema"


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini"])
def test_moved_keywords_of_response_schemas_and_strict_tools_are_reported(protocol: str) -> None:
    tool = Tool("look", "", LIMITED, strict=True)
    request = encode(protocol, response_format=schema_format(LIMITED, strict=True))
    assert f"{FORMAT_PATH}.schema.properties.n.minLength" in request.dropped_params
    assert "at least 1 characters" in json.dumps(request.elide())
    dropped = encode(protocol, tools=(tool,)).dropped_params
    assert ("tools[0].function.parameters.properties.n.minLength" in dropped) is (protocol != "gemini")


@pytest.mark.parametrize("protocol", ["openai", "openai-responses"])
def test_schema_is_unchanged_for_other_hosts_and_non_strict_tools(protocol: str) -> None:
    for request in (
        encode(protocol, "https://llm.example/v1", response_format=schema_format(LIMITED, strict=True)),
        encode(protocol, response_format=schema_format(LIMITED)),
        encode(protocol, tools=(Tool("look", "", LIMITED),)),
    ):
        assert request.dropped_params == ()
        assert '"minLength": 1' in json.dumps(request.elide())


@pytest.mark.parametrize("protocol", ["openai", "openai-responses"])
def test_schema_that_does_not_fit_strict_mode_is_sent_without_strict(protocol: str) -> None:
    """Strict mode requires all properties, so `strict` is dropped to keep optional properties optional."""
    loose = object_schema(required=False, a={"type": "string", "minLength": 1})
    tool = Tool("look", "", loose, strict=True)
    request = encode(protocol, response_format=schema_format(loose, strict=True), tools=(tool,))
    assert request.dropped_params == ("tools[0].function.strict", f"{FORMAT_PATH}.strict")
    assert '"strict": true' not in json.dumps(request.elide())
    assert json.dumps(request.elide()).count('"minLength": 1') == 2


@pytest.mark.parametrize("protocol", ["anthropic", "gemini"])
def test_schema_that_does_not_fit_the_vendor_is_put_in_the_prompt(protocol: str) -> None:
    request = encode(protocol, response_format=schema_format(RING))
    sent = json.dumps(request.elide())
    assert request.dropped_params == (f"{FORMAT_PATH}.strict",)
    assert "It must satisfy this JSON Schema" in sent
    assert "output_config" not in sent
    assert "responseJsonSchema" not in sent
    assert ("application/json" in sent) is (protocol == "gemini")


@pytest.mark.parametrize("structured", ["json_object", "prompt"])
@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini"])
def test_schema_in_the_prompt_is_unchanged(protocol: str, structured: str) -> None:
    request = encode(protocol, quirks={"structured": structured}, response_format=schema_format(LIMITED, strict=True))
    assert request.dropped_params == ()
    assert json.dumps(json.dumps(LIMITED))[1:-1] in json.dumps(request.elide())


def test_gemini_schema_with_tools_is_put_in_the_prompt_unchanged() -> None:
    """Gemini has no field for a schema if there are tools, so the unchanged schema is added to the prompt."""
    request = encode("gemini", response_format=schema_format(LIMITED), tools=(Tool("look", "", LIMITED),))
    assert request.dropped_params == ()
    assert json.dumps(json.dumps(LIMITED))[1:-1] in json.dumps(request.elide())
