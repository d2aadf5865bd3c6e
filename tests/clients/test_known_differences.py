"""docs/compatibility.md agrees with the list of known differences and the pinned versions."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.clients.document import BEGIN, END, SUITES, Outcome, insert_tables
from tests.lab.capable_model import choose_reply, example
from tests.lab.received_requests import read

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs" / "compatibility.md"


def table() -> str:
    return DOCUMENT.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def test_compatibility_document_lists_each_known_difference() -> None:
    """After a change to the list, `make test-clients ARGS="--write docs/compatibility.md"` updates the table."""
    rows = tomllib.loads((HERE / "differences.toml").read_text("utf-8"))["difference"]
    reasons = set(re.findall(r"^\| \d+ \| [\w-]+ \| (?!not run: )(.*) \|$", table(), re.MULTILINE))
    assert {row["reason"] for row in rows} == reasons


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite.package], ids=lambda suite: suite.name)
def test_compatibility_document_names_the_pinned_version(suite) -> None:
    """After a client is upgraded, its suite must run again to update the document."""
    assert f"| {suite.package} {suite.version} |" in table()


def test_compatibility_table_has_the_results_of_a_run() -> None:
    report = {"counts": {"passed": 3, "differs": 2}, "differing": {"By choice.": 2}, "skipped": {}}
    text = insert_tables(f"before\n{BEGIN}{END}after", [Outcome(SUITES[0], 0, report)])
    assert f"| langchain-tests {SUITES[0].version} | 3 | 0 | 2 | 0 |" in text
    assert "| 2 | langchain | By choice. |" in text


def test_example_value_follows_its_json_schema() -> None:
    """The fault lab's model builds an example that follows a schema's references, alternatives and enumerations.

    All other values are words and numbers from the question.
    """
    city = {"type": "object", "properties": {"name": {"type": "string"}, "people": {"type": "integer"}}}
    schema = {
        "type": "object",
        "$defs": {"City": city | {"required": ["name", "people"]}},
        "properties": {
            "stops": {"type": "array", "items": {"$ref": "#/$defs/City"}},
            "way": {"enum": ["train", "ship"]},
            "remark": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
            "unasked": {"type": "string"},
        },
        "required": ["stops", "way", "remark"],
    }
    value = example(schema, "to 'Zürich' with 443037 people")
    assert value == {"stops": [{"name": "Zürich", "people": 443037}], "way": "train", "remark": "2026-10-01"}


REQUESTS = {
    "openai": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "double 4"}]}),
    "openai-responses": (
        "/v1/responses",
        {"model": "m", "input": [{"type": "message", "role": "user", "content": "double 4"}]},
    ),
    "anthropic": ("/v1/messages", {"messages": [{"role": "user", "content": "double 4"}]}),
    "gemini": ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "double 4"}]}]}),
}
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOLS = {
    "openai": [{"type": "function", "function": {"name": "double", "parameters": SCHEMA}}],
    "openai-responses": [{"type": "function", "name": "double", "parameters": SCHEMA}],
    "anthropic": [{"name": "double", "input_schema": SCHEMA}],
    "gemini": [{"functionDeclarations": [{"name": "double", "parametersJsonSchema": SCHEMA}]}],
}


@pytest.mark.parametrize("protocol", REQUESTS)
def test_lab_model_calls_an_offered_tool(protocol: str) -> None:
    """The arguments of the tool call contain the number from the question.

    Without a tool, the model answers in text.
    """
    path, body = REQUESTS[protocol]
    reply = choose_reply(read(path, json.dumps(body | {"tools": TOOLS[protocol]}).encode()))
    assert reply is not None
    assert reply.tool == ("double", {"number": 4})
    assert choose_reply(read(path, json.dumps(body).encode())) is None
