"""A body with one wrong value, at any path, is either accepted or refused with this path.

It never causes an internal error.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.gemini import parsing as gemini
from routing_admin.gateway.messages import parsing as messages
from routing_admin.gateway.responses import parsing as responses

ODD: tuple[Any, ...] = (None, True, 0, -1, 1.5, "", "x", [], ["x"], {}, {"type": "x"}, [{}], [None], {"a": [1]})
MESSAGES: dict[str, Any] = {
    "model": "a",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "tools": [
        {"name": "a", "description": "d", "input_schema": {}, "cache_control": {}},
        {"type": "web_search_1", "name": "w"},
    ],
    "tool_choice": {"type": "tool", "name": "a"},
    "stop_sequences": ["a"],
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    "thinking": {"type": "enabled"},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
                {"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "redacted_thinking", "data": "routing:e30="},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "i", "name": "n", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "i",
                    "content": [
                        {"type": "text", "text": '{"routing":1}'},
                        {"type": "image", "source": {"type": "file", "file_id": "f"}},
                    ],
                    "is_error": True,
                    "cache_control": {},
                }
            ],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "a",
    "instructions": "i",
    "tools": [
        {"type": "function", "name": "a", "parameters": {}, "strict": False},
        {"type": "custom", "name": "p", "format": {}},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "a"}]},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": False,
    "include": ["x"],
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
                {"type": "input_file", "file_data": "aGk=", "filename": "a.txt"},
                {"type": "input_file", "file_url": "https://e.org/a.pdf"},
                {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            ],
        },
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "x"}],
            "encrypted_content": "routing:e30=",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "web_search_call"},
    ],
}

GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "s"}]},
    "tools": [
        {
            "functionDeclarations": [
                {"name": "a", "parameters": {"type": "OBJECT", "properties": {"n": {"minItems": "1"}}}}
            ]
        },
        {"google_search": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}},
    "generationConfig": {
        "stopSequences": ["a"],
        "topK": 4.0,
        "responseModalities": ["TEXT"],
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "nullable": True, "propertyOrdering": ["n"], "properties": {"n": {}}},
        "thinkingConfig": {"thinkingBudget": 5, "includeThoughts": True},
    },
    "serviceTier": "flex",
    "labels": {"team": "t"},
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
        {
            "role": "model",
            "parts": [
                {"text": "t", "thought": True, "thoughtSignature": "cm91dGluZy0xCmEKcm91dGluZzplMzA9"},
                {"functionCall": {"id": "i", "name": "a", "args": {}}, "thoughtSignature": "YQ=="},
                {"executableCode": {"code": "1"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "i", "name": "a", "response": {"result": {}}, "parts": [{"text": "x"}]}},
                {"file_data": {"file_uri": "https://e.org/a.pdf", "mime_type": "application/pdf"}},
            ],
        },
    ],
}


def parse_gemini(body: Any, find: Callable[[str], None]) -> ChatCall:
    """Parse the body. `model` and `stream` are parameters, since Gemini's API has both in the URL."""
    return gemini.parse({**body, "model": "a", "stream": False}, find)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths_in(item, (*path, key))


def broken_bodies(body: dict[str, Any], path: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yield the body with each unusual value at this path, then the body without this path."""
    for value in ODD:
        changed = copy.deepcopy(body)
        find_container(changed, path)[path[-1]] = copy.deepcopy(value)
        yield changed
    changed = copy.deepcopy(body)
    del find_container(changed, path)[path[-1]]
    yield changed


def find_container(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        body = body[key]
    return body


Parse = Callable[[Any, Callable[[str], None]], ChatCall]


@pytest.mark.parametrize(
    ("body", "parse", "needs_thread"),
    [
        (MESSAGES, messages.parse, messages.needs_thread),
        (RESPONSES, responses.parse, responses.needs_thread),
        (GEMINI, parse_gemini, gemini.needs_thread),
    ],
    ids=["messages", "responses", "gemini"],
)
def test_body_with_one_wrong_value_is_accepted_or_refused_with_its_path(
    body: dict[str, Any], parse: Parse, needs_thread: Callable[[Any, int], bool]
) -> None:
    refusals = []
    for path in paths_in(body):
        for changed in broken_bodies(body, path):
            needs_thread(changed, 10)
            try:
                parse(changed, lambda _: None)
            except BadRequestError as refusal:
                refusals.append(refusal.param)
    assert len(refusals) > 100
    assert None not in refusals
