"""What OpenAI-compatible hosts return beyond text and function calls: log probabilities, custom tools, stop
sequences.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.wire import Answer, Delta, Finish, StreamEvent, Target, ToolCallDelta
from tests.protocols.exchange import join_body

PROBABLE = {"content": [{"token": "hi", "logprob": -0.1, "bytes": [104, 105], "top_logprobs": []}], "refusal": None}


def decode_answer(message: dict[str, Any], **choice: Any) -> Answer:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **choice}]}
    answer = PROTOCOLS["openai"].decode(200, {}, json.dumps(body).encode())
    assert isinstance(answer, Answer)
    return answer


def stream(*choices: dict[str, Any]) -> list[StreamEvent]:
    decoder = PROTOCOLS["openai"].decoder()
    events: list[StreamEvent] = []
    for choice in choices:
        chunk = {"choices": [{"index": 0, "finish_reason": None, "delta": {}, **choice}]}
        events += decoder.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return [*events, *decoder.feed(b"data: [DONE]\n\n"), *decoder.close()]


def test_log_probabilities_of_a_complete_answer_are_kept() -> None:
    """Incomplete log probabilities are filled in as OpenAI's format requires, or dropped if no token is usable."""
    assert decode_answer({"content": "hi"}, logprobs=PROBABLE).logprobs == PROBABLE
    assert (
        decode_answer({"content": "hi"}, logprobs={"content": [{"token": "hi", "logprob": -0.1}]}).logprobs == PROBABLE
    )
    assert decode_answer({"content": "hi"}, logprobs={"content": [{"token": "hi"}, None]}).logprobs is None
    assert decode_answer({"content": "hi"}, logprobs=None).logprobs is None


def test_streamed_log_probabilities_stay_with_their_chunk() -> None:
    """Log probabilities remain in the chunk in which they arrived, even if the chunk has no text."""
    events = stream(
        {"delta": {"content": "hi"}, "logprobs": PROBABLE},
        {"logprobs": PROBABLE},
        {"delta": {"content": "!"}, "logprobs": None},
        {"finish_reason": "stop"},
    )
    assert events[:3] == [Delta("hi", logprobs=PROBABLE), Delta(logprobs=PROBABLE), Delta("!")]
    assert isinstance(events[3], Finish)


def test_custom_tool_call_input_is_plain_text_complete_and_streamed() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert decode_answer({"content": None, "tool_calls": [call]}).tool_calls == (
        ToolCall("c1", "sql", "select 1", custom=True),
    )
    first_piece = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sql", "input": "sel"}}
    events = stream(
        {"delta": {"tool_calls": [first_piece]}},
        {"delta": {"tool_calls": [{"index": 0, "custom": {"input": "ect"}}]}},
        {"finish_reason": "tool_calls"},
    )
    assert events[:2] == [
        Delta(tool_calls=(ToolCallDelta(0, "c1", "sql", "sel", custom=True),)),
        Delta(tool_calls=(ToolCallDelta(0, arguments="ect", custom=True),)),
    ]


@pytest.mark.parametrize("key", ["stop_reason", "matched_stop"])
def test_stop_sequence_reported_by_a_host_is_kept(key: str) -> None:
    """Hosts with vLLM send the stop sequence in `stop_reason`, and hosts with SGLang send it in `matched_stop`.

    A number in these fields is a token id and is ignored.
    """
    assert decode_answer({"content": "hi"}, **{key: "END"}).details.stop_sequence == "END"
    assert decode_answer({"content": "hi"}, **{key: 2}).details.stop_sequence is None


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("openai", '"content":"Error:\\nno such city"'),
        ("openai-responses", '"output":"Error:\\nno such city"'),
        ("gemini", '"response":{"error":"no such city"}'),
        ("anthropic", '"is_error":true'),
    ],
)
def test_failed_tool_result_is_marked_as_failed_in_every_protocol(protocol: str, expected: str) -> None:
    """If the protocol has a field for it, the field marks a failed tool result. Otherwise, the result's text does."""
    call = Message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "look", "{}"),))
    failed = Message(Role.TOOL, (TextPart("no such city"),), tool_call_id="c1", is_error=True)
    chat = ChatRequest((Message(Role.USER, (TextPart("Look"),)), call, failed))
    request = PROTOCOLS[protocol].encode(chat, Target("p", "https://p.example/v1", "m", "k"), stream=False)
    assert expected in join_body(request).decode()
