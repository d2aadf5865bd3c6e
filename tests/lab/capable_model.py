"""A simulated model for testing client libraries. It calls the offered tools and returns JSON that fits the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.lab.received_requests import ReceivedRequest
from tests.lab.shapes import ReplyText

Schema = Mapping[str, Any]

FORCED = frozenset({"required", "any", "ANY"})
"""Values of any vendor's tool choice that force a tool call."""

NO_TOOLS = frozenset({"none", "NONE"})

THINKING = frozenset({"reasoning_effort", "reasoning", "thinking", "thinkingConfig"})
"""Names of any vendor's request fields that enable reasoning."""

AT_ONCE, IN_WORDS = "at once", "in words"
"""A question that contains `AT_ONCE` requests several tools in one answer. One with `IN_WORDS` requests no tool
call.
"""

QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TEXTS_BY_FORMAT = {
    "date": "2026-10-01",
    "date-time": "2026-10-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "person@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
SCHEMA_IN_WORDS = re.compile(r"schema\b[^{]*(?=\{)", re.I)
"""Matches the text that introduces a schema in a prompt, since some protocols have no field for a schema."""


def choose_reply(request: ReceivedRequest) -> ReplyText | None:
    """Return a tool call if a tool fits, JSON if the request asks for it, or None if the answer is plain text."""
    tools = _choose_tools(request)
    if tools:
        first, *more = ((tool, example(request.parameters.get(tool, {}), request.question)) for tool in tools)
        return ReplyText("", tool=first, finish="tool_calls", call=len(request.calls) + 1, more=tuple(more))
    schema = _find_schema(request)
    if schema is not None:
        return ReplyText(text=json.dumps(example(schema, request.question), ensure_ascii=False))
    return None


def wants_thought(request: ReceivedRequest) -> bool:
    return not THINKING.isdisjoint(request.names)


def _choose_tools(request: ReceivedRequest) -> list[str]:
    """Return the required tool, or else the tools that the question mentions, or else the first tool not called yet.

    Several tools are returned only if the question requests them together. No tool is returned if the question requests
    text or the last message is a tool result.
    """
    if request.tool_choice in request.tools:
        return [str(request.tool_choice)]
    if not request.tools or request.tool_choice in NO_TOOLS:
        return []
    called = {name for name, _ in request.calls}
    uncalled = [tool for tool in request.tools if tool not in called]
    mentioned = [tool for tool in uncalled if re.search(rf"\b{re.escape(tool)}\b", request.question)]
    if mentioned:
        return mentioned if AT_ONCE in request.question else mentioned[:1]
    if request.tool_choice in FORCED:
        return (uncalled or request.tools)[:1]
    asked_for_words = any(role == "user" and IN_WORDS in text for role, text in request.turns)
    return [] if request.results_last or asked_for_words else (uncalled or request.tools)[:1]


def _find_schema(request: ReceivedRequest) -> Schema | None:
    """Return the request's schema, or the schema in its system prompt.

    If JSON is requested without a schema, return an object schema whose properties are the words quoted in the
    question.
    """
    if request.schema:
        return request.schema
    system = "\n".join(text for role, text in request.turns if role == "system")
    if lead := SCHEMA_IN_WORDS.search(system):
        schema: Schema = json.JSONDecoder().raw_decode(system, lead.end())[0]
        return schema
    if not request.json and "JSON" not in system:
        return None
    names = ["".join(groups) for groups in QUOTED.findall(request.question)] or ["answer"]
    return {"type": "object", "required": names, "properties": {name: {"type": "string"} for name in names}}


def example(schema: Schema, question: str, root: Schema | None = None) -> Any:
    """Return a value that fits the schema, with numbers and quoted words from the question where possible."""
    root = schema if root is None else root
    if "$ref" in schema:
        return example(_definition(schema["$ref"], root), question, root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            chosen = next((option for option in schema[several] if option.get("type") != "null"), {"type": "null"})
            return example(chosen, question, root)
    allowed = schema.get("type", "object" if "properties" in schema else "string")
    kind = allowed if isinstance(allowed, str) else next((option for option in allowed if option != "null"), "null")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: example(properties.get(name, {}), question, root) for name in schema.get("required", ())}
    if kind == "array":
        return [example(schema.get("items", {}), question, root) for _ in range(max(1, schema.get("minItems", 1)))]
    return _plain_value(kind, schema, question)


def _definition(reference: str, root: Schema) -> Schema:
    part: Any = root
    for step in reference.removeprefix("#/").split("/"):
        part = part[step]
    return dict(part)


def _plain_value(kind: str, schema: Schema, question: str) -> Any:
    if kind in {"integer", "number"}:
        number = NUMBER.search(question)
        value = float(number[0]) if number else float(schema.get("minimum", 1))
        return int(value) if kind == "integer" else value
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    quoted = QUOTED.search(question)
    fitting = TEXTS_BY_FORMAT.get(schema.get("format", ""))
    return fitting or (next(filter(None, quoted.groups())) if quoted else "words")
