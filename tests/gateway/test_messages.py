"""Anthropic's Messages API within the test process: tools, thinking, files, errors, and what Claude Code sends."""

from __future__ import annotations

import base64

import pytest

from capabilities.core.message import FilePart, Role, TextPart, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, AnswerDetails, Media, Target, Usage
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.messages.parsing import needs_thread, parse
from routing_admin.gateway.messages.rendering import end_json, list_citations, message_json
from routing_admin.gateway.messages.thinking_blocks import build_block, parse_block
from tests.gateway.plane import PNG, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ORIGIN = "0123456789ab"
PICTURE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}


def request(*content: object, role: str = "user", **more: object) -> dict[str, object]:
    parts = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return {"model": "echo-text", "max_tokens": 100, "messages": [{"role": role, "content": parts}], **more}


def parse_call(body: dict[str, object]) -> ChatCall:
    return parse(body, lambda _: None)


def ask(key: str, body: object, path: str = "/v1/messages"):
    return post("", body, path, **{"x-api-key": key, "anthropic-version": "2023-06-01"})


def test_question_is_answered_with_a_message(key):
    answer = ask(key, request("Plan a picnic", system="Be brief."))
    body = answer.json()
    assert (body["type"], body["role"], body["model"]) == ("message", "assistant", "echo-text")
    assert [block["type"] for block in body["content"]] == ["text"]
    assert "Plan a picnic" in body["content"][0]["text"]
    assert (body["stop_reason"], body["stop_sequence"]) == ("end_turn", None)
    assert body["usage"]["output_tokens"] > 0
    assert answer.headers["x-routing-model"] == "echo-text"
    assert logged(answer.headers["x-request-id"]).outcome == "ok"


def test_image_for_a_text_model_is_described(key):
    answer = ask(key, request({"type": "image", "source": PICTURE}))
    assert answer.headers["x-routing-adaptation"] == "image=described"
    assert PICTURE["data"] not in answer.content.decode()


def test_tool_results_become_separate_messages():
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "42"}], "is_error": True}
    call = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    body = request("go") | {
        "messages": [
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, call]},
            {"role": "user", "content": [result, {"type": "text", "text": "and now?"}]},
        ]
    }
    messages = parse_call(body).chat.messages
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert (messages[1].tool_calls[0].name, messages[1].tool_calls[0].arguments) == ("add", '{"a": 1}')
    assert (messages[2].tool_call_id, messages[2].is_error, messages[2].text) == ("t1", True, "42")


def test_image_in_a_tool_result_becomes_a_file_part():
    """Coding agents send screenshots in this way."""
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": PICTURE}]}
    (message,) = parse_call(request(result)).chat.messages
    (part,) = message.parts
    assert isinstance(part, FilePart)
    assert (message.role, part.kind, part.mime_type) == (Role.TOOL, Kind.IMAGE, "image/png")


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"type": "text", "media_type": "text/plain", "data": "words"}, Kind.TEXT),
        ({"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF-1.4\n").decode()}, None),
        ({"type": "url", "url": "https://example.org/a.pdf"}, Kind.DOCUMENT),
    ],
)
def test_documents_are_read_from_text_data_or_url(source, kind):
    (part,) = parse_call(request({"type": "document", "source": source, "title": "a.pdf"})).chat.messages[0].parts
    assert isinstance(part, FilePart)
    assert kind is None or part.kind is kind


def test_parameters_of_the_messages_api_are_read():
    schema = {"type": "object", "properties": {}}
    tools = [
        {"name": "add", "description": "adds", "input_schema": schema, "cache_control": {"type": "ephemeral"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    chat = parse_call(
        request(
            "x",
            tools=tools,
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
            stop_sequences=["END"],
            temperature=0.5,
            thinking={"type": "enabled", "budget_tokens": 2000},
            output_config={"effort": "low", "format": {"type": "json_schema", "schema": schema}},
            metadata={"user_id": "u"},
        )
    ).chat
    assert [tool.name for tool in chat.tools] == ["add"]
    assert chat.tools[0].cache is not None
    assert [(item.name, item.path) for item in chat.vendor] == [("web_search", "tools[1]")]
    assert chat.inner == ()
    assert (chat.tool_choice, chat.parallel_tool_calls, chat.stop, chat.max_tokens) == (
        "required",
        False,
        ("END",),
        100,
    )
    assert chat.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }
    assert chat.extra == {
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "metadata": {"user_id": "u"},
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"max_tokens": 1, "messages": []}, "model"),
        ({"model": "a"}, "messages"),
        ({"model": "a", "messages": []}, "messages"),
        ({"model": "a", "messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        (request({"type": "video"}), "messages[0].content[0].type"),
        (request({"type": "image"}), "messages[0].content[0].source"),
        (request({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "*"}}),
         "messages[0].content[0].source.data"),
        (request("x", temperature=2), "temperature"),
        (request("x", tool_choice={"type": "some"}), "tool_choice.type"),
        (request("x", system=[{"type": "image"}]), "system[0].type"),
        (request({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (request({"type": "text", "text": "a"}, role="assistant") | {"stop_sequences": [1]}, "stop_sequences"),
    ],
)  # fmt: skip
def test_invalid_request_is_refused_with_the_path_of_the_field(body, param):
    with pytest.raises(BadRequestError) as refused:
        parse_call(body)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"model": "echo-text", "messages": []}, "invalid_request_error"),
        (404, {**request("x"), "model": "unknown-model"}, "not_found_error"),
        (401, None, "authentication_error"),
    ],
)
def test_errors_have_anthropics_format(key, status, body, kind):
    answer = ask(key if body else "ra_wrong", body or request("x"))
    error_body = answer.json()
    assert answer.status_code == status
    assert (error_body["type"], error_body["error"]["type"]) == ("error", kind)
    assert error_body["error"]["message"]
    assert error_body["request_id"] == answer.headers["x-request-id"]


THOUGHTS = [
    ReasoningBlock(ThoughtForm.TEXT, "hm", "c2ln", 3, 0, dialect="anthropic-claude-v1"),
    ReasoningBlock(ThoughtForm.ENCRYPTED, "", "ZGF0YQ==", 3, 1, dialect="anthropic-claude-v1"),
    ReasoningBlock(ThoughtForm.ENCRYPTED, "", "b3RoZXI=", 3, 1, id="rs_1", dialect="openai-responses-v1"),
    ReasoningBlock(ThoughtForm.SUMMARY, "in short", None, 0, 0, id="rs_2", dialect="openai-responses-v1"),
]


@pytest.mark.parametrize("thought", THOUGHTS)
def test_reasoning_is_preserved_in_a_content_block(thought):
    (restored,) = parse_block(build_block(thought, ORIGIN), thought.offset, thought.calls)
    assert (restored.form, restored.text, restored.proof, restored.origin) == (
        thought.form,
        thought.text,
        thought.proof,
        ORIGIN,
    )
    assert (restored.offset, restored.calls, restored.dialect) == (thought.offset, thought.calls, thought.dialect)


@pytest.mark.parametrize("data", ["routing:*", "routing:e30=", "routing:W10=", "", "routing:bm90IGpzb24="])
def test_altered_reasoning_data_is_ignored(data):
    assert parse_block({"type": "redacted_thinking", "data": data}, 0, 0) == ()


def test_answer_has_its_content_blocks_in_order():
    thought = ReasoningBlock(ThoughtForm.TEXT, "hm", "sig", 0, 0, dialect="anthropic-claude-v1")
    answer = Answer(
        "Hello",
        reasoning="hm",
        finish_reason="tool_calls",
        usage=Usage(100, 7, cached_tokens=60, cache_write_tokens=10),
        thoughts=(thought,),
        media=(Media(Kind.IMAGE, "image/png", artifact_id="a1"),),
    )
    body = message_json(answer, parse_call(request("x", thinking=THINK)), "m", ORIGIN)
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "text"]
    assert body["content"][0] == {"type": "thinking", "thinking": "hm", "signature": f"{ORIGIN}:sig"}
    assert body["content"][2]["text"] == "[image/png artifact:a1]"
    assert body["stop_reason"] == "tool_use"
    assert (body["usage"]["input_tokens"], body["usage"]["cache_read_input_tokens"]) == (30, 60)


def test_annotations_of_other_vendors_become_citations():
    page = {"url": "https://example.org/", "title": "Example", "content": "words"}
    file = {"filename": "a.pdf", "index": 2}
    annotations = [
        {"type": "url_citation", "url_citation": page},
        {"type": "file_citation", "file_citation": file},
        {"type": "url_citation"},
        {"type": "url_citation", "url_citation": "https://example.org/"},
        {"type": "unknown", "unknown": {}},
    ]
    web, document = list_citations(annotations)
    assert (web["type"], web["url"], web["cited_text"]) == ("web_search_result_location", page["url"], "words")
    assert (document["document_title"], document["document_index"]) == ("a.pdf", 2)


def list_nulls(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [null for key, inner in value.items() for null in list_nulls(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [null for inner in value for null in list_nulls(inner, f"{path}[]")]
    return [path] if value is None else []


def test_only_the_stop_sequence_may_be_null_in_a_message():
    """The gateway omits the keys that Anthropic omits, because `"citations": null` breaks @ai-sdk/anthropic 3."""
    body = message_json(Answer("x", (ToolCall("t1", "add", "{}"),)), parse_call(request("x")), "m", ORIGIN)
    assert list_nulls(body) == [".stop_sequence"]


def test_message_has_refusal_details_tool_caller_service_tier_and_reasoning_tokens():
    refused = AnswerDetails(stop_details={"type": "refusal", "category": "cyber"}, service_tier="priority")
    call = ToolCall("t1", "add", "{}")
    answer = Answer("x", (call,), usage=Usage(9, 7, reasoning_tokens=3), details=refused)
    body = message_json(answer, parse_call(request("x")), "m", ORIGIN)
    assert body["stop_details"] == {"type": "refusal", "category": "cyber"}
    assert body["content"][1]["caller"] == {"type": "direct"}
    assert body["usage"]["output_tokens_details"] == {"thinking_tokens": 3}
    assert body["usage"]["service_tier"] == "priority"


def test_unknown_refusal_category_is_null():
    refused = AnswerDetails(stop_details={"type": "refusal", "category": "weather"})
    assert end_json("stop", refused)["stop_details"] == {"type": "refusal", "category": None}


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (8192, "medium"), (31999, "high"), ("many", None)])
def test_thinking_budget_becomes_an_effort_for_other_vendors(budget, effort):
    """The effort is the lowest that covers the budget. An explicit effort takes precedence."""
    thinking = {"type": "enabled", "budget_tokens": budget}
    assert parse_call(request("x", thinking=thinking)).chat.extra.get("reasoning_effort") == effort
    explicit = request("x", thinking=thinking, output_config={"effort": "max"})
    assert parse_call(explicit).chat.extra["reasoning_effort"] == "max"


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-haiku-4-5", "another-hosts-model"])
def test_thinking_budget_reaches_an_anthropic_model_unchanged(model):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    target = Target("p", "https://llm.example/v1", model)
    sent = PROTOCOLS["anthropic"].encode(parse_call(request("x", thinking=thinking)).chat, target, stream=False)
    assert (sent.payload["thinking"], "output_config" in sent.payload) == (thinking, False)
    assert sent.dropped_params == ()


def test_unsigned_thinking_is_returned_to_the_caller_but_not_sent_back_as_signed():
    """Another vendor's reasoning may be unsigned."""
    body = message_json(Answer("Hi", reasoning="let me see"), parse_call(request("x", thinking=THINK)), "m", ORIGIN)
    assert body["content"][0] == {"type": "thinking", "thinking": "let me see", "signature": "routing:unsigned"}
    turn = request("again") | {"messages": [{"role": "assistant", "content": body["content"]}]}
    (message,) = parse_call(turn).chat.messages
    assert (message.text, message.reasoning, message.thoughts) == ("Hi", "let me see", ())


THINK = {"type": "adaptive"}
TOOL = {"name": "add", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, ["text"]),
        ({"thinking": {"type": "disabled"}}, ["text"]),
        ({"thinking": THINK}, ["thinking", "redacted_thinking", "text"]),
        ({"tools": [TOOL]}, ["thinking", "redacted_thinking", "text"]),
    ],
)
def test_thinking_is_shown_if_thinking_or_tools_are_requested(options, kinds):
    """Clients read the last block as the answer, so thinking precedes it, although Gemini sends its signature last."""
    thought = ReasoningBlock(ThoughtForm.ENCRYPTED, "", "c2ln", 2, 0, dialect="google-gemini-v1")
    answer = Answer("Hi", reasoning="let me see", thoughts=(thought,))
    call = parse_call(request("x", **options))
    body = message_json(answer, call, "m", ORIGIN)
    assert [block["type"] for block in body["content"]] == kinds
    if "redacted_thinking" in kinds:
        turn = {"messages": [{"role": "assistant", "content": body["content"]}], "model": "m"}
        assert [thought.proof for thought in parse_call(turn).chat.messages[0].thoughts] == ["c2ln"]


def test_message_with_only_another_vendors_signature_has_no_content():
    thought = ReasoningBlock(ThoughtForm.ENCRYPTED, "", "c2ln", dialect="google-gemini-v1")
    assert (
        message_json(Answer("", thoughts=(thought,)), parse_call(request("x", tools=[TOOL])), "m", ORIGIN)["content"]
        == []
    )


def test_estimated_token_count_is_marked_in_a_header(key):
    short = ask(key, request("x"), "/v1/messages/count_tokens")
    long = ask(key, request("many words " * 100, system="Be brief."), "/v1/messages/count_tokens")
    assert long.json()["input_tokens"] > short.json()["input_tokens"] > 0
    assert short.headers["x-routing-estimate"] == "true"
    assert ask(key, {"model": "echo-text"}, "/v1/messages/count_tokens").json()["type"] == "error"


@pytest.mark.parametrize(
    ("block", "threaded"),
    [
        ({"type": "text", "text": "x"}, False),
        ({"type": "image", "source": PICTURE}, False),
        ({"type": "image", "source": {"type": "url", "url": "artifact:a"}}, True),
        ({"type": "image", "source": {"type": "file", "file_id": "a"}}, True),
        ({"type": "document", "source": {}}, True),
        ({"type": "tool_result", "content": "42"}, False),
        ({"type": "tool_result", "content": '{"routing": "file"}'}, True),
        ({"type": "tool_result", "content": [{"type": "text", "text": "x"}]}, True),
    ],
)
def test_only_stored_and_large_files_are_read_in_a_thread(block, threaded):
    assert needs_thread(request(block), 1000) is threaded


def test_system_prompt_keeps_its_text_and_cache_control():
    system = [{"type": "text", "text": "You are", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    system_message, user_message = parse_call(request("x", system=system)).chat.messages
    (part,) = system_message.parts
    assert isinstance(part, TextPart)
    assert (system_message.role, part.cache and part.cache.seconds, user_message.text) == (Role.SYSTEM, 3600, "x")
