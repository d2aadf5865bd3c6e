"""What an Anthropic request looks like: the rows of the translation table, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, Tool, ToolCall, blob_of
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.schema import closed
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, Fault, Target, UpstreamRequest

IMAGE = NativePart(Kind.IMAGE, "image/png", blob_of(b"123"), filename="a.png")
PDF = NativePart(Kind.DOCUMENT, "application/pdf", blob_of(b"123"), filename="a.pdf")
AUDIO = NativePart(Kind.AUDIO, "audio/wav", blob_of(b"123"))
CALL = ToolCall("call.1", "look", '{"a": 1}')


def say(role: Role, *parts: Any, **more: Any) -> Message:
    return Message(role, tuple(TextPart(part) if isinstance(part, str) else part for part in parts), **more)


def encode(
    *messages: Message, quirks: dict[str, Any] | None = None, limit: int | None = None, **chat: Any
) -> UpstreamRequest:
    target = Target("p", "https://api.anthropic.com/v1", "claude", "k", quirks=quirks or {}, max_output_tokens=limit)
    said = messages or (say(Role.USER, "hi"),)
    return PROTOCOLS["anthropic"].encode(ChatRequest(said, **chat), target, stream=False)


def turns(*messages: Message, **more: Any) -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["content"]) for turn in encode(*messages, **more).elide()["messages"]]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_the_smallest_request_names_its_version_and_a_limit() -> None:
    """max_tokens is required: the request's, else the model's, else 4096."""
    request = encode()
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert (request.headers["anthropic-version"], request.headers["x-api-key"]) == ("2023-06-01", "k")
    assert request.payload == {
        "model": "claude",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [text("hi")]}],
    }
    assert encode(limit=99).payload["max_tokens"] == 99
    assert encode(limit=99, max_tokens=5).payload["max_tokens"] == 5


def test_leading_system_words_are_the_system_field_and_later_ones_lead_the_next_turn() -> None:
    """There is no system role within a conversation."""
    system = say(Role.SYSTEM, "one"), say(Role.SYSTEM, "two")
    later = say(Role.USER, "hi"), say(Role.ASSISTANT, "yes"), say(Role.SYSTEM, "hurry"), say(Role.USER, "well?")
    request = encode(*system, *later)
    assert request.payload["system"] == "one\n\ntwo"
    assert request.payload["messages"][2] == {"role": "user", "content": [text("hurry"), text("well?")]}


def test_a_conversation_begins_with_the_user_and_speakers_take_turns() -> None:
    """Neighbours of one role are merged, empty text is left out, an opening is put before an assistant."""
    said = say(Role.ASSISTANT, "I begin"), say(Role.USER, "a"), say(Role.USER, ""), say(Role.USER, "b")
    assert turns(*said) == [
        ("user", [text(".")]),
        ("assistant", [text("I begin")]),
        ("user", [text("a"), text("b")]),
    ]
    assert turns(say(Role.SYSTEM, "only system")) == [("user", [text(".")])]


def test_tool_results_come_first_in_one_user_turn() -> None:
    """N results are one user message; ids keep to the allowed letters on both sides."""
    asked = say(Role.ASSISTANT, tool_calls=(CALL, ToolCall("call_1", "look", "not json")))
    results = say(Role.TOOL, "r1", IMAGE, tool_call_id="call.1"), say(Role.TOOL, "r2", tool_call_id="call_1")
    seen = turns(say(Role.USER, "hi"), asked, *results, say(Role.USER, "go on"))
    uses = seen[1][1]
    assert [use["id"] for use in uses] == ["call_1", "call_1_2"]
    assert [use["input"] for use in uses] == [{"a": 1}, {"_raw": "not json"}]
    role, blocks = seen[2]
    assert (role, [block["type"] for block in blocks]) == ("user", ["tool_result", "tool_result", "text"])
    assert [block["tool_use_id"] for block in blocks[:2]] == ["call_1", "call_1_2"]
    assert [block["type"] for block in blocks[0]["content"]] == ["text", "image"]
    assert blocks[1]["content"] == "r2"


def test_a_result_nobody_asked_for_is_told_as_text() -> None:
    """An orphaned result would be refused as a block."""
    seen = turns(say(Role.USER, "hi"), say(Role.TOOL, "r", tool_call_id="gone"))
    assert seen == [("user", [text("hi"), text("Tool result: r")])]


def test_an_assistant_s_files_move_to_the_next_user_turn() -> None:
    """Documents in assistant turns are refused."""
    seen = turns(say(Role.USER, "hi"), say(Role.ASSISTANT, "look", PDF), say(Role.USER, "ok"))
    assert [block["type"] for block in seen[2][1]] == ["document", "text"]


@pytest.mark.requirement("MCR-2.1", "MCR-2.5")
def test_files_are_images_and_documents_with_bare_base64() -> None:
    """An image and a PDF have slots, audio has none."""
    _, blocks = turns(say(Role.USER, IMAGE, PDF, AUDIO))[0]
    source = {"type": "base64", "media_type": "image/png", "data": "<3 bytes>"}
    assert blocks[0] == {"type": "image", "source": source}
    assert blocks[1]["title"] == "a.pdf"
    assert blocks[1]["source"]["media_type"] == "application/pdf"
    assert "cannot be sent here" in blocks[2]["text"]
    link = NativePart(Kind.IMAGE, "image/png", url="https://h/a.png")
    assert turns(say(Role.USER, link))[0][1][0]["source"] == {"type": "url", "url": "https://h/a.png"}


@pytest.mark.parametrize(
    ("chat", "choice"),
    [
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_name": "look"}, {"type": "tool", "name": "look"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"tool_choice": "required", "parallel_tool_calls": False}, {"type": "any", "disable_parallel_tool_use": True}),
    ],
)
def test_the_choice_among_tools_has_their_words(chat: dict[str, Any], choice: Any) -> None:
    """Required is any, a name is a tool, the refusal of parallel calls stands inside."""
    payload = encode(tools=(Tool("look"),), **chat).payload
    assert payload["tool_choice"] == choice
    assert payload["tools"] == [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]


def test_sampling_is_dropped_visibly_unless_the_provider_takes_it() -> None:
    """Newer models refuse it; where it is taken, temperature is at most 1 and top_p does not stand beside it."""
    dropped = encode(temperature=1.5, top_p=0.5, extra={"seed": 1, "user": "u"})
    assert dropped.dropped_params == ("temperature", "top_p", "seed", "user")
    assert "temperature" not in dropped.payload
    taken = encode(temperature=1.5, top_p=0.5, quirks={"sampling": True})
    assert (taken.payload["temperature"], taken.dropped_params) == (1.0, ("top_p",))
    assert encode(temperature=0.0, quirks={"sampling": True}).payload["temperature"] == 0.0


def test_stops_of_white_space_alone_are_left_out() -> None:
    """They would be refused."""
    request = encode(stop=("END", "\n"))
    assert (request.payload["stop_sequences"], request.dropped_params) == (["END"], ("stop",))


def test_a_schema_is_closed_all_the_way_down() -> None:
    """Every object says additionalProperties false; properties may be named anything."""
    schema = {"type": "object", "properties": {"type": {"type": "string"}, "a": {"anyOf": [{"type": "object"}]}}}
    shape = {"type": "json_schema", "json_schema": {"schema": schema}}
    sent = encode(response_format=shape).payload["output_config"]["format"]["schema"]
    assert sent["additionalProperties"] is False
    assert sent["properties"]["type"] == {"type": "string"}
    assert sent["properties"]["a"]["anyOf"] == [{"type": "object", "additionalProperties": False}]
    assert closed(sent) == sent


def test_json_without_a_schema_is_asked_for_in_words() -> None:
    """There is no mode for it."""
    assert "JSON" in encode(response_format={"type": "json_object"}).payload["system"]


def test_effort_is_said_where_it_has_a_word() -> None:
    """Other efforts are dropped visibly."""
    assert encode(extra={"reasoning_effort": "high"}).payload["output_config"] == {"effort": "high"}
    assert encode(extra={"reasoning_effort": "none"}).dropped_params == ("reasoning_effort",)


def test_signed_thoughts_go_back_and_others_stay_out() -> None:
    """The proof of a thought travels on the first call; a thought without one is another vendor's."""
    body = (
        b'{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"S"},'
        b'{"type":"tool_use","id":"t1","name":"look","input":{}}],"stop_reason":"tool_use"}'
    )
    answer = PROTOCOLS["anthropic"].decode(200, {}, body)
    assert isinstance(answer, Answer)
    back = say(Role.ASSISTANT, reasoning=answer.reasoning, tool_calls=answer.tool_calls)
    blocks = turns(say(Role.USER, "hi"), back)[1][1]
    assert blocks[0] == {"type": "thinking", "thinking": "hm", "signature": "S"}
    foreign = turns(say(Role.USER, "hi"), say(Role.ASSISTANT, "yes", reasoning="hm"))
    assert foreign[1][1] == [text("yes")]


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_reasons_to_stop_are_told_in_openai_s_words(reason: str, word: str) -> None:
    """Each of the vendor's reasons has one."""
    body = f'{{"content":[{{"type":"text","text":"x"}}],"stop_reason":"{reason}"}}'.encode()
    answer = PROTOCOLS["anthropic"].decode(200, {}, body)
    assert isinstance(answer, Answer)
    assert answer.finish_reason == word


def test_an_answer_without_blocks_is_no_answer() -> None:
    """Nothing said is empty, no blocks at all is another shape."""
    empty = PROTOCOLS["anthropic"].decode(200, {}, b'{"content":[],"stop_reason":"end_turn"}')
    other = PROTOCOLS["anthropic"].decode(200, {}, b'{"status":"ok"}')
    assert isinstance(empty, Failure)
    assert isinstance(other, Failure)
    assert (empty.fault, other.fault) == (Fault.EMPTY_CONTENT, Fault.BAD_SHAPE)
