"""A model that does as clients' own tests want: it calls the tools it is offered and answers JSON by schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.lab.received_requests import ReceivedRequest
from tests.lab.shapes import ReplyText

Schema = Mapping[str, Any]

FORCED = frozenset({"required", "any", "ANY"})
"""How each vendor says that some tool has to be called."""

NO_TOOLS = frozenset({"none", "NONE"})

THINKING = frozenset({"reasoning_effort", "reasoning", "thinking", "thinkingConfig"})
"""How each vendor is asked for thought."""

AT_ONCE, IN_WORDS = "at once", "in words"
"""How a question asks for several tools, and for none."""

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
"""What stands before a schema where there is no slot for one."""


def reply_of(heard: ReceivedRequest) -> ReplyText | None:
    """A call of the tool that fits, or JSON where it is wanted; None where words are the answer."""
    tools = _tools_of(heard)
    if tools:
        first, *more = ((tool, example(heard.parameters.get(tool, {}), heard.question)) for tool in tools)
        return ReplyText("", tool=first, finish="tool_calls", call=len(heard.calls) + 1, more=tuple(more))
    schema = _schema_of(heard)
    if schema is not None:
        return ReplyText(text=json.dumps(example(schema, heard.question), ensure_ascii=False))
    return None


def wants_thought(heard: ReceivedRequest) -> bool:
    """Whether it was asked to think before it answers."""
    return not THINKING.isdisjoint(heard.names)


def _tools_of(heard: ReceivedRequest) -> list[str]:
    """The tool that was named; else one that the question mentions or that was not called yet, until one answered.

    Several where the question wants them at once; none where somebody asked for an answer in words.
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
    """The schema that was sent, the one that stands in the words, or one of the names that the question quotes."""
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
    """A value that the schema takes, with the question's numbers and quoted words where it leaves a choice."""
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
    """A number is the question's first, a text its first quoted words."""
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
