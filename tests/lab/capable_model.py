"""A model for the tests of clients: it calls the tools it is offered and answers with JSON that fits the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.lab.received_requests import ReceivedRequest
from tests.lab.shapes import ReplyText

Schema = Mapping[str, Any]

FORCED = frozenset({"required", "any", "ANY"})
"""How each vendor requires a tool call."""

NO_TOOLS = frozenset({"none", "NONE"})

THINKING = frozenset({"reasoning_effort", "reasoning", "thinking", "thinkingConfig"})
"""How reasoning is requested from each vendor."""

AT_ONCE, IN_WORDS = "at once", "in words"
"""Words of a question that ask for several tools at once, or for none."""

QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TEXTS_BY_FORMAT = {
    "date": "2026-10-01",
    "date-time": "2026-10-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "somebody@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
SCHEMA_IN_WORDS = re.compile(r"schema\b[^{]*(?=\{)", re.I)
"""The text before a schema, for protocols without a field for one."""


def reply_of(heard: ReceivedRequest) -> ReplyText | None:
    """Return a call of the matching tool, or JSON if requested; None if the answer is plain text."""
    tools = _tools_of(heard)
    if tools:
        first, *more = ((tool, example(heard.parameters.get(tool, {}), heard.question)) for tool in tools)
        return ReplyText("", tool=first, finish="tool_calls", call=len(heard.calls) + 1, more=tuple(more))
    schema = _schema_of(heard)
    if schema is not None:
        return ReplyText(text=json.dumps(example(schema, heard.question), ensure_ascii=False))
    return None


def wants_thought(heard: ReceivedRequest) -> bool:
    return not THINKING.isdisjoint(heard.names)


def _tools_of(heard: ReceivedRequest) -> list[str]:
    """Return the required tool, else those the question mentions or the first uncalled one, until one has answered.

    Return several if the question asks for them at once, none if it asks for a text answer.
    """
    if heard.tool_choice in heard.tools:
        return [str(heard.tool_choice)]
    if not heard.tools or heard.tool_choice in NO_TOOLS:
        return []
    called = {name for name, _ in heard.calls}
    fresh = [tool for tool in heard.tools if tool not in called]
    mentioned = [tool for tool in fresh if re.search(rf"\b{re.escape(tool)}\b", heard.question)]
    if mentioned:
        return mentioned if AT_ONCE in heard.question else mentioned[:1]
    if heard.tool_choice in FORCED:
        return (fresh or heard.tools)[:1]
    asked_for_words = any(role == "user" and IN_WORDS in text for role, text in heard.turns)
    return [] if heard.results_last or asked_for_words else (fresh or heard.tools)[:1]


def _schema_of(heard: ReceivedRequest) -> Schema | None:
    """Return the schema of the request, the one in its text, or an object with the names that the question quotes."""
    if heard.schema:
        return heard.schema
    system = "\n".join(text for role, text in heard.turns if role == "system")
    if written := SCHEMA_IN_WORDS.search(system):
        schema: Schema = json.JSONDecoder().raw_decode(system, written.end())[0]
        return schema
    if not heard.json and "JSON" not in system:
        return None
    names = ["".join(found) for found in QUOTED.findall(heard.question)] or ["answer"]
    return {"type": "object", "required": names, "properties": {name: {"type": "string"} for name in names}}


def example(schema: Schema, question: str, root: Schema | None = None) -> Any:
    """Return a value that fits the schema, made of the question's numbers and quoted words where possible."""
    root = schema if root is None else root
    if "$ref" in schema:
        return example(_definition(schema["$ref"], root), question, root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            chosen = next((each for each in schema[several] if each.get("type") != "null"), {"type": "null"})
            return example(chosen, question, root)
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = kinds if isinstance(kinds, str) else next((each for each in kinds if each != "null"), "null")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: example(properties.get(name, {}), question, root) for name in schema.get("required", ())}
    if kind == "array":
        return [example(schema.get("items", {}), question, root) for _ in range(max(1, schema.get("minItems", 1)))]
    return _plain_value(kind, schema, question)


def _definition(reference: str, root: Schema) -> Schema:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return dict(found)


def _plain_value(kind: str, schema: Schema, question: str) -> Any:
    """Return the question's first number, or its first quoted words."""
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
