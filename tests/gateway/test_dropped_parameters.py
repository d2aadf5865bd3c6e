"""Nested, deprecated and vendor-specific request fields, and how the caller learns which were dropped."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from capabilities.core.message import CacheBreakpoint, FilePart, Role, ToolCall
from capabilities.core.vocabulary import Kind
from routing_admin.gateway.chat.parsing import parse
from routing_admin.gateway.errors import BadRequestError
from tests.gateway.plane import chat_body, image, logged, post

LOOK = {"name": "look", "parameters": {"type": "object"}}


def parse_chat(body: dict[str, Any]) -> Any:
    return parse(deepcopy(body), lambda ref: None).chat


def refusal(body: dict[str, Any]) -> BadRequestError:
    with pytest.raises(BadRequestError) as caught:
        parse_chat(body)
    return caught.value


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_token_limit_of_minus_one_means_no_limit(name):
    """LM Studio sends -1 to request no limit. The values 0 and -2 are refused."""
    assert parse_chat(chat_body("hi", **{name: -1})).max_tokens is None
    assert refusal(chat_body("hi", **{name: 0})).param == name
    assert refusal(chat_body("hi", **{name: -2})).param == name


def test_more_than_eight_choices_are_refused():
    """Each answer is a separate upstream call, so the number of answers is limited. The default is one."""
    error = refusal(chat_body("hi", n=9))
    assert (error.status, error.param) == (400, "n")
    assert parse_chat(chat_body("hi", n=1)).extra == {}


def test_deprecated_functions_become_tools():
    body = chat_body("hi", functions=[LOOK], function_call={"name": "look"})
    body["messages"] += [
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "look", "content": "seen"},
    ]
    chat = parse_chat(body)
    assert [tool.name for tool in chat.tools] == ["look"]
    assert (chat.tool_name, chat.inner) == ("look", ())
    _, call, result = chat.messages
    assert call.tool_calls == (ToolCall("call_1", "look", '{"a": 1}'),)
    assert (result.role, result.tool_call_id, result.text) == (Role.TOOL, "call_1", "seen")
    assert parse_chat(chat_body("hi", functions=[LOOK], function_call="auto")).tool_choice == "auto"


def test_custom_tool_and_its_call_are_read():
    tool = {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}
    body = chat_body("hi", tools=[tool], tool_choice={"type": "custom", "custom": {"name": "sql"}})
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    body["messages"].append({"role": "assistant", "tool_calls": [call]})
    chat = parse_chat(body)
    assert (chat.tools[0].custom, chat.tool_name) == ({"type": "text"}, "sql")
    assert chat.messages[1].tool_calls == (ToolCall("c1", "sql", "select 1", custom=True),)
    assert set(chat.inner) == {"tools[0].custom", "messages[1].tool_calls[0].custom"}
    assert refusal(chat_body("hi", tools=[{"type": "web_search"}])).param == "tools[0].type"


@pytest.mark.parametrize("flat", [False, True])
def test_allowed_tools_are_read_in_nested_and_flat_form(flat):
    """The Chat API nests the allowed tools, and the Responses API does not."""
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "look"}}]}
    choice = {"type": "allowed_tools", **(allowed if flat else {"allowed_tools": allowed})}
    chat = parse_chat(chat_body("hi", tools=[{"type": "function", "function": LOOK}], tool_choice=choice))
    assert (chat.tool_choice, chat.tool_name, chat.allowed_tools) == ("required", None, ("look",))
    (choice if flat else allowed)["mode"] = "sometimes"
    assert refusal(chat_body("hi", tool_choice=choice)).param == "tool_choice.allowed_tools.mode"


@pytest.mark.parametrize("url", ["https://example.com/a.mp4", "data:video/mp4;base64,AAAAGGZ0eXBtcDQyAAAAAA=="])
def test_video_part_becomes_a_file_part(url):
    """`video_url`, the name that vLLM, Qwen and OpenRouter use for the part, may be a URL or inline data."""
    part = parse_chat(chat_body({"type": "video_url", "video_url": {"url": url}})).messages[0].parts[0]
    assert isinstance(part, FilePart)
    assert (part.kind, part.mime_type) == (Kind.VIDEO, "video/mp4")


@pytest.mark.parametrize(
    ("mark", "seconds"),
    [
        ({"cache_control": {"type": "ephemeral"}}, None),
        ({"cache_control": {"type": "ephemeral", "ttl": "1h"}}, 3600),
        ({"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}, 1800),
    ],
)
def test_cache_markers_are_read_on_parts_messages_and_tools(mark, seconds):
    """A message's cache marker is read as the cache marker of its last part."""
    (name,) = mark
    body = chat_body({"type": "text", "text": "hi", **mark}, image() | mark)
    body["messages"].append({"role": "assistant", "content": "yes", **mark})
    body["tools"] = [{"type": "function", "function": LOOK, **mark}]
    chat = parse_chat(body)
    parts = [*chat.messages[0].parts, *chat.messages[1].parts]
    assert [part.cache.seconds for part in parts] == [seconds] * 3
    assert parts[2].cache == CacheBreakpoint(seconds, f"messages[1].{name}")
    assert chat.tools[0].cache == CacheBreakpoint(seconds, f"tools[0].{name}")
    assert len(chat.inner) == 4


def test_plain_conversation_has_no_dropped_fields():
    call = {"id": "c1", "type": "function", "index": 0, "function": {"name": "look", "arguments": "{}"}}
    body = chat_body("hi")
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "audio": None, "annotations": []},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
    ]
    assert parse_chat(body).inner == ()


@pytest.mark.django_db(databases=["default", "logs"])
def test_dropped_fields_are_listed_in_a_header_and_in_the_log(key):
    body = chat_body({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}, seed=7)
    for stream in (False, True):
        response = post(key, body | {"stream": stream})
        assert response.status_code == 200
        names = ["seed", "messages[0].content[0].cache_control"]
        assert response.headers["x-routing-dropped"] == ", ".join(names)
        if not stream:
            assert logged(response.headers["x-request-id"]).attempts.last().dropped_params == names
        response.close()
    assert "x-routing-dropped" not in post(key, chat_body("hi", temperature=0.5)).headers


@pytest.mark.django_db(databases=["default", "logs"])
def test_strict_request_is_refused_if_every_candidate_would_drop_something(key):
    refused = post(key, chat_body("hi", seed=7), **{"x-routing-strict": "true"})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (400, "would_drop", "seed")
    assert error["attempts"][-1]["outcome"] == "skipped_would_drop"
    row = logged(refused.headers["x-request-id"])
    assert (row.status, row.attempts.last().outcome) == (400, "skipped_would_drop")
    assert post(key, chat_body("hi"), **{"x-routing-strict": "true"}).status_code == 200
