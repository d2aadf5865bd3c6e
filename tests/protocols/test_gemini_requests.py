"""Translation of requests to Gemini's API, and of its responses."""

from __future__ import annotations

from typing import Any

import pytest

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, Tool, ToolCall, make_blob
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, Fault, Target, UpstreamRequest

BASE = "https://generativelanguage.googleapis.com/v1beta"
IMAGE = NativePart(Kind.IMAGE, "image/png", make_blob(b"123"), filename="a.png")
GIF = NativePart(Kind.IMAGE, "image/gif", make_blob(b"123"))
SCHEMA = {"$schema": "x", "type": "object", "properties": {}}


def message(role: Role, *parts: Any, **fields: Any) -> Message:
    return Message(role, tuple(TextPart(part) if isinstance(part, str) else part for part in parts), **fields)


def encode(
    *messages: Message, quirks: dict[str, Any] | None = None, endpoint: str = BASE, stream: bool = False, **chat: Any
) -> UpstreamRequest:
    conversation = messages or (message(Role.USER, "hi"),)
    target = Target("p", endpoint, "gemini-x", "k", quirks=quirks or {})
    return PROTOCOLS["gemini"].encode(ChatRequest(conversation, **chat), target, stream=stream)


def contents(*messages: Message, **fields: Any) -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["parts"]) for turn in encode(*messages, **fields).elide()["contents"]]


@pytest.mark.parametrize(
    ("endpoint", "stream", "url"),
    [
        (BASE, False, f"{BASE}/models/gemini-x:generateContent"),
        (BASE + "/", True, f"{BASE}/models/gemini-x:streamGenerateContent?alt=sse"),
        (f"{BASE}/models/other:generateContent", False, f"{BASE}/models/gemini-x:generateContent"),
        (f"{BASE}/models/other:generateContent", True, f"{BASE}/models/gemini-x:streamGenerateContent?alt=sse"),
        (f"{BASE}/tunedModels/mine:generateContent", False, f"{BASE}/tunedModels/mine:generateContent"),
        (f"{BASE}?x=1", True, f"{BASE}/models/gemini-x:streamGenerateContent?x=1&alt=sse"),
    ],
)
def test_url_contains_model_and_method(endpoint: str, stream: bool, url: str) -> None:
    assert encode(endpoint=endpoint, stream=stream).url == url


def test_minimal_request_has_only_contents() -> None:
    request = encode()
    assert request.payload == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert request.headers["x-goog-api-key"] == "k"


def test_system_messages_become_the_system_instruction_and_roles_alternate() -> None:
    """Leading system messages become `systemInstruction`, and later ones become user text."""
    conversation = (
        message(Role.SYSTEM, "one"),
        message(Role.ASSISTANT, "yes"),
        message(Role.SYSTEM, "hurry"),
        message(Role.USER, "well?"),
    )
    request = encode(*conversation)
    assert request.payload["systemInstruction"] == {"parts": [{"text": "one"}]}
    assert contents(*conversation) == [
        ("user", [{"text": "."}]),
        ("model", [{"text": "yes"}]),
        ("user", [{"text": "hurry"}, {"text": "well?"}]),
    ]


def test_tool_calls_have_signatures_and_tool_results_have_function_names() -> None:
    """If another vendor's model made the calls, the first one gets the placeholder signature that Gemini documents.

    Results are matched to calls by id.
    """
    calls = ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "hear", "")
    calling = message(Role.ASSISTANT, tool_calls=calls)
    results = message(Role.TOOL, "r1", IMAGE, GIF, tool_call_id="c1"), message(Role.TOOL, "r2", tool_call_id="c2")
    sent_contents = contents(message(Role.USER, "hi"), calling, *results)
    first, second = sent_contents[1][1]
    assert first["functionCall"] == {"id": "c1", "name": "look", "args": {"a": 1}}
    assert first["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in second
    response = sent_contents[2][1][0]["functionResponse"]
    assert (response["name"], response["id"], response["response"]) == ("look", "c1", {"result": "r1"})
    assert response["parts"][0]["inlineData"]["displayName"] == "a.png"
    assert sent_contents[2][1][1]["functionResponse"]["name"] == "hear"
    assert sent_contents[2][1][2]["inlineData"]["mimeType"] == "image/gif"


def test_parameters_are_renamed_for_gemini_and_unsupported_ones_reported_as_dropped() -> None:
    """Gemini has a seed and penalties, but no user id and no switch for parallel tool calls."""
    request = encode(
        temperature=1.5,
        top_p=0.5,
        max_tokens=9,
        stop=("a", "b", "c", "d", "e", "f"),
        tools=(Tool("look"),),
        parallel_tool_calls=False,
        extra={"seed": 1, "user": "u", "n": 1, "presence_penalty": 0.1},
    )
    assert request.payload["generationConfig"] == {
        "temperature": 1.5,
        "topP": 0.5,
        "maxOutputTokens": 9,
        "stopSequences": ["a", "b", "c", "d", "e"],
        "seed": 1,
        "presencePenalty": 0.1,
    }
    assert request.dropped_params == ("parallel_tool_calls", "stop", "user")


def test_drop_params_quirk_accepts_gemini_and_openai_parameter_names() -> None:
    """Gemini's error uses Gemini's name for a parameter, while administrators use OpenAI's name."""
    for name in ("topP", "top_p"):
        request = encode(top_p=0.5, quirks={"drop_params": [name]})
        assert "generationConfig" not in request.payload
        assert request.dropped_params == ("top_p",)


@pytest.mark.parametrize(
    ("chat", "config"),
    [
        ({"tool_choice": "none"}, {"mode": "NONE"}),
        ({"tool_choice": "required"}, {"mode": "ANY"}),
        ({"tool_name": "look"}, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_tool_choice_is_translated_to_a_function_calling_config(chat: dict[str, Any], config: Any) -> None:
    """`required` becomes `ANY`, and a tool's name becomes a list of one allowed name."""
    payload = encode(tools=(Tool("look", "Looks.", SCHEMA),), **chat).payload
    assert payload["toolConfig"] == {"functionCallingConfig": config}
    declared = payload["tools"][0]["functionDeclarations"][0]
    assert declared["parametersJsonSchema"] == {"type": "object", "properties": {}}


def test_json_schema_has_its_own_field_but_is_put_in_the_prompt_if_there_are_tools() -> None:
    """Older models reject a schema together with tools. Both are sent only if a quirk allows it."""
    shape = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    options = encode(response_format=shape).payload["generationConfig"]
    assert options["responseMimeType"] == "application/json"
    assert options["responseJsonSchema"] == {"type": "object", "properties": {}}
    with_tools = encode(response_format=shape, tools=(Tool("look"),))
    assert "generationConfig" not in with_tools.payload
    assert "JSON Schema" in with_tools.payload["systemInstruction"]["parts"][0]["text"]
    with_quirk = encode(response_format=shape, tools=(Tool("look"),), quirks={"structured": "json_schema"})
    assert "responseJsonSchema" in with_quirk.payload["generationConfig"]


@pytest.mark.requirement("MCR-2.1", "MCR-2.3", "MCR-2.5")
@pytest.mark.parametrize(
    ("kind", "mime"),
    [
        (Kind.IMAGE, "image/png"),
        (Kind.AUDIO, "audio/wav"),
        (Kind.VIDEO, "video/mp4"),
        (Kind.DOCUMENT, "application/pdf"),
    ],
)
def test_every_file_is_encoded_as_inline_data_or_file_uri(kind: Kind, mime: str) -> None:
    """Gemini accepts every kind of file in the same format, and downloads URLs itself."""
    inline = contents(message(Role.USER, NativePart(kind, mime, make_blob(b"123"))))[0][1]
    assert inline == [{"inlineData": {"mimeType": mime, "data": "<3 bytes>"}}]
    linked = contents(message(Role.USER, NativePart(kind, mime, url="https://h/x")))[0][1]
    assert linked == [{"fileData": {"mimeType": mime, "fileUri": "https://h/x"}}]


def test_file_url_of_unknown_type_is_sent_without_a_type() -> None:
    """Gemini itself detects the type of a file at a URL, and would reject `image/*`."""
    linked = contents(message(Role.USER, NativePart(Kind.IMAGE, "image/*", url="https://h/cat")))[0][1]
    assert linked == [{"fileData": {"fileUri": "https://h/cat"}}]


def decode(body: str) -> Answer | Failure:
    return PROTOCOLS["gemini"].decode(200, {}, body.encode())


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('{"promptFeedback":{"blockReason":"SAFETY"}}', Fault.CONTENT_POLICY),
        ('{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}', Fault.BAD_JSON),
        ('{"candidates":[{"finishReason":"STOP","content":{"parts":[]}}]}', Fault.EMPTY_CONTENT),
        ('{"candidates":[],"usageMetadata":{}}', Fault.EMPTY_CHOICES),
        ('{"other":1}', Fault.BAD_SHAPE),
        ('[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]', Fault.HTTP_503),
    ],
)
def test_invalid_response_is_classified_as_a_fault(body: str, fault: Fault) -> None:
    outcome = decode(body)
    assert isinstance(outcome, Failure)
    assert outcome.fault is fault


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("IMAGE_SAFETY", "content_filter")],
)
def test_stop_reasons_are_translated_to_openai(reason: str, expected: str) -> None:
    answer = decode(f'{{"candidates":[{{"finishReason":"{reason}","content":{{"parts":[{{"text":"x"}}]}}}}]}}')
    assert isinstance(answer, Answer)
    assert answer.finish_reason == expected


def test_completion_tokens_include_thinking_tokens() -> None:
    usage = '{"promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":12}'
    answer = decode(f'{{"candidates":[{{"content":{{"parts":[{{"text":"x"}}]}}}}],"usageMetadata":{usage}}}')
    assert isinstance(answer, Answer)
    assert (answer.usage.completion_tokens, answer.usage.reasoning_tokens) == (7, 4)


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3-flash-preview", "none", {"thinkingLevel": "minimal"}),
        ("gemini-3.5-flash", "medium", {"thinkingLevel": "medium"}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "minimal", {"thinkingLevel": "low"}),
        ("models/gemini-3.1-pro", "max", {"thinkingLevel": "high"}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
        ("gemini-2.5-flash-lite", "high", {"thinkingBudget": 24576}),
        ("gemini-2.5-flash", "xhigh", {"thinkingBudget": 24576}),
        ("gemini-flash-latest", "low", {"thinkingLevel": "low"}),
    ],
)
def test_reasoning_effort_is_a_level_for_gemini_3_and_a_token_budget_for_gemini_2_5(
    model: str, effort: str, config: Any
) -> None:
    chat = ChatRequest((Message(Role.USER, (TextPart("hi"),)),), extra={"reasoning_effort": effort})
    request = PROTOCOLS["gemini"].encode(chat, Target("p", BASE, model), stream=False)
    assert (request.payload["generationConfig"]["thinkingConfig"], request.dropped_params) == (config, ())


def test_reasoning_effort_is_reported_as_dropped_for_a_model_without_thinking() -> None:
    """The effort `none` is not reported as dropped, because the model never thinks anyway."""
    for effort, dropped in (("high", ("reasoning_effort",)), ("none", ())):
        chat = ChatRequest((Message(Role.USER, (TextPart("hi"),)),), extra={"reasoning_effort": effort})
        request = PROTOCOLS["gemini"].encode(chat, Target("p", BASE, "gemini-2.0-flash"), stream=False)
        assert (request.dropped_params, "thinkingConfig" in repr(request.payload)) == (dropped, False)


@pytest.mark.parametrize(("choice", "mode"), [("required", "ANY"), ("auto", "VALIDATED")])
def test_allowed_tools_become_allowed_function_names(choice: str, mode: str) -> None:
    """For a list of allowed tools, the mode is `ANY`, or `VALIDATED` if the model may also answer with text."""
    conversation = (Message(Role.USER, (TextPart("hi"),)),)
    chat = ChatRequest(conversation, tools=(Tool("a"), Tool("b")), allowed_tools=("b",), tool_choice=choice)
    request = PROTOCOLS["gemini"].encode(chat, Target("p", BASE, "gemini-3-flash"), stream=False)
    assert request.payload["toolConfig"] == {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": ["b"]}}
