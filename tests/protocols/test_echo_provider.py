"""The embedded `echo` provider reports exactly what it received."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, Tool, ToolCall, make_blob
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.echo.embedded import MODELS, answer
from capabilities.core.protocols.echo.requests import Echo
from capabilities.core.protocols.echo.stream import build_events
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, Target
from tests.protocols.exchange import assemble

BLOCK = "【收到附件】\n类型: 图片\n文件名: a.png"
IMAGE = NativePart(Kind.IMAGE, "image/png", make_blob(b"12345"), filename="a.png")
CHAT = ChatRequest(
    (
        Message(Role.SYSTEM, (TextPart("Be brief."),)),
        Message(Role.USER, (TextPart(BLOCK), IMAGE)),
        Message(Role.ASSISTANT, (), (ToolCall("c1", "look", '{"a": 1}'),)),
        Message(Role.TOOL, (TextPart("seen"),), tool_call_id="c1"),
    ),
    temperature=0.0,
    tools=(Tool("look"),),
)


def test_echo_describes_every_part_of_a_request() -> None:
    reply = answer(CHAT, "echo-vision")
    assert isinstance(reply, Answer)
    assert reply.text.splitlines() == [
        "echo-vision received 4 messages.",
        "1. system: 9 characters of text",
        "   > Be brief.",
        "2. user: 24 characters of text, 1 file",
        "   > 【收到附件】",
        "   > 类型: 图片",
        "   > 文件名: a.png",
        "   - image, image/png, a.png, 5 bytes",
        "3. assistant: 0 characters of text",
        '   - calls look with {"a": 1} (c1)',
        "4. tool (answers c1): 4 characters of text",
        "   > seen",
        "Tools offered: look.",
        "Parameters: temperature 0.0.",
    ]


def test_echo_503_model_always_fails_with_status_503() -> None:
    """Administrators can use the model echo-503 to see a fallback."""
    (event,) = build_events(answer(CHAT, "echo-503"))
    failure = answer(CHAT, "echo-503")
    assert event == failure
    assert isinstance(failure, Failure)
    assert (failure.fault, failure.status) == (Fault.HTTP_503, 503)


@given(st.lists(st.text(max_size=40).map(lambda text: Message(Role.USER, (TextPart(text),))), max_size=4))
def test_echo_stream_assembles_to_the_answer_and_decodes_from_bytes(messages: list[Message]) -> None:
    chat, wire = ChatRequest(tuple(messages)), Echo()
    complete = answer(chat, "echo-text")
    events = build_events(answer(chat, "echo-text"))
    assert assemble(events) == complete
    assert isinstance(events[-1], Finish)
    assert all(isinstance(event, Delta) and event.text for event in events[:-1])
    status, body = wire.reply(chat, "echo-text")
    decoder = wire.decoder()
    assert wire.decode(status, {}, body) == complete
    assert assemble([*decoder.feed(body), *decoder.close()]) == complete


def test_echo_failure_decodes_from_its_response() -> None:
    status, body = Echo().reply(CHAT, "echo-503")
    assert status == 503
    assert Echo().decode(status, {}, body) == answer(CHAT, "echo-503")


@pytest.mark.parametrize("model", MODELS)
def test_echo_request_preview_elides_files(model: str) -> None:
    request = PROTOCOLS["echo"].encode(CHAT, Target("echo", "echo://local", model), stream=False)
    assert request.url == "echo://local"
    preview = request.elide()
    assert preview["model"] == model
    elided = {"type": "image", "mimeType": "image/png", "filename": "a.png", "data": "<5 bytes>"}
    assert preview["messages"][1]["content"][1] == elided


def test_only_tool_results_have_a_tool_call_id_in_an_echo_request() -> None:
    request = PROTOCOLS["echo"].encode(CHAT, Target("echo", "echo://local", MODELS[0]), stream=False)
    assert [message.get("tool_call_id", "none") for message in request.payload["messages"]] == ["none"] * 3 + ["c1"]
