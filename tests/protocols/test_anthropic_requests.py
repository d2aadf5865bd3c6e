"""Translation of requests to Anthropic's Messages API, and of its responses."""

from __future__ import annotations

from dataclasses import replace
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
from capabilities.core.protocols.parameters import CONTINUE
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, Fault, Target, UpstreamRequest

IMAGE = NativePart(Kind.IMAGE, "image/png", make_blob(b"123"), filename="a.png")
PDF = NativePart(Kind.DOCUMENT, "application/pdf", make_blob(b"123"), filename="a.pdf")
AUDIO = NativePart(Kind.AUDIO, "audio/wav", make_blob(b"123"))
CALL = ToolCall("call.1", "look", '{"a": 1}')


def message(role: Role, *parts: Any, **fields: Any) -> Message:
    return Message(role, tuple(TextPart(part) if isinstance(part, str) else part for part in parts), **fields)


def encode(
    *messages: Message, quirks: dict[str, Any] | None = None, limit: int | None = None, **chat: Any
) -> UpstreamRequest:
    target = Target("p", "https://api.anthropic.com/v1", "claude", "k", quirks=quirks or {}, max_output_tokens=limit)
    conversation = messages or (message(Role.USER, "hi"),)
    return PROTOCOLS["anthropic"].encode(ChatRequest(conversation, **chat), target, stream=False)


def turns(*messages: Message, **fields: Any) -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["content"]) for turn in encode(*messages, **fields).elide()["messages"]]


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


def test_minimal_request_has_the_api_version_and_max_tokens() -> None:
    """`max_tokens` is required: it is the request's value, else the model's limit, else 4096."""
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


def test_leading_system_messages_become_system_and_later_ones_join_the_next_user_turn() -> None:
    """Later system messages are added to the next user turn, since Anthropic allows no system role within a
    conversation.
    """
    system = message(Role.SYSTEM, "one"), message(Role.SYSTEM, "two")
    conversation = (
        message(Role.USER, "hi"),
        message(Role.ASSISTANT, "yes"),
        message(Role.SYSTEM, "hurry"),
        message(Role.USER, "well?"),
    )
    request = encode(*system, *conversation)
    assert request.payload["system"] == "one\n\ntwo"
    assert request.payload["messages"][2] == {"role": "user", "content": [text("hurry"), text("well?")]}


def test_conversation_starts_with_a_user_turn_and_roles_alternate() -> None:
    """Consecutive messages of the same role are merged. If the first turn is not the user's, a user turn is
    inserted.
    """
    conversation = (
        message(Role.ASSISTANT, "I begin"),
        message(Role.USER, "a"),
        message(Role.USER, ""),
        message(Role.USER, "b"),
    )
    assert turns(*conversation) == [
        ("user", [text(".")]),
        ("assistant", [text("I begin")]),
        ("user", [text("a"), text("b")]),
    ]
    assert turns(message(Role.SYSTEM, "only system")) == [("user", [text(".")])]


def test_tool_results_are_the_first_blocks_of_one_user_turn() -> None:
    """Call and result ids are adapted to the pattern that Anthropic requires."""
    calling = message(Role.ASSISTANT, tool_calls=(CALL, ToolCall("call_1", "look", "not json")))
    results = message(Role.TOOL, "r1", IMAGE, tool_call_id="call.1"), message(Role.TOOL, "r2", tool_call_id="call_1")
    sent_turns = turns(message(Role.USER, "hi"), calling, *results, message(Role.USER, "go on"))
    uses = sent_turns[1][1]
    assert [use["id"] for use in uses] == ["call_1", "call_1_2"]
    assert [use["input"] for use in uses] == [{"a": 1}, {"_raw": "not json"}]
    role, blocks = sent_turns[2]
    assert (role, [block["type"] for block in blocks]) == ("user", ["tool_result", "tool_result", "text"])
    assert [block["tool_use_id"] for block in blocks[:2]] == ["call_1", "call_1_2"]
    assert [block["type"] for block in blocks[0]["content"]] == ["text", "image"]
    assert blocks[1]["content"] == "r2"


def test_tool_result_without_a_call_is_sent_as_text() -> None:
    """Anthropic rejects a `tool_result` block without its call."""
    sent_turns = turns(message(Role.USER, "hi"), message(Role.TOOL, "r", tool_call_id="gone"))
    assert sent_turns == [("user", [text("hi"), text("Tool result: r")])]


def test_files_in_an_assistant_message_move_to_the_next_user_turn() -> None:
    """Anthropic rejects documents in assistant turns."""
    sent_turns = turns(message(Role.USER, "hi"), message(Role.ASSISTANT, "look", PDF), message(Role.USER, "ok"))
    assert [block["type"] for block in sent_turns[2][1]] == ["document", "text"]


@pytest.mark.requirement("MCR-2.1", "MCR-2.5")
def test_files_are_encoded_as_image_and_document_blocks_with_base64() -> None:
    _, blocks = turns(message(Role.USER, IMAGE, PDF, AUDIO))[0]
    source = {"type": "base64", "media_type": "image/png", "data": "<3 bytes>"}
    assert blocks[0] == {"type": "image", "source": source}
    assert blocks[1]["title"] == "a.pdf"
    assert blocks[1]["source"]["media_type"] == "application/pdf"
    assert "cannot be sent here" in blocks[2]["text"]
    link = NativePart(Kind.IMAGE, "image/png", url="https://h/a.png")
    assert turns(message(Role.USER, link))[0][1][0]["source"] == {"type": "url", "url": "https://h/a.png"}


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
def test_tool_choice_is_translated_to_anthropic_values(chat: dict[str, Any], choice: Any) -> None:
    """`required` becomes `any`, a tool's name becomes `tool`, and `disable_parallel_tool_use` is set within the tool
    choice.
    """
    payload = encode(tools=(Tool("look"),), **chat).payload
    assert payload["tool_choice"] == choice
    assert payload["tools"] == [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]


def test_sampling_parameters_are_reported_as_dropped_unless_a_quirk_allows_sampling() -> None:
    """Newer models reject sampling parameters. If a quirk allows them, temperature is at most 1, and `top_p` is
    dropped.
    """
    dropped = encode(temperature=1.5, top_p=0.5, extra={"seed": 1, "user": "u"})
    assert dropped.dropped_params == ("temperature", "top_p", "seed", "user")
    assert "temperature" not in dropped.payload
    request = encode(temperature=1.5, top_p=0.5, quirks={"sampling": True})
    assert (request.payload["temperature"], request.dropped_params) == (1.0, ("top_p",))
    assert encode(temperature=0.0, quirks={"sampling": True}).payload["temperature"] == 0.0


def test_whitespace_only_stop_sequences_are_dropped() -> None:
    """Anthropic rejects stop sequences that consist only of white space."""
    request = encode(stop=("END", "\n"))
    assert (request.payload["stop_sequences"], request.dropped_params) == (["END"], ("stop",))


def test_every_object_in_a_schema_forbids_additional_properties() -> None:
    schema = {"type": "object", "properties": {"type": {"type": "string"}, "a": {"anyOf": [{"type": "object"}]}}}
    shape = {"type": "json_schema", "json_schema": {"schema": schema}}
    sent_schema = encode(response_format=shape).payload["output_config"]["format"]["schema"]
    assert sent_schema["additionalProperties"] is False
    assert sent_schema["properties"]["type"] == {"type": "string"}
    assert sent_schema["properties"]["a"]["anyOf"] == [{"type": "object", "additionalProperties": False}]


def test_json_mode_without_a_schema_is_requested_in_the_system_prompt() -> None:
    """Anthropic has no JSON mode, so the system prompt requests JSON."""
    assert "JSON" in encode(response_format={"type": "json_object"}).payload["system"]


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("some-other-model", "high", {"output_config": {"effort": "high"}}),
        ("some-other-model", "none", {"thinking": {"type": "disabled"}}),
        ("claude-opus-4-6", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("claude-opus-4-8", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("claude-sonnet-5-5", "minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("claude-fable-5", "max", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
        ("claude-opus-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-4-5-20251001", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-sonnet-4-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-opus-4-20250514", "max", {"thinking": {"type": "enabled", "budget_tokens": 32000}}),
        ("claude-3-haiku-20240307", "none", {}),
    ],
)
def test_reasoning_effort_is_translated_for_the_model(model: str, effort: str, expected: dict[str, Any]) -> None:
    """Models with adaptive thinking get an effort, and models before 4.6 get a token budget. An unknown model gets only
    the effort.
    """
    target = Target("p", "https://api.anthropic.com/v1", model, "k")
    request = PROTOCOLS["anthropic"].encode(
        ChatRequest((message(Role.USER, "hi"),), extra={"reasoning_effort": effort}), target, stream=False
    )
    settings = {name: request.payload[name] for name in ("thinking", "output_config") if name in request.payload}
    assert (settings, request.dropped_params) == (expected, ())
    assert request.payload["max_tokens"] > settings.get("thinking", {}).get("budget_tokens", 0)


@pytest.mark.parametrize(
    "chat",
    [
        {"max_tokens": 1000},
        {"tools": (Tool("look"),), "tool_choice": "required"},
    ],
)
def test_inapplicable_reasoning_effort_is_reported_as_dropped(chat: dict[str, Any]) -> None:
    """An effort is dropped and reported if its token budget does not fit `max_tokens`, or if a tool call is forced."""
    target = Target("p", "https://api.anthropic.com/v1", "claude-haiku-4-5", "k")
    chat_request = ChatRequest((message(Role.USER, "hi"),), extra={"reasoning_effort": "high"}, **chat)
    request = PROTOCOLS["anthropic"].encode(chat_request, target, stream=False)
    assert (request.dropped_params, "thinking" in request.payload) == (("reasoning_effort",), False)


@pytest.mark.parametrize("choice", [{"tool_choice": "required"}, {"tool_name": "look"}])
def test_adaptive_thinking_is_omitted_if_a_tool_call_is_forced(choice: dict[str, Any]) -> None:
    target = Target("p", "https://api.anthropic.com/v1", "claude-opus-4-6", "k")
    chat = ChatRequest((message(Role.USER, "hi"),), tools=(Tool("look"),), extra={"reasoning_effort": "high"}, **choice)
    assert "thinking" not in PROTOCOLS["anthropic"].encode(chat, target, stream=False).payload
    chat = replace(chat, tool_choice="auto", tool_name=None)
    assert PROTOCOLS["anthropic"].encode(chat, target, stream=False).payload["thinking"] == {"type": "adaptive"}


def test_thinking_is_not_requested_within_a_tool_round_begun_by_another_model() -> None:
    """If a tool round began without signed thinking, models with thinking budgets reject `thinking` within this
    round.
    """
    conversation = (
        message(Role.USER, "hi"),
        message(Role.ASSISTANT, tool_calls=(CALL,)),
        message(Role.TOOL, "1", tool_call_id="call.1"),
    )
    target = Target("p", "https://api.anthropic.com/v1", "claude-haiku-4-5", "k")
    for extra in ({"reasoning_effort": "high"}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}):
        request = PROTOCOLS["anthropic"].encode(ChatRequest(conversation, extra=extra), target, stream=False)
        assert (request.dropped_params, "thinking" in request.payload) == (tuple(extra), False)
        after = ChatRequest((*conversation, message(Role.ASSISTANT, "One."), message(Role.USER, "go on")), extra=extra)
        assert "thinking" in PROTOCOLS["anthropic"].encode(after, target, stream=False).payload


@pytest.mark.parametrize(
    ("model", "thinking", "effort", "expected"),
    [
        ("claude-sonnet-4-5", {"type": "adaptive"}, None, {"thinking": {"type": "enabled", "budget_tokens": 16384}}),
        ("claude-haiku-4-5", {"type": "adaptive"}, "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (
            "claude-opus-4-8",
            {"type": "enabled", "budget_tokens": 6000, "display": "omitted"},
            None,
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "medium"}},
        ),
        ("claude-opus-4-6", {"type": "enabled", "budget_tokens": 6000}, None, None),
        ("claude-opus-5", {"type": "adaptive"}, None, None),
        ("claude-opus-4-8", {"type": "disabled"}, None, None),
    ],
)
def test_thinking_requested_by_the_caller_is_translated_for_the_model(model, thinking, effort, expected) -> None:
    extra = {"thinking": thinking, **({"reasoning_effort": effort} if effort else {})}
    target = Target("p", "https://api.anthropic.com/v1", model, "k")
    chat_request = ChatRequest((message(Role.USER, "hi"),), extra=extra)
    request = PROTOCOLS["anthropic"].encode(chat_request, target, stream=False)
    settings_sent = {name: request.payload[name] for name in ("thinking", "output_config") if name in request.payload}
    assert settings_sent == (expected or {"thinking": thinking})
    assert request.dropped_params == ()


def test_thinking_requested_by_the_caller_is_kept_and_temperature_is_dropped() -> None:
    """If the caller itself sends `thinking`, temperature is dropped, and `max_tokens` is raised above the thinking
    budget.
    """
    thinking = {"type": "enabled", "budget_tokens": 6000}
    request = encode(temperature=0.5, extra={"thinking": thinking}, quirks={"sampling": True})
    assert (request.payload["thinking"], request.dropped_params) == (thinking, ("temperature",))
    assert request.payload["max_tokens"] > 6000


def test_cache_markers_are_encoded_on_system_text_messages_calls_and_tools() -> None:
    """A cache marker lasts five minutes or an hour. It is set on a tool result as a whole, and on a turn's last tool
    call.
    """
    hour, plain = CacheBreakpoint(3600), CacheBreakpoint()
    conversation = (
        Message(Role.SYSTEM, (TextPart("rules", hour),)),
        message(Role.USER, "hi"),
        Message(Role.ASSISTANT, (TextPart("", plain),), (CALL,)),
        Message(Role.TOOL, (TextPart("1", CacheBreakpoint(300)),), tool_call_id="call.1"),
    )
    payload = encode(*conversation, tools=(Tool("look", cache=hour),)).payload
    written_mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert payload["system"] == [{"type": "text", "text": "rules", **written_mark}]
    assert payload["tools"][0]["cache_control"] == written_mark["cache_control"]
    _, call, result = payload["messages"]
    assert call["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert result["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}


def test_only_the_last_four_cache_markers_are_kept() -> None:
    """Anthropic allows four cache markers. The last four cover the longest prefixes; others are reported as dropped."""
    marks = [CacheBreakpoint(path=f"messages[0].content[{number}].cache_control") for number in range(6)]
    marked = Message(Role.USER, tuple(TextPart(f"part {number}", mark) for number, mark in enumerate(marks)))
    request = encode(marked, inner=tuple(mark.path for mark in marks))
    (turn,) = request.payload["messages"]
    assert ["cache_control" in block for block in turn["content"]] == [False, False, True, True, True, True]
    assert request.dropped_params == (marks[0].path, marks[1].path)
    less = encode(marked, inner=("x",), extra={"cache_control": {"type": "ephemeral"}})
    assert sum("cache_control" in block for block in less.payload["messages"][0]["content"]) == 3


def test_only_allowed_tools_are_sent() -> None:
    """Anthropic's API has no field for a list of allowed tools, so other tools are not sent."""
    payload = encode(tools=(Tool("a"), Tool("b")), allowed_tools=("b",), tool_choice="required").payload
    assert [tool["name"] for tool in payload["tools"]] == ["b"]
    assert payload["tool_choice"] == {"type": "any"}


def test_custom_tool_call_text_is_sent_as_an_input_object() -> None:
    call = ToolCall("c1", "sql", "select 1", custom=True)
    sent_turns = turns(message(Role.USER, "hi"), message(Role.ASSISTANT, tool_calls=(call,)))
    assert sent_turns[1][1][0]["input"] == {"input": "select 1"}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_stop_reasons_are_translated_to_openai(reason: str, expected: str) -> None:
    body = f'{{"content":[{{"type":"text","text":"x"}}],"stop_reason":"{reason}"}}'.encode()
    answer = PROTOCOLS["anthropic"].decode(200, {}, body)
    assert isinstance(answer, Answer)
    assert answer.finish_reason == expected


def test_response_without_blocks_is_a_failure() -> None:
    empty = PROTOCOLS["anthropic"].decode(200, {}, b'{"content":[],"stop_reason":"end_turn"}')
    of_other_shape = PROTOCOLS["anthropic"].decode(200, {}, b'{"status":"ok"}')
    assert isinstance(empty, Failure)
    assert isinstance(of_other_shape, Failure)
    assert (empty.fault, of_other_shape.fault) == (Fault.EMPTY_CONTENT, Fault.BAD_SHAPE)


TAKE_PREFILL = [
    *("claude-3-5-haiku-latest", "claude-opus-4-20250514", "claude-opus-4-1", "claude-sonnet-4-5-20250929"),
    *("claude-haiku-4-5", "anthropic/claude-sonnet-4.5", "us.anthropic.claude-opus-4-5-20251101-v1:0"),
    *(
        "glm-5.5",
        "gemini-2.5-pro",
        "gemini-3-flash-preview",
        "gemini-3.1-pro-preview",
        "gpt-5.6",
        "mistral-large-latest",
    ),
]
REFUSE_PREFILL = [
    *("claude-opus-4-6", "us.anthropic.claude-opus-4-6-v1", "anthropic/claude-sonnet-4.6", "claude-4.6-opus"),
    *("claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1"),
    *("claude-mythos-preview", "gemini-3.5-flash-lite", "google/gemini-3.8-flash", "gemini-flash-latest"),
]
"""Models in `TAKE_PREFILL` continue a final assistant message (a prefill). Those in `REFUSE_PREFILL` respond with a
400.
"""
UNFINISHED_CONVERSATION = (message(Role.USER, "Write a list."), message(Role.ASSISTANT, "1. Apples\n2."))


def continuation(
    protocol: str, model: str, *messages: Message, host: str = "example.com", **chat: Any
) -> tuple[bool, bool]:
    """Return whether a user message asks the model to continue, and whether the prefill is reported as dropped."""
    request = PROTOCOLS[protocol].encode(
        ChatRequest(messages or UNFINISHED_CONVERSATION, **chat),
        Target("p", f"https://{host}/v1", model, "k"),
        stream=False,
    )
    return CONTINUE in str(request.elide()), "prefill" in request.dropped_params


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai-responses", "gemini"])
@pytest.mark.parametrize(
    ("model", "refuses"),
    [*((model, False) for model in TAKE_PREFILL), *((model, True) for model in REFUSE_PREFILL)],
)
def test_continuation_uses_prefill_or_a_user_message_as_the_model_requires(
    protocol: str, model: str, refuses: bool
) -> None:
    assert continuation(protocol, model) == (refuses, refuses)


def test_continuation_request_is_a_separate_user_turn() -> None:
    target = Target("p", "https://api.anthropic.com/v1", "claude-opus-4-8", "k")
    sent_messages = (
        PROTOCOLS["anthropic"].encode(ChatRequest(UNFINISHED_CONVERSATION), target, stream=False).elide()["messages"]
    )
    assert sent_messages[-2:] == [
        {"role": "assistant", "content": [text("1. Apples\n2.")]},
        {"role": "user", "content": [text(CONTINUE)]},
    ]
    assert turns(*UNFINISHED_CONVERSATION)[-1] == ("assistant", [text("1. Apples\n2.")])


def test_continuation_request_follows_only_assistant_text() -> None:
    for last in (message(Role.USER, "hi"), message(Role.ASSISTANT, tool_calls=(CALL,)), message(Role.ASSISTANT, " \n")):
        assert continuation("anthropic", "claude-opus-5", UNFINISHED_CONVERSATION[0], last) == (False, False)


def test_thinking_schemas_and_mistral_do_not_allow_a_prefill() -> None:
    """In these cases, a user message asks even models that accept a prefill to continue."""
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    assert continuation("anthropic", "claude-sonnet-4-5", response_format=schema) == (True, True)
    assert continuation("anthropic", "claude-sonnet-4-5", extra={"reasoning_effort": "low"}, max_tokens=9000) == (
        True,
        True,
    )
    assert continuation("anthropic", "claude-sonnet-4-5", extra={"reasoning_effort": "none"}) == (False, False)
    assert continuation("openai", "mistral-large-latest", host="api.mistral.ai") == (True, True)
