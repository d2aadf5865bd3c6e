"""A model's reasoning is sent back unchanged, in its original position, and only to the model that wrote it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.thought_fields import build_details, parse_thoughts
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm, set_origin
from capabilities.core.wire import Answer, Target
from tests.protocols.exchange import assemble

HOSTS = {
    "openai": "https://openrouter.ai/api/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
STAND_IN = "skip_thought_signature_validator"


def target(protocol: str, model: str = "m", host: str = "") -> Target:
    return Target("p", host or HOSTS[protocol], model, "k")


def read_whole(protocol: str, value: Any) -> Answer:
    answer = PROTOCOLS[protocol].decode(200, {}, json.dumps(value).encode())
    assert isinstance(answer, Answer), answer
    return answer


def read_stream(protocol: str, values: Sequence[Any]) -> Answer:
    decoder = PROTOCOLS[protocol].decoder()
    events = decoder.feed(b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values))
    answer = assemble([*events, *decoder.close()])
    assert isinstance(answer, Answer), answer
    return answer


def next_request(answer: Answer, source: Target, protocol: str, recipient: Target | None = None, **change: Any) -> Any:
    """Return what `recipient` gets back in the next request after an answer by `source`, in the format of its
    protocol.
    """
    origin = source.origin(protocol)
    calls = tuple(
        ToolCall(call.id, call.name, call.arguments, call.signature, call.custom, origin) for call in answer.tool_calls
    )
    answered = Message(
        Role.ASSISTANT,
        (TextPart(answer.text),),
        calls,
        reasoning=answer.reasoning,
        thoughts=set_origin(answer.thoughts, origin),
    )
    chat = ChatRequest((Message(Role.USER, (TextPart("hi"),)), answered))
    payload = PROTOCOLS[protocol].encode(chat, recipient or source, stream=False).elide()
    if protocol == "openai-responses":
        return payload["input"][1:]
    return payload["contents"][1]["parts"] if protocol == "gemini" else payload["messages"][1]


BLOCKS = [
    {"type": "thinking", "thinking": "first", "signature": "S1"},
    {"type": "redacted_thinking", "data": "R1"},
    {"type": "text", "text": "Let me look."},
    {"type": "thinking", "thinking": "", "signature": "S2"},
    {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
]


def anthropic_stream(blocks: Sequence[dict[str, Any]]) -> list[Any]:
    events: list[Any] = [{"type": "message_start", "message": {"id": "m", "model": "claude", "usage": {}}}]
    for index, block in enumerate(blocks):
        empty = {**block, **{key: "" for key in ("thinking", "signature", "text") if key in block}}
        events.append(
            {
                "type": "content_block_start",
                "index": index,
                "content_block": empty | ({"input": {}} if "input" in block else {}),
            }
        )
        deltas: list[dict[str, Any]] = []
        if block.get("thinking"):
            deltas += [
                {"type": "thinking_delta", "thinking": piece}
                for piece in (block["thinking"][:2], block["thinking"][2:])
            ]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if "text" in block:
            deltas.append({"type": "text_delta", "text": block["text"]})
        if "input" in block:
            deltas.append({"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}
    return [*events, ending, {"type": "message_stop"}]


@pytest.mark.parametrize("stream", [False, True])
def test_every_thinking_block_is_returned_to_claude_in_position(stream: bool) -> None:
    """Thinking blocks that are encrypted or whose text is omitted are sent back as well."""
    response_body = {"type": "message", "content": BLOCKS, "stop_reason": "tool_use"}
    answer = read_stream("anthropic", anthropic_stream(BLOCKS)) if stream else read_whole("anthropic", response_body)
    assert answer.reasoning == "first"
    assert next_request(answer, target("anthropic"), "anthropic")["content"] == BLOCKS


@pytest.mark.parametrize("stream", [False, True])
def test_response_with_only_redacted_thinking_counts_as_an_answer(stream: bool) -> None:
    """The provider bills thinking even if it omits the text, so the signature alone counts as an answer."""
    blocks = [{"type": "thinking", "thinking": "", "signature": "S"}]
    response_body = {"type": "message", "content": blocks, "stop_reason": "end_turn"}
    answer = read_stream("anthropic", anthropic_stream(blocks)) if stream else read_whole("anthropic", response_body)
    assert [thought.proof for thought in answer.thoughts] == ["S"]


def test_thinking_without_a_signature_is_not_returned_to_claude() -> None:
    """Anthropic rejects thinking without a signature."""
    unsigned = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]
    answer = read_whole("anthropic", {"type": "message", "content": unsigned, "stop_reason": "end_turn"})
    assert answer.reasoning == "hm"
    assert next_request(answer, target("anthropic"), "anthropic")["content"] == [{"type": "text", "text": "yes"}]


@pytest.mark.parametrize("stream", [False, True])
def test_text_and_call_signatures_are_returned_to_gemini(stream: bool) -> None:
    """In a stream, the last signature arrives in a part without text."""
    call = {"functionCall": {"id": "c1", "name": "look", "args": {}}, "thoughtSignature": "S2"}
    parts = [{"text": "Let me "}, {"text": "look."}, {"text": "", "thoughtSignature": "S1"}, call]

    def chunk(chunk_parts: list[Any], **fields: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": chunk_parts}, **fields}], "usageMetadata": {"promptTokenCount": 1}}

    last = chunk(parts[3:], finishReason="STOP")
    answer = (
        read_stream("gemini", [*(chunk([part]) for part in parts[:3]), last])
        if stream
        else read_whole("gemini", chunk(parts, finishReason="STOP"))
    )
    assert next_request(answer, target("gemini"), "gemini") == [
        {"text": "Let me look.", "thoughtSignature": "S1"},
        call,
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_google_signatures_are_kept_by_its_openai_compatible_api(stream: bool) -> None:
    """The field `extra_content`, which contains the signature, is kept with calls and with text, complete and
    streamed.
    """
    host = "https://generativelanguage.googleapis.com/v1beta/openai"
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "S1"}},
    }
    delta = {"content": "Well.", "extra_content": {"google": {"thought_signature": "S2"}}}
    if stream:
        answer = read_stream(
            "openai",
            [
                {"choices": [{"index": 0, "delta": delta}]},
                {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            ],
        )
    else:
        message = {**delta, "tool_calls": [call]}
        answer = read_whole("openai", {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    sent = next_request(answer, target("openai", host=host), "openai")
    assert (sent["tool_calls"], sent["extra_content"]) == ([call], delta["extra_content"])


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "first this",
        "signature": "S",
        "id": "r1",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.summary", "summary": "then that", "format": "unknown", "index": 1},
    {"type": "reasoning.encrypted", "data": "R", "id": "r2", "format": "openai-responses-v1", "index": 2},
]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_details_are_returned_to_openrouter(stream: bool) -> None:
    """In a stream, the text of a reasoning detail arrives first, and its signature follows."""
    if stream:
        pieces = [
            {**DETAILS[0], "text": "first", "signature": None},
            {**DETAILS[0], "text": " this", "signature": "S"},
            *DETAILS[1:],
        ]
        chunks = [{"choices": [{"index": 0, "delta": {"reasoning_details": [piece]}}]} for piece in pieces]
        ending = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
        answer = read_stream("openai", [*chunks, ending])
    else:
        message = {"content": "yes", "reasoning": "first this", "reasoning_details": DETAILS}
        answer = read_whole("openai", {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert next_request(answer, target("openai"), "openai")["reasoning_details"] == DETAILS


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "first this"}, {"type": "summary_text", "text": "then that"}],
    "encrypted_content": "E1",
}
ITEMS: list[dict[str, Any]] = [
    REASONING,
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {**REASONING, "id": "rs_2", "summary": [], "encrypted_content": "E2"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {**REASONING, "id": "rs_3", "summary": [], "encrypted_content": "E3"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_items_are_returned_to_openai_completely_and_in_position(stream: bool) -> None:
    response = {"status": "completed", "output": ITEMS}
    if stream:
        text_delta = {"type": "response.output_text.delta", "output_index": 1, "delta": "I look."}
        done_events = [
            {"type": "response.output_item.done", "output_index": index, "item": item}
            for index, item in enumerate(ITEMS)
        ]
        completed = {"type": "response.completed", "response": response}
        answer = read_stream("openai-responses", [*done_events[:1], text_delta, *done_events[1:], completed])
    else:
        answer = read_whole("openai-responses", response)
    message = {"type": "message", "role": "assistant", "content": "I look."}
    assert answer.reasoning == "first this\n\nthen that"
    assert next_request(answer, target("openai-responses"), "openai-responses") == [ITEMS[0], message, *ITEMS[2:]]


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("changes", [{"model": "another"}, {"host": "https://two.example/v1"}])
def test_signatures_are_not_sent_to_another_model_or_host(protocol: str, changes: dict[str, str]) -> None:
    source, recipient = target(protocol), target(protocol, **changes)
    if "host" in changes:
        recipient = Target("q", source.endpoint, source.model, "k")
    thoughts = (ReasoningBlock(ThoughtForm.TEXT, "hm", "SECRET"), ReasoningBlock(ThoughtForm.ENCRYPTED, "", "SECRET"))
    answer = Answer("yes", (ToolCall("c1", "look", "{}", "SECRET"),), "hm", thoughts=thoughts)
    assert "SECRET" in json.dumps(next_request(answer, source, protocol))
    assert "SECRET" not in json.dumps(next_request(answer, source, protocol, recipient))


@pytest.mark.parametrize("protocol", ["gemini", "openai"])
def test_tool_call_by_another_model_gets_the_placeholder_signature_for_google(protocol: str) -> None:
    """In both of Google's APIs, a call without a signature gets the placeholder that Google documents."""
    host = "https://generativelanguage.googleapis.com/v1beta" + ("/openai" if protocol == "openai" else "")
    answer = Answer("", (ToolCall("c1", "look", "{}"),))
    assert STAND_IN in json.dumps(next_request(answer, target(protocol, host=host), protocol))
    assert STAND_IN not in json.dumps(next_request(answer, target("openai"), "openai"))


@pytest.mark.parametrize("host", ["https://api.deepseek.com", "https://api.moonshot.cn/v1"])
def test_tool_call_turn_always_has_reasoning_content_for_hosts_that_require_reasoning(host: str) -> None:
    """DeepSeek and Kimi reject tool calls in the history without `reasoning_content`. An empty value is accepted."""
    recipient = target("openai", host=host)
    answer = Answer("", (ToolCall("c1", "look", "{}"),))
    assert next_request(answer, recipient, "openai")["reasoning_content"] == ""
    thought = Answer("", answer.tool_calls, "hm")
    assert next_request(thought, recipient, "openai")["reasoning_content"] == "hm"
    assert "reasoning_content" not in next_request(Answer("yes"), recipient, "openai")


def test_invalid_reasoning_details_are_ignored() -> None:
    assert parse_thoughts([None, {}, {"type": "reasoning.text"}, {"type": "reasoning.text", "text": 3}, "x"]) == ()
    assert build_details(parse_thoughts(DETAILS)) == DETAILS
