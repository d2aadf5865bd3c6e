"""Free-text tools, such as Codex's `apply_patch`, with vendors that only have function tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capabilities.core.delivery.model_endpoint import Prepared, model_endpoint, prepare
from capabilities.core.delivery.writing import TextStyle
from capabilities.core.message import ChatRequest, Message, Role, TextPart, Tool, ToolCall
from capabilities.core.protocols.custom_tools import CustomCalls, restore_custom
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.core.wire import Answer, Delta, Finish, Target, ToolCallDelta

GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}}
PATCH = '*** Begin Patch\n+a "b" \\ ü 😀\n*** End Patch'
CHAT = ChatRequest(
    (
        Message(Role.USER, (TextPart("fix"),)),
        Message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "apply_patch", PATCH, custom=True),)),
        Message(Role.TOOL, (TextPart("Done"),), tool_call_id="c1"),
    ),
    tools=(Tool("apply_patch", "Edits files.", custom=GRAMMAR), Tool("add")),
    tool_name="apply_patch",
    inner=("tools[0].custom",),
)


def prepared_for(protocol: str) -> Prepared:
    to = model_endpoint(protocol, Target("p", "https://p.example/v1", "m", "k"), TEXT_ONLY)
    prepared = prepare(CHAT, to, TextStyle("en"))
    assert isinstance(prepared, Prepared)
    return prepared


def test_custom_tool_is_sent_to_claude_as_a_function() -> None:
    payload = prepared_for("anthropic").request.payload
    tool = payload["tools"][0]
    assert tool["input_schema"]["required"] == ["input"]
    assert "lark grammar:\nstart: /.+/" in tool["description"]
    assert payload["tool_choice"] == {"type": "tool", "name": "apply_patch"}
    assert payload["messages"][1]["content"][0]["input"] == {"input": PATCH}


def test_custom_tool_is_sent_to_gemini_as_a_function() -> None:
    payload = prepared_for("gemini").request.payload
    (declared, _) = payload["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"]["properties"] == {"input": {"type": "string"}}
    assert payload["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["apply_patch"]


@pytest.mark.parametrize(("protocol", "names"), [("anthropic", {"apply_patch"}), ("gemini", {"apply_patch"})])
def test_converted_custom_tool_is_not_listed_as_dropped(protocol: str, names: set[str]) -> None:
    prepared = prepared_for(protocol)
    assert prepared.custom_tools == names
    assert prepared.request.dropped_params == ()


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "echo"])
def test_custom_tool_is_sent_unchanged_to_protocols_with_custom_tools(protocol: str) -> None:
    assert prepared_for(protocol).custom_tools == frozenset()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(json.dumps({"input": PATCH}), PATCH), ("not json", "not json"), ('{"patch": 1}', '{"patch": 1}')],
)
def test_custom_tool_call_is_returned_as_plain_text(arguments: str, text: str) -> None:
    answer = Answer(tool_calls=(ToolCall("c1", "apply_patch", arguments), ToolCall("c2", "add", "{}")))
    (patch, add) = restore_custom(answer, {"apply_patch"}).tool_calls
    assert (patch.custom, patch.arguments) == (True, text)
    assert (add.custom, add.arguments) == (False, "{}")


def stream_call(arguments: str, size: int) -> tuple[str, list[Any]]:
    pieces = [arguments[start : start + size] for start in range(0, len(arguments), size)]
    events: list[Any] = [Delta(tool_calls=(ToolCallDelta(0, "c1", "apply_patch"),))]
    events += [Delta(tool_calls=(ToolCallDelta(0, arguments=piece),)) for piece in pieces]
    events += [Delta(tool_calls=(ToolCallDelta(1, "c2", "add", "{}"),)), Finish("tool_calls")]
    calls, out = CustomCalls({"apply_patch"}), []
    for event in events:
        out += calls.restore([event])
    restored = [piece for event in out if isinstance(event, Delta) for piece in event.tool_calls]
    assert all(piece.custom is (piece.index == 0) for piece in restored)
    assert isinstance(out[-1], Finish)
    return "".join(piece.arguments for piece in restored if piece.index == 0), out


@given(st.text(), st.booleans(), st.integers(1, 9))
# In ASCII JSON, this character is an escaped surrogate pair. The test splits it at every position.
@example("😀", True, 1)
def test_streamed_custom_tool_call_has_the_same_text_regardless_of_splits(text: str, is_ascii: bool, size: int) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=is_ascii)
    assert stream_call(arguments, size)[0] == text


@pytest.mark.parametrize("arguments", ["", '{"patch": "x"}', "*** Begin Patch", '{"input": 3}'])
def test_custom_tool_arguments_of_another_form_are_returned_unchanged(arguments: str) -> None:
    assert stream_call(arguments, 3)[0] == arguments


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(
    ("escapes", "text"), [("a\\ud83d b", "a� b"), ("\\ud83d", "�"), ("\\ude00x", "�x"), ("\\ud83d\\n", "�\n")]
)
def test_lone_surrogate_does_not_truncate_the_custom_tool_text(escapes: str, text: str, size: int) -> None:
    assert stream_call(f'{{"input": "{escapes}"}}', size)[0] == text


def test_custom_tool_text_is_streamed_before_the_arguments_are_complete() -> None:
    """Clients such as Codex display a patch while it arrives."""
    calls = CustomCalls({"apply_patch"})
    calls.restore([Delta(tool_calls=(ToolCallDelta(0, "c1", "apply_patch"),))])
    (event,) = calls.restore([Delta(tool_calls=(ToolCallDelta(0, arguments='{"input": "*** Beg'),))])
    assert isinstance(event, Delta)
    assert event.tool_calls[0].arguments == "*** Beg"
