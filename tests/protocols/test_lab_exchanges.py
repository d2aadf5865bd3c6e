"""Each protocol exchanges requests and responses with the fault lab over real sockets."""

from __future__ import annotations

import pytest

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, Tool, ToolCall, make_blob
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, Usage
from tests.lab import MALFORMED, SCENARIOS, Lab
from tests.lab.shapes import VENDORS
from tests.protocols.exchange import KEY, exchange

NEEDS_A_DRIVER = frozenset(
    [
        "silent",
        "reset_before_headers",
        "close_before_headers",
        "reset_mid_body",
        "truncated_body",
        "drip",
        "gzip",
        "gzip_bomb",
        "huge_body",
        "stall",
        "stall_first",
        "comments_forever",
        "comments_after",
        "giant_event",
        "endless",
        "reset_before_content",
        "held_open",
        "reset_after_finish",
        *MALFORMED,
    ]
)
"""Scenarios with results that depend on the upstream driver's timeouts, limits, decompression or HTTP parser."""
BYTES = [
    (protocol, name, stream)
    for name, scenario in SCENARIOS.items()
    for protocol in scenario.needs
    for stream in (False, True)
    if name not in NEEDS_A_DRIVER
]
CHAT = ChatRequest((Message(Role.USER, (TextPart("hi"),)),))
WHOLE_AND_STREAMED = pytest.mark.parametrize("stream", [False, True])
KEY_HEADERS = {
    "openai": "authorization",
    "openai-responses": "authorization",
    "anthropic": "x-api-key",
    "gemini": "x-goog-api-key",
}
EACH_PROTOCOL = pytest.mark.parametrize("protocol", list(VENDORS))


@pytest.mark.parametrize(("protocol", "name", "stream"), BYTES)
def test_every_lab_scenario_decodes_to_its_expected_fault(lab: Lab, protocol: str, name: str, stream: bool) -> None:
    outcome = exchange(protocol, lab.url(protocol), f"fault:{name}", CHAT, stream=stream)
    assert lab.requests[-1].scenario == name
    assert lab.requests[-1].heard.stream is stream
    expected = SCENARIOS[name].stream if stream else SCENARIOS[name].plain
    assert (outcome.fault if isinstance(outcome, Failure) else None) == expected


@EACH_PROTOCOL
@WHOLE_AND_STREAMED
def test_answer_is_decoded_with_text_reasoning_and_usage(lab: Lab, protocol: str, stream: bool) -> None:
    answer = exchange(protocol, lab.url(protocol), "fault:reasoning", CHAT, stream=stream)
    assert isinstance(answer, Answer)
    assert (answer.text, answer.reasoning) == ("You said: hi", "First I think about it. 先想一想。")
    assert answer.finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.cached_tokens) == (11, 7, 3)
    assert answer.usage.total_tokens == 18
    assert answer.model == "fault:reasoning"
    assert answer.id


@EACH_PROTOCOL
@WHOLE_AND_STREAMED
def test_tool_call_is_decoded_with_name_arguments_and_id(lab: Lab, protocol: str, stream: bool) -> None:
    answer = exchange(protocol, lab.url(protocol), "fault:tool_call", CHAT, stream=stream)
    assert isinstance(answer, Answer)
    (call,) = answer.tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Zürich", "days": 2}')
    assert call.id
    assert answer.finish_reason == "tool_calls"
    # Of the lab's simulated vendors, only Gemini adds thought signatures to tool calls.
    assert call.signature == {"gemini": "c2lnbmVk"}.get(protocol)


@pytest.mark.parametrize(
    ("protocol", "kind", "mime", "slot"),
    [
        ("openai", Kind.IMAGE, "image/png", "image_url"),
        ("openai", Kind.AUDIO, "audio/wav", "input_audio"),
        ("openai", Kind.DOCUMENT, "application/pdf", "file"),
        ("openai-responses", Kind.IMAGE, "image/png", "input_image"),
        ("openai-responses", Kind.DOCUMENT, "application/pdf", "input_file"),
        ("anthropic", Kind.IMAGE, "image/png", "image"),
        ("anthropic", Kind.DOCUMENT, "application/pdf", "document"),
        ("gemini", Kind.IMAGE, "image/png", "inlineData"),
        ("gemini", Kind.AUDIO, "audio/wav", "inlineData"),
        ("gemini", Kind.VIDEO, "video/mp4", "inlineData"),
        ("gemini", Kind.DOCUMENT, "application/pdf", "inlineData"),
    ],
)
@pytest.mark.requirement("MCR-2.1", "MCR-2.3", "MCR-2.5", "MCR-P2")
def test_native_file_is_received_with_all_bytes(lab: Lab, protocol: str, kind: Kind, mime: str, slot: str) -> None:
    data = bytes(range(256)) * 5 + b"end"
    part = NativePart(kind, mime, make_blob(data), filename="a file")
    chat = ChatRequest((Message(Role.USER, (TextPart("look"), part)),))
    assert isinstance(exchange(protocol, lab.url(protocol), "m", chat, stream=False), Answer)
    (media,) = lab.requests[-1].heard.media
    assert (media.slot, media.mime_type, media.data) == (slot, mime, data)


@EACH_PROTOCOL
def test_conversation_is_received_unchanged(lab: Lab, protocol: str) -> None:
    call = ToolCall("call/1", "get_weather", '{"city": "Zürich"}')
    tool = Tool("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
    chat = ChatRequest(
        (
            Message(Role.SYSTEM, (TextPart("Be brief."),)),
            Message(Role.USER, (TextPart("Weather?"),)),
            Message(Role.ASSISTANT, (TextPart("I look."),), (call,)),
            Message(Role.TOOL, (TextPart("sunny"),), tool_call_id="call/1"),
            Message(Role.USER, (TextPart("And now?"),)),
        ),
        max_tokens=77,
        tools=(tool,),
        tool_name="get_weather",
    )
    assert isinstance(exchange(protocol, lab.url(protocol), "m", chat, stream=False), Answer)
    received = lab.requests[-1].heard
    assert received.turns[0] == ("system", "Be brief.")
    assert next(text for role, text in received.turns if role == "user") == "Weather?"
    assert received.question == "And now?"
    assert ("assistant", "I look.") in received.turns
    assert received.calls == [("get_weather", {"city": "Zürich"})]
    assert len(received.results) == 1
    assert "sunny" in received.results[0][1]
    assert (received.tools, received.tool_choice, received.max_tokens) == (["get_weather"], "get_weather", 77)


@EACH_PROTOCOL
def test_response_schema_is_received_in_the_schema_field(lab: Lab, protocol: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    chat = ChatRequest(CHAT.messages, response_format=shape)
    exchange(protocol, lab.url(protocol), "m", chat, stream=False)
    received = lab.requests[-1].heard
    assert received.schema is not None
    assert received.schema["properties"]["a"]["type"] == "object"
    assert (received.schema.get("additionalProperties") is False) is (protocol == "anthropic")


@EACH_PROTOCOL
def test_api_key_is_sent_only_in_the_key_header(lab: Lab, protocol: str) -> None:
    exchange(protocol, lab.url(protocol), "m", CHAT, stream=False)
    received = lab.requests[-1]
    assert KEY not in received.path
    assert KEY.encode() not in received.body
    assert [name for name, value in received.headers.items() if KEY in value] == [KEY_HEADERS[protocol]]


def test_usage_without_reported_counts_is_none_instead_of_zero() -> None:
    assert Usage().prompt_tokens is None
