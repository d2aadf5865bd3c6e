"""A model for tests of clients. It calls the offered tools and answers with JSON that fits the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.lab.received_requests import ReceivedRequest
from tests.lab.shapes import ReplyText

Schema = Mapping[str, Any]

FORCED = frozenset({"required", "any", "ANY"})
"""The values with which the vendors' APIs force a tool call."""

NO_TOOLS = frozenset({"none", "NONE"})

THINKING = frozenset({"reasoning_effort", "reasoning", "thinking", "thinkingConfig"})
"""The fields with which reasoning is requested in the vendors' APIs."""

AT_ONCE, IN_WORDS = "at once", "in words"
"""Words in a question that request several tools at once, or none."""

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
"""The text before a schema in a prompt, for protocols that have no field for a schema."""


def choose_reply(request: ReceivedRequest) -> ReplyText | None:
    """Return a tool call if a tool fits, JSON if it was requested, or None if the answer is plain text."""
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
    """Return the required tool, else the tools that the question mentions or the first tool that was not called.

    Return several tools if the question requests them together, and none if it requests text or a tool has answered.
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
    """Return the request's schema, a schema in its text, or an object schema with the names that the question
    quotes.
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
    """Return a value that fits the schema. Where possible, it uses numbers and quoted words from the question."""
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
