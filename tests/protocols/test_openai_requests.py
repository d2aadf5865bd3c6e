"""Translation of requests to OpenAI's chat completions, and how quirks adapt them to compatible hosts."""

from __future__ import annotations

from typing import Any

import pytest

from capabilities.core.message import (
    CacheBreakpoint,
    ChatRequest,
    Message,
    NativePart,
    Role,
    TextPart,
    Tool,
    ToolCall,
    make_blob,
)
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Target, UpstreamRequest

HOST = "https://llm.example/v1"
IMAGE = NativePart(Kind.IMAGE, "image/png", make_blob(b"123"), filename="a.png", detail="low")
AUDIO = NativePart(Kind.AUDIO, "audio/mpeg", make_blob(b"123"))
VIDEO = NativePart(Kind.VIDEO, "video/mp4", make_blob(b"123"))
PDF = NativePart(Kind.DOCUMENT, "application/pdf", make_blob(b"123"), filename="a.pdf")
LINK = NativePart(Kind.IMAGE, "image/png", url="https://pictures.example/a.png")
CALL = ToolCall("call_1", "look", '{"a": 1}')


def user(*parts: Any) -> Message:
    return Message(Role.USER, tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def encode(
    *messages: Message, quirks: dict[str, Any] | None = None, endpoint: str = HOST, **chat: Any
) -> UpstreamRequest:
    target = Target("p", endpoint, "some-model", "key-1", quirks=quirks or {})
    return PROTOCOLS["openai"].encode(ChatRequest(messages or (user("hi"),), **chat), target, stream=False)


def content(part: Any, **quirks: Any) -> Any:
    return encode(user("see", part), quirks=quirks).elide()["messages"][0]["content"][1]


def test_minimal_request_has_only_model_and_messages() -> None:
    request = encode()
    assert request.payload == {"model": "some-model", "messages": [{"role": "user", "content": "hi"}]}
    assert (request.method, request.headers["authorization"]) == ("POST", "Bearer key-1")


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("https://api.deepseek.com", "https://api.deepseek.com/chat/completions"),
        ("https://open.bigmodel.cn/api/paas/v4/", "https://open.bigmodel.cn/api/paas/v4/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1/chat/completions/", "https://h/v1/chat/completions"),
        ("https://h/openai?api-version=1", "https://h/openai/chat/completions?api-version=1"),
    ],
)
def test_chat_completions_path_is_appended_only_if_missing(endpoint: str, url: str) -> None:
    """`/v1` is never inserted into the endpoint's URL. The URL's query string is kept."""
    assert encode(endpoint=endpoint).url == url


@pytest.mark.requirement("MMR-P7")
def test_all_parameters_from_the_caller_are_sent() -> None:
    request = encode(temperature=0.0, max_tokens=5, top_p=0.5, stop=("a",), extra={"seed": 7, "model": "other"})
    assert request.payload == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "hi"}],
        "seed": 7,
        "temperature": 0.0,
        "top_p": 0.5,
        "stop": ["a"],
        "max_tokens": 5,
    }


def test_stream_usage_is_requested_unless_a_quirk_disables_stream_options() -> None:
    chat = ChatRequest((user("hi"),))
    with_count = PROTOCOLS["openai"].encode(chat, Target("p", HOST, "m"), stream=True)
    assert with_count.payload["stream_options"] == {"include_usage": True}
    request = PROTOCOLS["openai"].encode(chat, Target("p", HOST, "m", quirks={"stream_usage": False}), stream=True)
    assert "stream_options" not in request.payload
    assert request.payload["stream"] is True


@pytest.mark.parametrize("key", [None, "", "NOT_NEEDED"])
def test_authorization_header_is_omitted_without_a_key(key: str | None) -> None:
    request = PROTOCOLS["openai"].encode(ChatRequest((user("hi"),)), Target("p", HOST, "m", key), stream=False)
    assert "authorization" not in request.headers


@pytest.mark.requirement("MCR-2.1", "MCR-2.3", "MCR-2.5", "ABR-3.2")
@pytest.mark.parametrize(
    ("part", "quirks", "shape"),
    [
        (IMAGE, {}, {"image_url": {"url": "data:image/png;base64,<3 bytes>", "detail": "low"}}),
        (IMAGE, {"image_url_as_string": True}, {"image_url": "data:image/png;base64,<3 bytes>"}),
        (LINK, {}, {"image_url": {"url": "https://pictures.example/a.png"}}),
        (AUDIO, {}, {"input_audio": {"data": "<3 bytes>", "format": "mp3"}}),
        (AUDIO, {"input_audio_shape": "string"}, {"input_audio": "<3 bytes>"}),
        (AUDIO, {"input_audio_shape": "audio_url"}, {"audio_url": {"url": "data:audio/mpeg;base64,<3 bytes>"}}),
        (VIDEO, {"video_part": "video_url"}, {"video_url": {"url": "data:video/mp4;base64,<3 bytes>"}}),
        (PDF, {}, {"file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,<3 bytes>"}}),
        (
            PDF,
            {"file_part": "document_url"},
            {"document_url": "data:application/pdf;base64,<3 bytes>", "document_name": "a.pdf"},
        ),
    ],
)
def test_file_is_encoded_in_the_format_of_the_provider(part: Any, quirks: dict[str, Any], shape: Any) -> None:
    """For each compatible host, quirks determine the format of content parts."""
    kind = next(name for name in shape if name != "document_name")
    assert content(part, **quirks) == {"type": kind, **shape}


@pytest.mark.parametrize(
    ("part", "quirks"), [(LINK, {"no_remote_image_urls": True}), (VIDEO, {}), (PDF, {"file_part": "none"})]
)
def test_file_without_a_slot_is_replaced_by_a_text_note(part: Any, quirks: dict[str, Any]) -> None:
    """Normally, content that a provider cannot accept is replaced before encoding. If any is left, the encoder replaces
    it with text.
    """
    shape = content(part, **quirks)
    assert shape["type"] == "text"
    assert "cannot be sent here" in shape["text"]


def test_tool_result_media_follow_in_a_user_message_after_all_results() -> None:
    """OpenAI's tool messages can only contain text, and no other message may come between the results of one turn."""
    calling = Message(Role.ASSISTANT, (), (CALL, ToolCall("call_2", "look", "{}")))
    first = Message(Role.TOOL, (TextPart("here"), IMAGE), tool_call_id="call_1")
    second = Message(Role.TOOL, (TextPart("there"),), tool_call_id="call_2")
    messages = encode(user("hi"), calling, first, second).elide()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert messages[2]["content"] == "here"
    assert messages[4]["content"][0]["text"].startswith("Tool output")
    assert messages[4]["content"][1]["type"] == "image_url"
    native = encode(user("hi"), calling, first, second, quirks={"tool_media": "native"}).elide()["messages"]
    assert [part["type"] for part in native[2]["content"]] == ["text", "image_url"]


def test_content_without_files_is_sent_as_one_string() -> None:
    """Some hosts accept content only as a string, so content without files is sent as one."""
    assert encode(user("one", "two")).payload["messages"][0]["content"] == "one\ntwo"


@pytest.mark.parametrize(
    ("role", "first"),
    [
        ("system", {"role": "system", "content": "Be brief."}),
        ("developer", {"role": "developer", "content": "Be brief."}),
        ("first_user", {"role": "user", "content": "Be brief.\nhi"}),
    ],
)
def test_system_prompt_has_the_role_set_by_the_quirk(role: str, first: Any) -> None:
    """The system prompt is always first and is never dropped."""
    system = Message(Role.SYSTEM, (TextPart("Be brief."),))
    assert encode(system, user("hi"), quirks={"system_role": role}).payload["messages"][0] == first


def test_system_prompt_at_the_end_is_appended_to_the_last_user_message() -> None:
    """If a model has no system role, its system prompt becomes part of a user message."""
    system = Message(Role.SYSTEM, (TextPart("Be brief."),))
    messages = encode(user("one"), user("two"), system, quirks={"system_role": "first_user"}).payload["messages"]
    assert [message["content"] for message in messages] == ["one", "two\nBe brief."]


@pytest.mark.parametrize(
    ("quirks", "expected"),
    [
        ({}, {}),
        ({"replay_reasoning": "keep"}, {"reasoning_content": "hm"}),
        ({"replay_reasoning": "empty"}, {"reasoning_content": ""}),
        ({"replay_reasoning": "keep", "reasoning_field": "reasoning"}, {"reasoning": "hm"}),
    ],
)
def test_earlier_reasoning_is_kept_emptied_or_dropped_by_quirk(quirks: dict[str, Any], expected: Any) -> None:
    """DeepSeek requires reasoning to be sent back with tool calls. OpenAI does not."""
    answered = Message(Role.ASSISTANT, (TextPart("yes"),), reasoning="hm")
    message = encode(user("hi"), answered, quirks=quirks).payload["messages"][1]
    assert message == {"role": "assistant", "content": "yes", **expected}


def test_tool_calls_and_results_keep_ids_and_text() -> None:
    result = Message(Role.TOOL, (TextPart("done"),), tool_call_id="call_1")
    messages = encode(user("hi"), Message(Role.ASSISTANT, (), (CALL,)), result).payload["messages"]
    function = {"name": "look", "arguments": '{"a": 1}'}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    assert messages[1] == {"role": "assistant", "content": None, "tool_calls": calls}
    assert messages[2] == {"role": "tool", "content": "done", "tool_call_id": "call_1"}


def test_tool_choice_is_sent_only_with_tools() -> None:
    tool = Tool("look", "Looks.", {"type": "object"}, strict=True)
    payload = encode(tools=(tool,), tool_name="look", parallel_tool_calls=False).payload
    assert payload["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    assert payload["parallel_tool_calls"] is False
    assert payload["tools"][0]["function"]["strict"] is True
    assert "tool_choice" not in encode(tool_choice="auto").payload


SHAPE = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("structured", "response_format", "is_asked_in_words"),
    [("json_schema", SHAPE, False), ("json_object", {"type": "json_object"}, True), ("prompt", None, True)],
)
def test_structured_output_is_requested_as_the_quirk_specifies(
    structured: str, response_format: Any, is_asked_in_words: bool
) -> None:
    """If the provider has no field for a schema, the schema is added to the system prompt."""
    payload = encode(response_format=SHAPE, quirks={"structured": structured}).payload
    assert payload.get("response_format") == response_format
    system = [message["content"] for message in payload["messages"] if message["role"] == "system"]
    assert bool(system) is is_asked_in_words
    assert all('{"type": "object"}' in text for text in system)


def test_parameters_excluded_by_quirks_are_reported_as_dropped() -> None:
    request = encode(temperature=0.3, extra={"seed": 1}, quirks={"drop_params": ["seed"], "sampling": False})
    assert set(request.payload) == {"model", "messages"}
    assert set(request.dropped_params) == {"seed", "temperature"}


def test_provider_quirks_override_the_built_in_quirks_of_a_known_host() -> None:
    endpoint = "https://api.openai.com/v1"
    assert encode(endpoint=endpoint, max_tokens=5).payload["max_completion_tokens"] == 5
    assert encode(endpoint=endpoint, max_tokens=5, quirks={"max_tokens_field": "max_tokens"}).payload["max_tokens"] == 5


def test_provider_extra_body_and_headers_override_generated_values() -> None:
    """Objects in `extra_body` are merged, and other values are replaced. A provider's header replaces the gateway's
    header of the same name, in upper or lower case.
    """
    target = Target(
        "p",
        HOST,
        "m",
        "k",
        headers={"Authorization": "Token t", "X-Team": "a"},
        extra_body={"thinking": {"type": "disabled"}, "temperature": 1},
    )
    request = PROTOCOLS["openai"].encode(ChatRequest((user("hi"),), temperature=0.1), target, stream=False)
    assert request.payload["thinking"] == {"type": "disabled"}
    assert request.payload["temperature"] == 1
    assert (request.headers["authorization"], request.headers["x-team"]) == ("Token t", "a")


def test_custom_tools_custom_tool_calls_and_allowed_tools_are_sent_unchanged() -> None:
    sql = Tool("sql", "asks", custom={"type": "text"})
    conversation = user("hi"), Message(Role.ASSISTANT, (), (ToolCall("c1", "sql", "select 1", custom=True),))
    payload = encode(
        *conversation, tools=(sql, Tool("look")), allowed_tools=("sql", "look"), tool_choice="required"
    ).payload
    shape = {"name": "sql", "description": "asks", "format": {"type": "text"}}
    assert payload["tools"] == [{"type": "custom", "custom": shape}, {"type": "function", "function": {"name": "look"}}]
    assert payload["messages"][1]["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    ]
    allowed = [{"type": "custom", "custom": {"name": "sql"}}, {"type": "function", "function": {"name": "look"}}]
    assert payload["tool_choice"] == {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": allowed}}


@pytest.mark.parametrize(
    ("mark_style", "seconds", "mark"),
    [
        ("cache_control", None, {"cache_control": {"type": "ephemeral"}}),
        ("cache_control", 300, {"cache_control": {"type": "ephemeral", "ttl": "5m"}}),
        ("cache_control", 43200, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}),
        ("prompt_cache_breakpoint", None, {"prompt_cache_breakpoint": {"mode": "explicit"}}),
        ("prompt_cache_breakpoint", 300, {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}),
        ("prompt_cache_breakpoint", 3600, {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}),
    ],
)
def test_cache_marker_is_encoded_in_the_format_of_the_host(mark_style: str, seconds: int | None, mark: Any) -> None:
    """A cache marker's lifetime is rounded up to one that the host offers, or down to the host's longest."""
    prompt = Message(Role.USER, (TextPart("hi", CacheBreakpoint(seconds)),))
    request = encode(prompt, quirks={"cache_marks": mark_style})
    assert request.payload["messages"][0]["content"] == [{"type": "text", "text": "hi", **mark}]


def test_cache_markers_are_reported_as_dropped_for_a_host_without_cache_markers() -> None:
    """Content whose cache marker was dropped is sent as one string. The dropped marker is reported."""
    path = "messages[0].content[0].cache_control"
    request = encode(Message(Role.USER, (TextPart("hi", CacheBreakpoint(path=path)),)), inner=(path,))
    assert (request.payload["messages"][0]["content"], request.dropped_params) == ("hi", (path,))


@pytest.mark.parametrize(
    ("extra", "dropped"),
    [
        ({"thinking": {"type": "adaptive"}, "metadata": {"user_id": "u"}}, {"thinking", "metadata"}),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"thinking"}),
        ({"thinking": {"type": "enabled"}, "metadata": {"user_id": "u"}, "store": True}, set()),
        ({"thinking": {"type": "disabled"}, "metadata": {"team": "a"}}, set()),
    ],
)
def test_anthropic_only_fields_are_reported_as_dropped(extra, dropped) -> None:
    """Claude Code sends `thinking` and `metadata` with every request. OpenAI rejects both, so they are dropped."""
    request = encode(extra=extra)
    assert set(request.dropped_params) == dropped
    assert set(extra) - dropped <= set(request.payload)
