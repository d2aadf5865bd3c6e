"""Fit the JSON Schemas of answers and tools to a vendor's dialect, or put them into the prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.message import ChatRequest, Tool
from capabilities.core.protocols.dialects import Dialect, Dialects
from capabilities.core.protocols.schema_fit import Dropped, Schema, UnfitSchemaError, fit_schema

# The option for hosts that receive the schema in the prompt. It is also used if the dialect cannot express the schema.
SCHEMA_IN_PROMPT = {"structured": "json_object"}
JSON_ONLY = "Reply with one JSON object only, without any other words and without a code fence."


def find_schema(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the JSON Schema in OpenAI's `response_format`, or None if its type is not `json_schema`."""
    if not response_format or response_format.get("type") != "json_schema":
        return None
    inner = response_format.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def wants_json(response_format: Mapping[str, Any] | None) -> bool:
    return bool(response_format) and response_format is not None and response_format.get("type") != "text"


def instruction(response_format: Mapping[str, Any] | None) -> str:
    schema = find_schema(response_format)
    if not schema:
        return JSON_ONLY
    return f"{JSON_ONLY} It must satisfy this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"


def fit_request(chat: ChatRequest, dialects: Dialects, *, has_field: bool) -> tuple[ChatRequest, Dropped, bool]:
    """Fit the schemas in a request to a vendor's dialects.

    Return the request, the paths of the parts moved into descriptions, and whether the answer's schema fits.
    `has_field` means that the provider has a field for the answer's schema. Otherwise, this schema is part of the
    prompt and stays unchanged.
    """
    if not chat.tools and chat.response_format is None:
        return chat, (), True
    dropped: list[str] = []
    tools = tuple(_fit_tool(tool, f"tools[{at}].function", dialects, dropped) for at, tool in enumerate(chat.tools))
    shape, fits = _fit_answer(chat.response_format, dialects, dropped) if has_field else (chat.response_format, True)
    if (
        any(fitted is not original for fitted, original in zip(tools, chat.tools, strict=True))
        or shape is not chat.response_format
    ):
        chat = replace(chat, tools=tools, response_format=shape)
    return chat, tuple(dropped), fits


def _fit_tool(tool: Tool, path: str, dialects: Dialects, dropped: list[str]) -> Tool:
    if tool.custom is not None or not tool.parameters:
        return tool
    strict = tool.strict
    if strict and dialects.strict:
        try:
            fitted, dropped_paths = fit_schema(tool.parameters, dialects.strict, f"{path}.parameters")
        except UnfitSchemaError:
            dropped.append(f"{path}.strict")
            strict = False
    if not (strict and dialects.strict):
        fitted, dropped_paths = _fit_loosely(tool.parameters, dialects.tool, f"{path}.parameters")
    dropped += dropped_paths
    is_changed = fitted is not tool.parameters or strict is not tool.strict
    return replace(tool, parameters=fitted, strict=strict) if is_changed else tool


def _fit_loosely(schema: Schema, dialect: Dialect, path: str) -> tuple[Schema, Dropped]:
    try:
        return fit_schema(schema, dialect, path)
    except UnfitSchemaError:
        # Send the schema unchanged, so that the host decides whether to accept it.
        return schema, ()


def _fit_answer(shape: Schema | None, dialects: Dialects, dropped: list[str]) -> tuple[Schema | None, bool]:
    inner = shape.get("json_schema") if shape and shape.get("type") == "json_schema" else None
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    if shape is None or not isinstance(inner, Mapping) or not isinstance(schema, Mapping) or not schema:
        return shape, True
    path, strict = "response_format.json_schema", inner.get("strict")
    try:
        dialect = dialects.answer if strict or not dialects.by_strict else dialects.tool
        fitted, dropped_paths = fit_schema(schema, dialect, f"{path}.schema")
    except UnfitSchemaError:
        dropped.append(f"{path}.strict")
        if not dialects.by_strict:
            return shape, False
        strict = False
        fitted, dropped_paths = _fit_loosely(schema, dialects.tool, f"{path}.schema")
    dropped += dropped_paths
    if fitted is schema and strict is inner.get("strict"):
        return shape, True
    return {**shape, "json_schema": {**inner, "schema": fitted, **({"strict": False} if strict is False else {})}}, True
