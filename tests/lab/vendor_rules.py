"""Find what a vendor would reject in a request, apart from the rules for conversations with tools (strict_hosts.py).

Fields and types come from the vendor's SDK. Limits come from its reference (2026-11) and its error messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.protocols.dialects import CLAUDE, GEMINI, OPENAI, Dialect
from capabilities.core.protocols.schema_fit import SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMAS
from tests.lab.vendor_types import find_misfit

Body = dict[str, Any]
PLAIN_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def find_refusals(protocol: str, body: Body) -> Iterator[str]:
    """Yield a message for each reason why the vendor would reject the request."""
    if misfit_found := find_misfit(protocol, body):
        yield misfit_found
    yield from RULES[protocol](body)


def _openai(body: Body) -> Iterator[str]:
    tools = [tool["function"] for tool in body.get("tools", ()) if tool["type"] == "function"]
    called = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    yield from _names([*tools, *(call["function"] for call in called if "function" in call)], PLAIN_NAME)
    yield from _ids([*(call["id"] for call in called), *_values(body["messages"], "tool_call_id")], 40)
    yield from _too_many("tools", body.get("tools"), 128)
    yield from _too_many("stop", body.get("stop"), 4)
    yield from _tool_schemas(tools, "parameters", OPENAI.strict, OPENAI.tool)
    shape = body.get("response_format", {}).get("json_schema", {})
    yield from _schema(shape.get("schema"), OPENAI.answer if shape.get("strict") else None)


def _responses(body: Body) -> Iterator[str]:
    tools = [tool for tool in body.get("tools", ()) if tool["type"] == "function"]
    items = [item for item in body["input"] if isinstance(item, dict)]
    yield from _names([*tools, *(item for item in items if item.get("type") == "function_call")], PLAIN_NAME)
    yield from _ids(_values(items, "call_id"), 64)
    yield from _too_many("tools", body.get("tools"), 128)
    yield from _tool_schemas(tools, "parameters", OPENAI.strict, OPENAI.tool)
    shape = body.get("text", {}).get("format", {})
    yield from _schema(shape.get("schema"), OPENAI.answer if shape.get("strict") else None)


def _anthropic(body: Body) -> Iterator[str]:
    tools = [tool for tool in body.get("tools", ()) if "input_schema" in tool]
    blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
    nested = [part for block in blocks if block["type"] == "tool_result" for part in _blocks(block.get("content"))]
    yield from _names([*tools, *(block for block in blocks if block["type"] == "tool_use")], PLAIN_NAME)
    yield from _ids([*_values(blocks, "tool_use_id"), *_values(_of_type(blocks, "tool_use"), "id")], 64)
    yield from _too_many("cache_control", [item for item in (*tools, *blocks) if "cache_control" in item], 4)
    yield from _tool_schemas(tools, "input_schema", CLAUDE.strict, CLAUDE.tool)
    yield from _schema(body.get("output_config", {}).get("format", {}).get("schema"), CLAUDE.answer)
    for block in (*_of_type(blocks, "text"), *_of_type(nested, "text"), *_blocks(body.get("system"))):
        if not block["text"].strip():
            yield "messages: text content blocks must contain non-whitespace text"
    for block in (*_of_type(blocks, "image"), *_of_type(nested, "image")):
        if block["source"]["type"] == "base64" and block["source"]["media_type"] not in IMAGES:
            yield f"messages: media_type {block['source']['media_type']!r} is no image type"
    yield from (
        "stop_sequences: each stop sequence must contain non-whitespace"
        for sequence in body.get("stop_sequences", ())
        if not sequence.strip()
    )
    thinking = body.get("thinking", {})
    if thinking.get("type") == "enabled":
        if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
            yield "`max_tokens` must be greater than `thinking.budget_tokens`"
        if body.get("tool_choice", {}).get("type") in ("any", "tool"):
            yield "Thinking may not be enabled when tool_choice forces tool use."
        if body.get("temperature", 1) != 1:
            yield "`temperature` may only be set to 1 when thinking is enabled."


def _gemini(body: Body) -> Iterator[str]:
    tools = [declaration for tool in body.get("tools", ()) for declaration in tool.get("functionDeclarations", ())]
    calls = [
        part["functionCall"] for content in body["contents"] for part in content["parts"] if "functionCall" in part
    ]
    yield from _names([*tools, *calls], GEMINI_NAME)
    config = body.get("generationConfig", {})
    yield from _too_many("stopSequences", config.get("stopSequences"), 5)
    yield from _tool_schemas(tools, "parametersJsonSchema", GEMINI.strict, GEMINI.tool)
    yield from _schema(config.get("responseJsonSchema"), GEMINI.answer)
    previous_role = "model"
    for content in body["contents"]:
        if not content["parts"]:
            yield "contents.parts must not be empty"
        if content["role"] == previous_role:
            yield "ensure that multiturn requests alternate between user and model"
        previous_role = content["role"]


RULES: Mapping[str, Callable[[Body], Iterator[str]]] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def _blocks(content: Any) -> list[Body]:
    return content if isinstance(content, list) else []


def _of_type(blocks: Iterable[Body], kind: str) -> list[Body]:
    return [block for block in blocks if block["type"] == kind]


def _values(items: Iterable[Body], name: str) -> list[str]:
    return [item[name] for item in items if name in item]


def _names(items: Iterable[Body], pattern: re.Pattern[str]) -> Iterator[str]:
    yield from (
        f"name: {item['name']!r} does not match {pattern.pattern}"
        for item in items
        if not pattern.fullmatch(item["name"])
    )


def _ids(ids: Iterable[str], limit: int) -> Iterator[str]:
    yield from (f"id {value!r}: string too long, at most {limit}" for value in ids if not 0 < len(value) <= limit)


def _too_many(name: str, values: Any, limit: int) -> Iterator[str]:
    if isinstance(values, list) and len(values) > limit:
        yield f"{name}: array too long, at most {limit} items"


def _tool_schemas(tools: Iterable[Body], key: str, strict: Dialect | None, default: Dialect) -> Iterator[str]:
    for tool in tools:
        yield from _schema(tool.get(key), strict if tool.get("strict") else default)


def _schema(schema: Any, dialect: Dialect | None) -> Iterator[str]:
    if schema is None or dialect is None:
        return
    if dialect.object_root and (
        schema.get("type") != "object" or {"anyOf", "oneOf", "allOf", "enum", "not"} & set(schema)
    ):
        yield "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf' at the top level"
    for part in _schemas_in(schema):
        if dialect.keywords is not None and (unknown := set(part) - dialect.keywords):
            yield f"schema: {min(unknown)} is not permitted"
        if dialect.lone_ref and "$ref" in part and set(part) - {"$ref", "$defs", "definitions"}:
            yield "schema: $ref cannot have keywords beside it"
        if dialect.formats is not None and part.get("format", "date") not in dialect.formats:
            yield f"schema: {part['format']!r} is not a valid format"
        if dialect.least_items is not None and part.get("minItems", 0) not in dialect.least_items:
            yield "schema: minItems other than 0 or 1 is not supported"
        if dialect.closed and "properties" in part and part.get("additionalProperties") is not False:
            yield "schema: 'additionalProperties' must be explicitly set to false"
        if dialect.all_required and set(part.get("properties", ())) - set(part.get("required", ())):
            yield "schema: 'required' is required to include every key in properties"


def _schemas_in(schema: Any) -> Iterator[Body]:
    if isinstance(schema, list):
        for item in schema:
            yield from _schemas_in(item)
    elif isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key in SCHEMA_MAPS and isinstance(value, dict):
                yield from _schemas_in(list(value.values()))
            elif key in SINGLE_SCHEMAS or key in SCHEMA_LISTS:
                yield from _schemas_in(value)
