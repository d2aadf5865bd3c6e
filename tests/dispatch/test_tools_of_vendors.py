"""Tool names, call ids and the number of tools are adapted to each vendor's limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.vendor_items import RULES, fit_tools, restore_names, restore_names_in
from capabilities.core.message import ChatRequest, Message, Role, TextPart, Tool, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.wire import Answer, Delta, Failure, Fault, Target, ToolCallDelta
from tests.protocols.exchange import join_body


def make_chat(name: str, call_id: str = "call_1") -> ChatRequest:
    call = Message(Role.ASSISTANT, tool_calls=(ToolCall(call_id, name, "{}"),))
    result = Message(Role.TOOL, (TextPart("4"),), tool_call_id=call_id)
    question = Message(Role.USER, (TextPart("2 + 2"),))
    return ChatRequest((question, call, result), tools=(Tool(name),), tool_name=name, allowed_tools=(name,))


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini"])
# Except for `add`, these names are too long or contain characters that a vendor rejects.
@pytest.mark.parametrize("name", ["files.read/line", "x" * 90, "7 days", "名前", "add"])
def test_tool_name_is_adapted_to_the_vendor_in_every_field(protocol: str, name: str) -> None:
    chat, names = fit_tools(make_chat(name), protocol)
    (tool,) = chat.tools
    assert RULES[protocol].name.fullmatch(tool.name)
    assert (chat.tool_name, chat.allowed_tools, chat.messages[1].tool_calls[0].name) == (
        *(tool.name, (tool.name,), tool.name),
    )
    assert names.get(tool.name, tool.name) == name
    body = join_body(PROTOCOLS[protocol].encode(chat, Target("p", "https://p.example/v1", "m", "k"), stream=False))
    assert name == tool.name or json.dumps(name)[1:-1] not in body.decode()


@pytest.mark.parametrize(("protocol", "limit"), [("openai", 40), ("openai-responses", 64), ("anthropic", 64)])
def test_long_call_id_is_shortened_equally_in_call_and_result(protocol: str, limit: int) -> None:
    chat, _ = fit_tools(make_chat("add", "toolu_" + "x" * 90), protocol)
    sent = chat.messages[1].tool_calls[0].id
    assert len(sent) <= limit
    assert chat.messages[2].tool_call_id == sent
    assert fit_tools(make_chat("add", "toolu_" + "x" * 90), protocol)[0] == chat


@given(st.lists(st.text(min_size=1, max_size=100), min_size=1, max_size=8, unique=True))
def test_adapted_tool_names_stay_distinct_and_are_restored(names: list[str]) -> None:
    chat = ChatRequest((), tools=tuple(Tool(name) for name in names))
    for protocol in RULES:
        fitted, original_names = fit_tools(chat, protocol)
        sent = [tool.name for tool in fitted.tools]
        assert len(set(sent)) == len(names)
        assert [original_names.get(name, name) for name in sent] == names
        answer = restore_names(Answer("", tuple(ToolCall("c", name, "{}") for name in sent)), original_names)
        assert [call.name for call in answer.tool_calls] == names
        pieces = Delta(tool_calls=(ToolCallDelta(0, "c", sent[0]), ToolCallDelta(0, arguments="{}")))
        event: Any = restore_names_in(pieces, original_names)
        assert [call.name for call in event.tool_calls] == [names[0], None]


@pytest.mark.parametrize(
    "sentence",
    [
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129.",
        "Too many tools: 300. Use fewer.",
        "tools: a request can have at most 64 entries",
    ],
)
def test_too_many_tools_are_a_capability_mismatch(sentence: str) -> None:
    """If a model rejects the number of tools, the next candidate is called.

    Replacing files with descriptions would not help.
    """
    body = json.dumps({"error": {"message": sentence, "type": "invalid_request_error", "param": "tools"}}).encode()
    failure = PROTOCOLS["openai"].decode(400, {}, body)
    assert isinstance(failure, Failure)
    assert (failure.fault, failure.param) == (Fault.CAPABILITY_MISMATCH, "tools")
