"""JSON Schemas for structured answers: what a protocol wants changed, and the words where it has no slot for one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

JSON_ONLY = "Reply with one JSON object only, without any other words and without a code fence."


def schema_of(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The schema of OpenAI's `response_format`; None when it asks for none."""
    if not response_format or response_format.get("type") != "json_schema":
        return None
    inner = response_format.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def wants_json(response_format: Mapping[str, Any] | None) -> bool:
    """Whether the answer is to be JSON of any kind."""
    return bool(response_format) and response_format is not None and response_format.get("type") != "text"


def instruction(response_format: Mapping[str, Any] | None) -> str:
    """The words that ask for JSON in a system prompt, with the schema where there is one."""
    schema = schema_of(response_format)
    if not schema:
        return JSON_ONLY
    return f"{JSON_ONLY} It must satisfy this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"


def closed(schema: Any) -> Any:
    """The schema with `additionalProperties: false` on every object, as Anthropic demands."""
    if isinstance(schema, list | tuple):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {key: _closed_under(key, value) for key, value in schema.items()}
    kind = schema.get("type")
    is_object = kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema
    return {**inner, "additionalProperties": False} if is_object else inner


def _closed_under(key: str, value: Any) -> Any:
    """What stands under `properties` and its like are names, not keywords; examples are data."""
    if key in {"properties", "$defs", "definitions", "patternProperties"} and isinstance(value, Mapping):
        return {name: closed(item) for name, item in value.items()}
    return value if key in {"enum", "const", "default", "examples", "required"} else closed(value)
