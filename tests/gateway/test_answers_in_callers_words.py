"""Responses to callers that requested log probabilities, custom tools or the deprecated `functions`."""

from __future__ import annotations

import json
from typing import Any

from capabilities.core.message import ToolCall
from capabilities.core.wire import Answer, Delta, Finish, ToolCallDelta
from routing_admin.gateway.chat.rendering import Chunks, completion_json

PROBABLE = {"content": [{"token": "hi", "logprob": -0.1}]}
CALLS = (ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "smell", "{}"))
CUSTOM = ToolCall("c1", "sql", "select 1", custom=True)


def first_choice(answer: Answer, **more: Any) -> dict[str, Any]:
    choice: dict[str, Any] = completion_json(answer, "m", **more)["choices"][0]
    return choice


def chunk(event: bytes) -> dict[str, Any]:
    choice: dict[str, Any] = json.loads(event.split(b"\n\n")[0].removeprefix(b"data: "))["choices"][0]
    return choice


def test_log_probabilities_are_part_of_the_choice():
    assert first_choice(Answer("hi", logprobs=PROBABLE))["logprobs"] == PROBABLE
    assert first_choice(Answer("hi"))["logprobs"] is None
    chunks = Chunks("m")
    first, second = (chunk(chunks.write_delta(delta)) for delta in (Delta("hi", logprobs=PROBABLE), Delta("!")))
    assert (first["logprobs"], first["delta"]["content"]) == (PROBABLE, "hi")
    assert (second["logprobs"], second["delta"]) == (None, {"content": "!"})


def test_custom_tool_call_has_its_input_as_text():
    (call,) = first_choice(Answer(tool_calls=(CUSTOM,), finish_reason="tool_calls"))["message"]["tool_calls"]
    assert call == {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    begun, rest = ToolCallDelta(0, "c1", "sql", "sel", custom=True), ToolCallDelta(0, arguments="ect", custom=True)
    chunks = Chunks("m")
    pieces = [
        chunk(chunks.write_delta(Delta(tool_calls=(piece,))))["delta"]["tool_calls"][0] for piece in (begun, rest)
    ]
    assert pieces == [
        {"index": 0, "id": "c1", "type": "custom", "custom": {"input": "sel", "name": "sql"}},
        {"index": 0, "custom": {"input": "ect"}},
    ]


def test_caller_that_sent_functions_gets_a_function_call():
    """A caller that sent `functions` gets only the first tool call.

    The call arrives as `function_call`, which is also the finish reason.
    """
    choice = first_choice(Answer(tool_calls=CALLS, finish_reason="tool_calls"), old_calls=True)
    assert choice["message"]["function_call"] == {"name": "look", "arguments": '{"a": 1}'}
    assert ("tool_calls" in choice["message"], choice["finish_reason"]) == (False, "function_call")
    chunks = Chunks("m", old_calls=True)
    begun = chunk(chunks.write_delta(Delta(tool_calls=(ToolCallDelta(0, "c1", "look", '{"a"'),))))
    rest = chunk(chunks.write_delta(Delta(tool_calls=(ToolCallDelta(0, arguments=": 1}"),))))
    assert begun["delta"]["function_call"] == {"name": "look", "arguments": '{"a"'}
    assert rest["delta"] == {"function_call": {"arguments": ": 1}"}}
    assert chunks.write_delta(Delta(tool_calls=(ToolCallDelta(1, "c2", "smell", "{}"),))) == b""
    assert chunk(chunks.write_finish(Finish("tool_calls")))["finish_reason"] == "function_call"
