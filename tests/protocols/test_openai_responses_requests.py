"""Translation of requests to OpenAI's Responses API, and of its unusual responses."""

from __future__ import annotations

import json
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
from capabilities.core.providers.presets import endpoint_protocol
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, Target, ToolCallDelta, UpstreamRequest
from tests.protocols.exchange import assemble

NAME = "openai-responses"
BASE = "https://api.openai.com/v1"
IMAGE = NativePart(Kind.IMAGE, "image/png", make_blob(b"123"), filename="a.png")
PAPER = NativePart(Kind.DOCUMENT, "application/pdf", make_blob(b"1234"), filename="a.pdf")
SCHEMA = {"type": "object", "properties": {}}
CLOSED = {"additionalProperties": False}


def build_message(role: Role, *parts: Any, **fields: Any) -> Message:
    return Message(role, tuple(TextPart(part) if isinstance(part, str) else part for part in parts), **fields)


def encode(
    *messages: Message, quirks: dict[str, Any] | None = None, endpoint: str = BASE, model: str = "gpt-5.6", **chat: Any
) -> UpstreamRequest:
    conversation = messages or (build_message(Role.USER, "hi"),)
    return PROTOCOLS[NAME].encode(
        ChatRequest(conversation, **chat), Target("p", endpoint, model, "k", quirks=quirks or {}), stream=False
    )


def items(*messages: Message, **fields: Any) -> list[Any]:
    return list(encode(*messages, **fields).elide()["input"])


def read_stream(*events: dict[str, Any]) -> Answer | Failure:
    decoder = PROTOCOLS[NAME].decoder()
    stream_events = [
        stream_event for event in events for stream_event in decoder.feed(f"data: {json.dumps(event)}\n\n".encode())
    ]
    return assemble([*stream_events, *decoder.close()])


@pytest.mark.parametrize("endpoint", [BASE, f"{BASE}/", f"{BASE}/responses", f"{BASE}/responses/"])
def test_responses_path_is_appended_once_and_identifies_the_protocol(endpoint: str) -> None:
    assert encode(endpoint=endpoint).url == f"{BASE}/responses"
    assert endpoint_protocol(f"{BASE}/responses") == NAME


def test_minimal_request_disables_storage_and_requests_encrypted_reasoning() -> None:
    """OpenAI is asked not to store the request. It returns encrypted reasoning, which is sent back in the next turn."""
    request = encode()
    assert request.payload == {
        "model": "gpt-5.6",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert request.headers["authorization"] == "Bearer k"


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4.1-mini", "gpt-5-chat-latest", "chatgpt-4o-latest"])
def test_encrypted_reasoning_is_not_requested_from_models_without_reasoning(model: str) -> None:
    """Models without reasoning reject `include`, so it is omitted. It is also omitted if `drop_params` lists it or the
    caller sends null.
    """
    assert "include" not in encode(model=model).payload
    assert "include" not in encode(quirks={"drop_params": ["include"]}).payload
    assert "include" not in encode(extra={"include": None}).payload


def test_messages_calls_and_results_become_items_in_order() -> None:
    """System messages keep their positions. Calls and results of custom tools have their own item types."""
    calls = (ToolCall("c1", "look", "{}"), ToolCall("c2", "patch", "*** Begin", custom=True))
    sent_items = items(
        build_message(Role.SYSTEM, "Be brief."),
        build_message(Role.USER, "hi", IMAGE, PAPER),
        build_message(Role.ASSISTANT, "I look.", tool_calls=calls),
        build_message(Role.TOOL, "seen", tool_call_id="c1"),
        build_message(Role.TOOL, "done", tool_call_id="c2"),
    )
    assert sent_items == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,<3 bytes>", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,<4 bytes>"},
            ],
        },
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": "c1", "output": "seen"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
    ]


@pytest.mark.parametrize(
    ("tool_media", "output", "after"),
    [
        ("native", [{"type": "input_image", "image_url": "data:image/png;base64,<3 bytes>", "detail": "auto"}], 0),
        ("text", "[image a.png (image/png) cannot be sent here]", 0),
        ("hoist", "", 1),
    ],
)
def test_image_in_a_tool_result_stays_in_the_result_unless_a_quirk_forbids(
    tool_media: str, output: Any, after: int
) -> None:
    """Unlike in chat completions, a tool result may contain images. A quirk is set for hosts that reject them."""
    calling = build_message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "look", "{}"),))
    sent_items = items(
        build_message(Role.USER, "hi"),
        calling,
        build_message(Role.TOOL, IMAGE, tool_call_id="c1"),
        quirks={"tool_media": tool_media},
    )
    assert sent_items[2]["output"] == output
    assert len(sent_items) == 3 + after


def test_tools_are_flat_objects_and_strict_only_on_request() -> None:
    """Unlike in chat completions, a missing `strict` means true, so `strict` is always sent. Tools and grammars are
    flat objects.
    """
    rule = {"syntax": "lark", "definition": "start: WORD"}
    grammar = {"type": "grammar", "grammar": rule}
    payload = encode(tools=(Tool("look", "Looks.", SCHEMA), Tool("patch", custom=grammar)), tool_name="patch").payload
    assert payload["tools"] == [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": False},
        {
            "type": "custom",
            "name": "patch",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: WORD"},
        },
    ]
    assert payload["tool_choice"] == {"type": "custom", "name": "patch"}
    allowed = encode(tools=(Tool("look"), Tool("smell")), tool_choice="required", allowed_tools=("look",)).payload
    tools = [{"type": "function", "name": "look"}]
    assert allowed["tool_choice"] == {"type": "allowed_tools", "mode": "required", "tools": tools}


def test_response_format_and_verbosity_are_both_set_in_text() -> None:
    """The schema is a flat object. Verbosity, effort and summary are set in their own objects. The token limit is at
    least 16.
    """
    shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA, "strict": True}}
    extra = {"verbosity": "low", "reasoning_effort": "high", "reasoning_summary": "auto", "logprobs": True}
    payload = encode(response_format=shape, extra=extra, max_tokens=5).payload
    assert payload["text"] == {
        "format": {
            "type": "json_schema",
            "name": "city",
            "schema": {**SCHEMA, "additionalProperties": False},
            "strict": True,
        },
        "verbosity": "low",
    }
    assert payload["reasoning"] == {"effort": "high", "summary": "auto"}
    assert payload["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert payload["max_output_tokens"] == 16
    assert encode(max_tokens=500).payload["max_output_tokens"] == 500


def test_schema_is_put_in_the_prompt_for_a_host_without_structured_output() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
    request = encode(response_format=shape, quirks={"structured": "prompt"})
    assert "text" not in request.payload
    assert "JSON Schema" in request.payload["input"][0]["content"]


def test_cache_marker_is_set_on_a_user_content_part() -> None:
    """An assistant turn cannot contain OpenAI's cache marker, so its marker is reported as dropped."""
    mark = CacheBreakpoint(3600, "messages[0].content[0].cache_control")
    quirks = {"cache_marks": "prompt_cache_breakpoint"}
    (item,) = items(build_message(Role.USER, TextPart("hi", mark)), quirks=quirks)
    assert item["content"] == [
        {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
    ]
    request = encode(
        build_message(Role.USER, "hi"),
        build_message(Role.ASSISTANT, TextPart("yes", mark)),
        quirks=quirks,
        inner=(mark.path,),
    )
    assert request.dropped_params == (mark.path,)


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}, Fault.HTTP_429),
        (
            {"status": "failed", "error": {"code": "bio_policy", "message": "no"}},
            Fault.CONTENT_POLICY,
        ),
        ({"status": "failed", "error": {"code": "invalid_image", "message": "broken"}}, Fault.HTTP_400),
        ({"status": "failed", "error": {"code": "server_error", "message": "oh"}}, Fault.HTTP_500),
        ({"status": "failed", "error": None}, Fault.HTTP_500),
        ({"status": "cancelled", "output": []}, Fault.HTTP_503),
        ({"status": "in_progress", "output": []}, Fault.HTTP_502),
        ({"status": "completed", "output": []}, Fault.EMPTY_CONTENT),
        ({"status": "completed"}, Fault.BAD_SHAPE),
    ],
)
def test_response_without_an_answer_is_a_failure(response: dict[str, Any], fault: Fault) -> None:
    outcome = PROTOCOLS[NAME].decode(200, {}, json.dumps(response).encode())
    assert isinstance(outcome, Failure)
    assert outcome.fault is fault
    streamed = read_stream({"type": f"response.{response['status']}", "response": response})
    assert isinstance(streamed, Failure)
    states = ("cancelled", "in_progress")  # No event at the end of a stream reports these statuses.
    assert streamed.fault is {Fault.BAD_SHAPE: Fault.EMPTY_CONTENT}.get(fault, fault) or response["status"] in states


def test_rejection_of_a_nested_parameter_or_encrypted_content_names_the_parameter() -> None:
    for message, param in (
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning.effort"),
        ("Encrypted content is not supported with this model.", "include"),
    ):
        body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}
        failure = PROTOCOLS[NAME].decode(400, {}, json.dumps(body).encode())
        assert isinstance(failure, Failure)
        assert (failure.fault, failure.param) == (Fault.UNSUPPORTED_PARAMETER, param)


def test_stream_with_only_complete_items_is_read_completely() -> None:
    """Some hosts send text, reasoning and calls only in complete items or in the complete response."""
    message_item = {"type": "message", "content": [{"type": "output_text", "text": "yes"}]}
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'}
    output = [thought, message_item, call]
    done_events = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(output)
    ]
    end = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    for events in ([*done_events, end], [end]):
        answer = read_stream(*events)
        assert isinstance(answer, Answer), answer
        assert (answer.text, answer.reasoning, answer.finish_reason) == ("yes", "hm", "tool_calls")
        assert answer.tool_calls == (ToolCall("c1", "look", '{"a": 1}'),)


def test_each_streamed_message_item_is_read_exactly_once() -> None:
    items = [{"type": "message", "content": [{"type": "output_text", "text": text}]} for text in ("one ", "two")]
    done_events = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(items)
    ]
    end = {"type": "response.completed", "response": {"status": "completed", "output": items}}
    piece = {"type": "response.output_text.delta", "delta": "one "}
    second_piece = {"type": "response.output_text.delta", "delta": "two"}
    for events in (
        done_events,
        [{**piece, "output_index": 0}, *done_events],
        [piece, done_events[0], second_piece, done_events[1]],
    ):
        answer = read_stream(*events, end)
        assert isinstance(answer, Answer), answer
        assert answer.text == "one two"


def test_summary_parts_become_paragraphs_and_custom_tool_input_is_streamed() -> None:
    decoder = PROTOCOLS[NAME].decoder()
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": ""}
    events = [
        {"type": "response.reasoning_summary_part.added", "output_index": 0},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "one"},
        {"type": "response.reasoning_summary_part.added", "output_index": 0},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "two"},
        {"type": "response.output_item.added", "output_index": 1, "item": item},
        {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": "*** "},
        {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": "Begin"},
        {"type": "response.output_item.done", "output_index": 1, "item": {**item, "input": "*** Begin"}},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    stream_events = [
        stream_event for event in events for stream_event in decoder.feed(f"data: {json.dumps(event)}\n\n".encode())
    ]
    assert "".join(delta.reasoning for delta in stream_events if isinstance(delta, Delta)) == "one\n\ntwo"
    pieces = [delta.tool_calls[0] for delta in stream_events if isinstance(delta, Delta) and delta.tool_calls]
    assert pieces[0] == ToolCallDelta(0, "c1", "patch", "", custom=True)
    assert "".join(piece.arguments for piece in pieces) == "*** Begin"
    assert isinstance(stream_events[-1], Finish)


def test_log_probabilities_are_read_from_the_answer() -> None:
    token = {"token": "yes", "logprob": -0.1, "bytes": [1], "top_logprobs": []}
    part = {"type": "output_text", "text": "yes", "logprobs": [token]}
    body = {"status": "completed", "output": [{"type": "message", "content": [part]}]}
    answer = PROTOCOLS[NAME].decode(200, {}, json.dumps(body).encode())
    assert isinstance(answer, Answer)
    assert answer.logprobs == {"content": [token], "refusal": None}
