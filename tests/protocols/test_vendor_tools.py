"""A vendor's own tools, fields and betas are sent to that vendor, and its answers are returned unchanged. Other vendors
get a short text instead.
"""

from __future__ import annotations

import copy
import json
import re
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from anthropic.types.beta import BetaContentBlockParam, BetaMessage, BetaToolUnionParam
from anthropic.types.beta.message_create_params import MessageCreateParamsBase
from google.genai import types as gemini_types
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseInputItemParam, ToolParam
from pydantic import BaseModel

from capabilities.core.delivery.model_endpoint import Prepared, model_endpoint, prepare
from capabilities.core.delivery.writing import TextStyle
from capabilities.core.message import ChatRequest
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.gemini.supplements import KINDS
from capabilities.core.protocols.stream import answer_events
from capabilities.core.protocols.vendor_tools import (
    DEFAULT_TOOL_NAMES,
    FIELDS,
    ON_REQUEST,
    RUN_BY_CALLER,
    RUN_BY_VENDOR,
    allowed_tool_names,
    canonical_tool_name,
    field_tool_name,
)
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.core.wire import Answer, Delta, Finish, Supplement, Target
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.gemini import parsing as gemini
from routing_admin.gateway.gemini.events import GeminiChunks
from routing_admin.gateway.gemini.rendering import response_json as gemini_json
from routing_admin.gateway.messages import parsing as messages
from routing_admin.gateway.messages.events import MessageEvents
from routing_admin.gateway.messages.rendering import message_json
from routing_admin.gateway.responses import parsing as responses
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.rendering import ResponseHead, response_json

KNOWN = {*RUN_BY_VENDOR, *RUN_BY_CALLER, *ON_REQUEST}
READ_TYPES = {"text", "image", "document", "search_result", "tool_use", "tool_result", "thinking", "redacted_thinking"}
READ_TYPES |= {"message", "reasoning", "function", "custom", "namespace", "item_reference", "compaction_trigger"}
READ_TYPES |= {
    "additional_tools",
    *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
}
"""Block types that all of the gateway's chat APIs accept."""
URLS = {
    "anthropic": "https://claude.example/v1",
    "openai-responses": "https://gpt.example/v1",
    "gemini": "https://gemini.example/v1beta",
}
SEARCH: dict[str, Any] = {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}
ADD: dict[str, Any] = {"name": "add", "input_schema": {"type": "object", "properties": {}}}


def types_in(union: Any) -> set[str]:
    types: set[str] = set()
    for kind in filter(lambda kind: isinstance(kind, type), get_args(union)):
        types |= literal_values(get_type_hints(kind, include_extras=False)["type"])
    return types


def literal_values(hint: Any) -> set[str]:
    return {
        literal
        for argument in get_args(hint)
        for literal in ([argument] if isinstance(argument, str) else literal_values(argument))
    }


@pytest.mark.parametrize("union", [BetaToolUnionParam, BetaContentBlockParam, ToolParam, ResponseInputItemParam])
def test_every_tool_and_block_type_of_the_sdks_is_in_the_table(union: Any) -> None:
    """If an SDK gets a new type, this test fails, so that we decide whether it is allowed by default."""
    unknown = {
        kind: canonical_tool_name(kind)
        for kind in types_in(union) - READ_TYPES
        if canonical_tool_name(kind) not in KNOWN
    }
    assert unknown in ({}, {"server_tool_use": "server"})  # This block has the type name of the tool that it refers to.


def test_every_gemini_tool_is_in_the_table() -> None:
    """Each Gemini tool has a single name: it is a field of `Tool` and the type of the tool's calls in a
    conversation.
    """
    tools = {gemini_types.Tool.model_fields[name].alias for name in gemini_types.Tool.model_fields}
    tool_names_by_field = {name: field_tool_name(str(name)) for name in tools - {"functionDeclarations"}}
    tool_names_by_field |= {
        kind: field_tool_name(kind) for kind in gemini_types.ToolType if kind != "TOOL_TYPE_UNSPECIFIED"
    }
    assert {field: name for field, name in tool_names_by_field.items() if name not in KNOWN} == {}
    assert tool_names_by_field["googleSearch"] == tool_names_by_field["GOOGLE_SEARCH_WEB"] == "web_search"
    assert tool_names_by_field["urlContext"] == tool_names_by_field["URL_CONTEXT"] == "web_fetch"
    configured = {field.alias for field in gemini_types.ToolConfig.model_fields.values()}
    known = {path.removeprefix("toolConfig.") for path in FIELDS["gemini"]}
    assert configured == known | {"functionCallingConfig"}


def test_every_field_in_the_table_refers_to_a_known_tool() -> None:
    assert {name for fields in FIELDS.values() for name in fields.values()} <= KNOWN
    assert FIELDS["anthropic"].keys() - get_type_hints(MessageCreateParamsBase).keys() == {"anthropic-beta"}


@pytest.mark.parametrize(
    ("protocol", "endpoint", "allowed", "expected"),
    [
        ("anthropic", "https://api.anthropic.com/v1", None, DEFAULT_TOOL_NAMES),
        ("openai-responses", "https://api.openai.com/v1/responses", None, DEFAULT_TOOL_NAMES),
        ("anthropic", "https://claude.example/v1", None, DEFAULT_TOOL_NAMES),
        ("anthropic", "https://api.deepseek.com/anthropic", None, frozenset()),
        ("anthropic", "https://api.deepseek.com/anthropic", ["web_search"], frozenset({"web_search"})),
        ("anthropic", "https://api.anthropic.com/v1", [], frozenset()),
        ("openai", "https://api.openai.com/v1", ["*"], frozenset()),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", None, DEFAULT_TOOL_NAMES),
        ("gemini", "https://us-east1-aiplatform.googleapis.com/v1/publishers/google", None, DEFAULT_TOOL_NAMES),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", ["computer"], frozenset({"computer"})),
    ],
)
def test_provider_allows_its_configured_tools_or_the_vendor_default(
    protocol: str, endpoint: str, allowed: list[str] | None, expected: frozenset[str]
) -> None:
    assert allowed_tool_names(protocol, endpoint, allowed) == expected


def anthropic_chat(**fields: Any) -> ChatRequest:
    conversation = [{"role": "user", "content": "hi"}]
    return messages.parse({"model": "m", "max_tokens": 9, "messages": conversation, **fields}, lambda _: None).chat


def openai_chat(*items: Any, **fields: Any) -> ChatRequest:
    return responses.parse({"model": "m", "input": list(items) or "hi", **fields}, lambda _: None).chat


def gemini_call(*contents: Any, **fields: Any) -> ChatCall:
    conversation = list(contents) or [{"role": "user", "parts": [{"text": "hi"}]}]
    return gemini.parse({"model": "m", "stream": False, "contents": conversation, **fields}, lambda _: None)


def sent_body(chat: ChatRequest, protocol: str, allowed: list[str] | None = None) -> tuple[dict[str, Any], Prepared]:
    candidate = model_endpoint(
        protocol, Target("p", URLS.get(protocol, "https://p.example/v1"), "m", "k"), TEXT_ONLY, vendor_tools=allowed
    )
    prepared = prepare(chat, candidate, TextStyle("en"))
    assert isinstance(prepared, Prepared)
    return json.loads(b"".join(map(bytes, prepared.request.pieces()))), prepared  # type: ignore[arg-type]


def test_anthropic_tools_fields_and_betas_are_sent_to_claude_unchanged() -> None:
    vendor_fields: dict[str, Any] = {
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "mcp_servers": [{"type": "url", "url": "https://mcp.example", "name": "x"}],
        "container": "container_1",
    }
    bash = {"type": "bash_20250124", "name": "bash"}
    chat = anthropic_chat(
        tools=[SEARCH, ADD, bash], tool_choice={"type": "tool", "name": "web_search"}, **vendor_fields
    )
    body, prepared = sent_body(chat, "anthropic")
    assert [tool["name"] for tool in body["tools"]] == ["web_search", "add", "bash"]
    assert (body["tools"][0], body["tools"][2]) == (SEARCH, bash)
    assert {name: body[name] for name in vendor_fields} == vendor_fields
    assert body["tool_choice"] == {"type": "tool", "name": "web_search"}
    assert prepared.request.dropped_params == ()


def test_anthropic_beta_header_is_forwarded_as_a_header() -> None:
    _, prepared = sent_body(anthropic_chat(**{"anthropic-beta": "mcp-client-2025-11-20,x"}), "anthropic")
    assert prepared.request.headers["anthropic-beta"] == "mcp-client-2025-11-20,x"
    assert "anthropic-beta" not in prepared.request.payload


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "gemini", "anthropic"])
def test_unsupported_vendor_tools_are_reported_as_dropped(protocol: str) -> None:
    chat = anthropic_chat(
        tools=[SEARCH, ADD], tool_choice={"type": "tool", "name": "web_search"}, speed="fast", container="c"
    )
    body, prepared = sent_body(chat, protocol, [])
    assert set(prepared.request.dropped_params) == {"tools[0]", "tool_choice", "speed", "container"}
    assert "web_search" not in json.dumps(body)


def test_parameters_that_raise_the_cost_must_be_allowed_by_name() -> None:
    assert sent_body(anthropic_chat(speed="fast"), "anthropic")[1].request.dropped_params == ("speed",)
    assert sent_body(anthropic_chat(speed="fast"), "anthropic", ["speed"])[0]["speed"] == "fast"
    assert sent_body(anthropic_chat(speed="fast"), "anthropic", ["*"])[0]["speed"] == "fast"


def test_openai_tools_tool_choice_and_include_are_sent_to_openai_unchanged() -> None:
    tools = [{"type": "web_search", "search_context_size": "low"}, {"type": "mcp", "server_label": "x"}]
    function = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
    include = ["web_search_call.action.sources"]
    chat = openai_chat(tools=[tools[0], function, tools[1]], tool_choice={"type": "web_search"}, include=include)
    body, prepared = sent_body(chat, "openai-responses")
    assert body["tools"] == [tools[0], function, tools[1]]
    assert body["tool_choice"] == {"type": "web_search"}
    assert set(body["include"]) >= set(include)
    assert prepared.request.dropped_params == ()
    body, prepared = sent_body(chat, "anthropic")
    assert set(prepared.request.dropped_params) == {"tools[0]", "tools[2]", "tool_choice", "include[0]"}


def test_vendor_specific_function_fields_are_forwarded() -> None:
    """A vendor's own fields in a function are passed on, whether a tool search finds the function or a program calls
    it.
    """
    added = {"defer_loading": True, "allowed_callers": ["code_execution_20260120"], "input_examples": [{}]}
    chat = anthropic_chat(tools=[SEARCH, {**ADD, **added}])
    body, prepared = sent_body(chat, "anthropic", ["tool_search", "code_execution"])
    assert body["tools"] == [{**ADD, "defer_loading": True, "allowed_callers": ["code_execution_20260120"]}]
    assert prepared.request.dropped_params == ("tools[0]", "tools[1].input_examples")
    function = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
    chat = openai_chat(tools=[{**function, "defer_loading": True}, {"type": "tool_search"}])
    body, prepared = sent_body(chat, "openai-responses")
    assert body["tools"] == [{**function, "defer_loading": True}, {"type": "tool_search"}]
    assert sent_body(chat, "openai")[1].request.dropped_params == ("tools[0].defer_loading", "tools[1]")


USED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "vienna"}}
PAGE = {
    "type": "web_search_result",
    "url": "https://a.example",
    "title": "A",
    "encrypted_content": "e",
    "page_age": None,
}
SEARCH_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}
SOURCE = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "A",
    "cited_text": "Vienna",
    "encrypted_index": "i",
}
CONTENT: list[dict[str, Any]] = [
    {"type": "text", "text": "I look."},
    USED,
    SEARCH_RESULT,
    {"type": "text", "text": "It is "},
    {"type": "text", "text": "Vienna.", "citations": [SOURCE]},
    {"type": "text", "text": " Fine."},
]
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": CONTENT,
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "container": {"id": "container_1", "expires_at": "2026-11-24T20:00:00Z"},
    "usage": {"input_tokens": 1, "output_tokens": 2},
}


def claude_events() -> bytes:
    events = [{"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}]
    for index, block in enumerate(CONTENT):
        start, deltas = dict(block), []
        if block["type"] == "text":
            start |= {"text": ""}
            deltas = [{"type": "text_delta", "text": block["text"]}]
            if start.pop("citations", None):
                start["citations"] = []
                deltas.insert(0, {"type": "citations_delta", "citation": SOURCE})
        elif block["type"] == "server_tool_use":
            start |= {"input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "end_turn", "container": MESSAGE["container"]}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 2}}, {"type": "message_stop"}]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def rebuild_message(stream: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the content blocks that a client assembles from the stream, and the stop reason."""
    content: list[dict[str, Any]] = []
    end: dict[str, Any] = {}
    inputs: dict[int, str] = {}
    for block in stream.decode().strip().split("\n\n"):
        event = json.loads(block.split("\ndata: ")[1])
        if event["type"] == "content_block_start":
            assert event["index"] == len(content)
            content.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            assert event["index"] == len(content) - 1
            delta, last_block = event["delta"], content[-1]
            if delta["type"] == "text_delta":
                last_block["text"] += delta["text"]
            elif delta["type"] == "citations_delta":
                last_block["citations"] = [*last_block.get("citations", []), delta["citation"]]
            elif delta["type"] == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
        elif event["type"] == "message_delta":
            end = event["delta"]
    for index, input_json in inputs.items():
        content[index]["input"] = json.loads(input_json)
    return content, end


def events_from(protocol: str, stream: bytes, size: int) -> list[Any]:
    decoder = PROTOCOLS[protocol].decoder()
    events: list[Any] = []
    for offset in range(0, len(stream), size):
        events += decoder.feed(stream[offset : offset + size])
    return [*events, *decoder.close()]


def render_stream(events: list[Any], writer: Any) -> bytes:
    output = b""
    for event in events:
        if isinstance(event, Delta):
            output += writer.write_delta(event)
        elif isinstance(event, Supplement):
            output += writer.write_annotations(event.annotations)
        elif isinstance(event, Finish):
            output += writer.write_finish(event)
    return bytes(output)


def test_claude_tool_blocks_are_returned_unchanged_complete_and_streamed() -> None:
    answer = PROTOCOLS["anthropic"].decode(200, {}, json.dumps(MESSAGE).encode())
    assert isinstance(answer, Answer)
    call = messages.parse({"model": "m", "messages": [{"role": "user", "content": "hi"}]}, lambda _: None)
    answer_body = message_json(answer, call, "m", "0123456789ab")
    assert answer_body["content"] == CONTENT
    assert answer_body["container"] == MESSAGE["container"]
    BetaMessage.model_validate(answer_body)
    for size in (17, 100_000):
        stream = render_stream(events_from("anthropic", claude_events(), size), MessageEvents("m", "0123456789ab"))
        content, end = rebuild_message(stream)
        assert content == CONTENT
        assert end["container"] == MESSAGE["container"]


def test_claude_tool_blocks_are_sent_back_to_claude_and_as_text_to_others() -> None:
    """Claude needs the blocks of its own tools in later turns. Other models get a sentence about the search."""
    conversation = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": CONTENT},
        {"role": "user", "content": "Sure?"},
    ]
    chat = messages.parse({"model": "m", "messages": conversation}, lambda _: None).chat
    body, prepared = sent_body(chat, "anthropic")
    assert body["messages"][1]["content"] == CONTENT
    assert prepared.request.dropped_params == ()
    body, prepared = sent_body(chat, "openai")
    assert body["messages"][1]["content"] == (
        "I look.\n[web_search: used at another provider; its data is not part of this conversation.]\n"
        "It is Vienna. Fine."
    )
    paths = ("messages[1].content[1]", "messages[1].content[2]", "messages[1].content[4].citations")
    assert prepared.request.dropped_params == paths


def test_tool_caller_field_is_kept_in_answers_and_requests() -> None:
    """A program that Claude runs may call a function. `caller` identifies the program, which gets the result."""
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    tool_use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}, "caller": caller}
    answer = PROTOCOLS["anthropic"].decode(200, {}, json.dumps({**MESSAGE, "content": [tool_use]}).encode())
    assert isinstance(answer, Answer)
    call = messages.parse({"model": "m", "messages": [{"role": "user", "content": "hi"}]}, lambda _: None)
    assert message_json(answer, call, "m", "")["content"] == [tool_use]
    conversation = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [tool_use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}]},
    ]
    body, _ = sent_body(messages.parse({"model": "m", "messages": conversation}, lambda _: None).chat, "anthropic")
    assert body["messages"][1]["content"] == [tool_use]
    writer = MessageEvents("m", "")
    stream = render_stream([*answer_events(answer)], writer)
    assert rebuild_message(stream)[0] == [tool_use]


def test_paused_claude_turn_keeps_its_stop_reason_and_can_be_continued() -> None:
    paused = {**MESSAGE, "content": [USED], "stop_reason": "pause_turn"}
    answer = PROTOCOLS["anthropic"].decode(200, {}, json.dumps(paused).encode())
    assert isinstance(answer, Answer)
    call = messages.parse({"model": "m", "messages": [{"role": "user", "content": "hi"}]}, lambda _: None)
    assert message_json(answer, call, "m", "")["stop_reason"] == "pause_turn"
    conversation = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": [USED]}]
    body, _ = sent_body(messages.parse({"model": "m", "messages": conversation}, lambda _: None).chat, "anthropic")
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Where?"}]}, conversation[1]]


ITEMS: list[dict[str, Any]] = [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "e1"},
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "vienna"}},
    {"id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "e2"},
    {
        "id": "ci_1",
        "type": "code_interpreter_call",
        "status": "completed",
        "code": "1",
        "container_id": "c",
        "outputs": None,
    },
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Vienna.", "annotations": [], "logprobs": []}],
    },
]
RESPONSE: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": ITEMS}


def openai_events() -> bytes:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**RESPONSE, "output": []}}]
    for index, item in enumerate(ITEMS):
        position = {"output_index": index, "item_id": item["id"]}
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
        )
        if item["type"] == "web_search_call":
            events += [
                {"type": f"response.web_search_call.{status}", **position} for status in ("in_progress", "completed")
            ]
        elif item["type"] == "code_interpreter_call":
            events.append({"type": "response.code_interpreter_call_code.delta", **position, "delta": "1"})
        elif item["type"] == "message":
            events.append({"type": "response.output_text.delta", **position, "content_index": 0, "delta": "Vienna."})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": RESPONSE})
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in numbered)


def test_openai_tool_items_are_returned_unchanged_complete_and_streamed() -> None:
    answer = PROTOCOLS["openai-responses"].decode(200, {}, json.dumps(RESPONSE).encode())
    assert isinstance(answer, Answer)
    call = responses.parse({"model": "m", "input": "hi"}, lambda _: None)
    answer_body = response_json(answer, call, "m", "0123456789ab")
    Response.model_validate(answer_body)
    stream = render_stream(
        events_from("openai-responses", openai_events(), 100),
        ResponseEvents(ResponseHead("m", call.chat), "0123456789ab"),
    )
    events = [json.loads(block.split("\ndata: ")[1]) for block in stream.decode().strip().split("\n\n")]
    for output in (answer_body["output"], events[-1]["response"]["output"]):
        assert [item["type"] for item in output] == [item["type"] for item in ITEMS]
        assert [output[1], output[3]] == [ITEMS[1], ITEMS[3]]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    searching = [event for event in events if event["type"].startswith("response.web_search_call")]
    assert [(event["output_index"], event["item_id"]) for event in searching] == [(1, "ws_1")] * 2
    next_chat = openai_chat(*({"role": "user", "content": "Where?"}, *answer_body["output"]))
    body, prepared = sent_body(next_chat, "openai-responses")
    assert [item for item in body["input"] if item["type"] in ("web_search_call", "code_interpreter_call")] == [
        *(ITEMS[1], ITEMS[3]),
    ]
    body, prepared = sent_body(next_chat, "gemini")
    assert "web_search_call" not in json.dumps(body)
    assert set(prepared.request.dropped_params) == {"input[2]", "input[4]"}


def test_client_computed_tool_output_is_sent_back_only_to_openai() -> None:
    call = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"}
    output = {"type": "shell_call_output", "call_id": "c1", "output": []}
    chat = openai_chat({"role": "user", "content": "ls"}, call, output)
    assert sent_body(chat, "openai-responses")[0]["input"][1:] == [call, output]
    body, _ = sent_body(chat, "openai")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


GOOGLES: list[dict[str, Any]] = [
    {"googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}},
    {"urlContext": {}},
    {"codeExecution": {}},
    {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"]}},
    {"googleMaps": {"enableWidget": True}},
    {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
]
CONFIGURED = {
    "retrievalConfig": {"latLng": {"latitude": 48.2, "longitude": 16.4}},
    "includeServerSideToolInvocations": True,
}


def test_google_tools_are_sent_to_gemini_unchanged() -> None:
    function = {"name": "add", "description": "", "parametersJsonSchema": {"type": "object", "properties": {}}}
    chat = gemini_call(tools=[*GOOGLES, {"functionDeclarations": [function]}], toolConfig=CONFIGURED).chat
    body, prepared = sent_body(chat, "gemini")
    assert body["tools"] == [{"functionDeclarations": [function]}, *GOOGLES]
    assert body["toolConfig"] == CONFIGURED
    assert prepared.request.dropped_params == ()
    sent_alone, _ = sent_body(gemini_call(tools=GOOGLES).chat, "gemini")
    assert sent_alone["tools"] == GOOGLES
    assert "toolConfig" not in sent_alone


def test_snake_case_google_tools_combined_with_functions_are_accepted() -> None:
    tool = {"google_search": {}, "url_context": None, "function_declarations": [{"name": "add"}]}
    body, prepared = sent_body(gemini_call(tools=[tool]).chat, "gemini")
    assert body["tools"] == [{"functionDeclarations": [{"name": "add", "description": ""}]}, {"googleSearch": {}}]
    assert prepared.request.dropped_params == ()


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "gemini", "anthropic"])
def test_google_tools_are_reported_as_dropped_for_other_protocols(protocol: str) -> None:
    chat = gemini_call(tools=GOOGLES[:2], toolConfig=CONFIGURED).chat
    body, prepared = sent_body(chat, protocol, [] if protocol == "gemini" else None)
    paths = {"tools[0].googleSearch", "tools[1].urlContext", *(f"toolConfig.{name}" for name in CONFIGURED)}
    assert set(prepared.request.dropped_params) == paths
    assert "tools" not in body
    assert "toolConfig" not in body


def test_third_party_search_must_be_allowed_by_name() -> None:
    chat = gemini_call(tools=[{"exaAiSearch": {"apiKey": "k"}}]).chat
    assert sent_body(chat, "gemini")[1].request.dropped_params == ("tools[0].exaAiSearch",)
    assert sent_body(chat, "gemini", ["exa_ai_search"])[0]["tools"] == [{"exaAiSearch": {"apiKey": "k"}}]


RUN: dict[str, Any] = {"executableCode": {"language": "PYTHON", "code": "print(2 + 2)", "id": "x1"}}
RAN: dict[str, Any] = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4\n", "id": "x1"}}
SEARCH_CALL: dict[str, Any] = {
    "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": {"queries": ["vienna"]}}
}
SEARCH_RESPONSE: dict[str, Any] = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": {"n": 1}}}
PARTS: list[dict[str, Any]] = [
    {"text": "I look. "},
    SEARCH_CALL,
    SEARCH_RESPONSE,
    {"text": "I add. "},
    RUN,
    RAN,
    {"text": "It is 4."},
]
ADDED: dict[str, Any] = {"functionCall": {"id": "f1", "name": "add", "args": {"a": 1}}}
SOURCES: dict[str, Any] = {
    "groundingMetadata": {
        "webSearchQueries": ["vienna"],
        "searchEntryPoint": {"renderedContent": "<div/>"},
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 7}, "groundingChunkIndices": [0]}],
    },
    "urlContextMetadata": {
        "urlMetadata": [{"retrievedUrl": "https://a.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}]
    },
}
COUNT = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}


def gemini_body(parts: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **fields}
    return {"candidates": [candidate], "usageMetadata": COUNT, "modelVersion": "m", "responseId": "r"}


def gemini_events() -> bytes:
    """Return the answer as Gemini streams it, with one or more parts per chunk and the sources in the last chunk."""
    chunks = [gemini_body(PARTS[:1]), gemini_body(PARTS[1:5]), gemini_body(PARTS[5:])]
    for chunk in chunks:
        del chunk["usageMetadata"]
    chunks.append(gemini_body([{"text": ""}], finishReason="STOP", **SOURCES))
    return b"".join(b"data: " + json.dumps(body).encode() + b"\r\n\r\n" for body in chunks)


def answered_candidate(parts: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    decoded = PROTOCOLS["gemini"].decode(
        200, {}, json.dumps(gemini_body(parts, finishReason="STOP", **fields)).encode()
    )
    assert isinstance(decoded, Answer)
    response_body = gemini_json(decoded, gemini_call(), "m", "0123456789ab")
    gemini_types.GenerateContentResponse.model_validate(response_body)
    candidate: dict[str, Any] = response_body["candidates"][0]
    return candidate


def test_google_tool_parts_and_sources_are_returned_unchanged_complete_and_streamed() -> None:
    candidate = answered_candidate(PARTS, **SOURCES)
    assert candidate["content"]["parts"] == PARTS
    assert {name: candidate[name] for name in SOURCES} == SOURCES
    for size in (17, 100_000):
        stream = render_stream(
            events_from("gemini", gemini_events(), size), GeminiChunks(model="m", origin="0123456789ab")
        )
        chunks = [json.loads(line.removeprefix("data: ")) for line in stream.decode().strip().split("\r\n\r\n")]
        for chunk in chunks:
            gemini_types.GenerateContentResponse.model_validate(chunk)
        candidates = [chunk["candidates"][0] for chunk in chunks]
        parts = [part for candidate_part in candidates for part in candidate_part["content"]["parts"]]
        assert [part for part in parts if part != {"text": ""}] == PARTS
        assert [
            {name: candidate_part[name] for name in SOURCES}
            for candidate_part in candidates
            if "groundingMetadata" in candidate_part
        ] == [SOURCES]


def test_gemini_code_execution_without_text_counts_as_an_answer() -> None:
    assert answered_candidate([RUN, RAN])["content"]["parts"] == [RUN, RAN]


def test_google_tool_parts_keep_their_position_among_function_calls() -> None:
    second = {"functionCall": {"id": "f2", "name": "add", "args": {"a": 2}}}
    parts = [{"text": "I look."}, ADDED, SEARCH_CALL, SEARCH_RESPONSE, second]
    assert answered_candidate(parts)["content"]["parts"] == parts
    body, _ = sent_body(gemini_call(*conversation_with(parts)).chat, "gemini")
    kinds = [next(name for name in part if name != "thoughtSignature") for part in body["contents"][1]["parts"]]
    assert kinds == ["text", "functionCall", "toolCall", "toolResponse", "functionCall"]


def conversation_with(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "parts": [{"text": "Where?"}]},
        {"role": "model", "parts": parts},
        {"role": "user", "parts": [{"text": "Sure?"}]},
    ]


def test_google_tool_parts_are_sent_back_to_gemini_and_as_text_to_others() -> None:
    chat = gemini_call(*conversation_with(PARTS)).chat
    body, prepared = sent_body(chat, "gemini")
    assert body["contents"] == conversation_with(PARTS)
    assert prepared.request.dropped_params == ()
    body, prepared = sent_body(chat, "openai")
    note = "[{}: used at another provider; its data is not part of this conversation.]"
    assert body["messages"][1]["content"] == (
        f"I look. \n{note.format('web_search')}\nI add. \n{note.format('code_execution')}\nIt is 4."
    )
    assert prepared.request.dropped_params == tuple(f"contents[1].parts[{number}]" for number in (1, 2, 4, 5))


def test_google_tool_part_signature_is_sent_back_only_to_the_same_model() -> None:
    """Another Gemini model would reject the signature. A signature whose model is unknown is sent to any model."""
    signed_call = {**SEARCH_CALL, "thoughtSignature": "c2lnbmVk"}
    recipient = model_endpoint("gemini", Target("p", URLS["gemini"], "m", "k"), TEXT_ONLY)
    decoded = PROTOCOLS["gemini"].decode(
        200, {}, json.dumps(gemini_body([signed_call, SEARCH_RESPONSE], finishReason="STOP")).encode()
    )
    assert isinstance(decoded, Answer)
    answered_parts = gemini_json(decoded, gemini_call(), "m", recipient.origin)["candidates"][0]["content"]["parts"]
    assert answered_parts[0]["toolCall"] == SEARCH_CALL["toolCall"]
    assert sent_body(gemini_call(*conversation_with(answered_parts)).chat, "gemini")[0]["contents"][1]["parts"] == [
        signed_call,
        SEARCH_RESPONSE,
    ]
    assert sent_body(gemini_call(*conversation_with([signed_call, SEARCH_RESPONSE])).chat, "gemini")[0]["contents"][1][
        "parts"
    ] == [signed_call, SEARCH_RESPONSE]
    parts_of_other_origin = gemini_json(decoded, gemini_call(), "m", "0123456789ab")["candidates"][0]["content"][
        "parts"
    ]
    assert sent_body(gemini_call(*conversation_with(parts_of_other_origin)).chat, "gemini")[0]["contents"][1][
        "parts"
    ] == [SEARCH_CALL, SEARCH_RESPONSE]


def test_gemini_grounding_metadata_is_omitted_from_other_apis() -> None:
    decoded = PROTOCOLS["gemini"].decode(
        200, {}, json.dumps(gemini_body(PARTS, finishReason="STOP", **SOURCES)).encode()
    )
    assert isinstance(decoded, Answer)
    call = messages.parse({"model": "m", "messages": [{"role": "user", "content": "hi"}]}, lambda _: None)
    assert "groundingMetadata" not in json.dumps(message_json(decoded, call, "m", ""))
    assert b"executableCode" not in render_stream([*answer_events(decoded)], MessageEvents("m", ""))


def test_tool_result_fields_are_sent_to_a_computer_use_gemini_and_as_text_to_others() -> None:
    call = {"functionCall": {"id": "f1", "name": "click_at", "args": {"x": 1, "y": 2}}, "thoughtSignature": "c2ln"}
    response = {"url": "https://a.example", "safety_acknowledgement": "true"}
    result = {"functionResponse": {"id": "f1", "name": "click_at", "response": response}}
    conversation = [*conversation_with([call])[:2], {"role": "user", "parts": [result]}]
    body, _ = sent_body(gemini_call(*conversation, tools=GOOGLES[-1:]).chat, "gemini")
    assert body["contents"][1:] == [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    without_tools, _ = sent_body(gemini_call(*conversation).chat, "gemini")
    assert without_tools["contents"][2]["parts"][0]["functionResponse"]["response"] == {"result": json.dumps(response)}


def kinds_in(model: type[BaseModel], kinds: dict[str, set[str]]) -> dict[str, set[str]]:
    for field in model.model_fields.values():
        (annotation,) = (argument for argument in get_args(field.annotation) if argument is not type(None))
        (element,) = get_args(annotation) if get_origin(annotation) is list else (annotation,)
        name = "dict" if issubclass(get_origin(element) or element, dict | BaseModel) else element.__name__
        name = "str" if issubclass(get_origin(element) or element, Enum | bytes) else name
        known = str(field.alias) in kinds
        kinds.setdefault(str(field.alias), set()).add(name if element is annotation else f"list[{name}]")
        if isinstance(element, type) and issubclass(element, BaseModel) and not known:
            kinds_in(element, kinds)
    return kinds


def test_every_gemini_source_field_has_a_known_type() -> None:
    """A client rejects the whole answer if one field has the wrong type, so such fields are dropped."""
    kinds_found: dict[str, set[str]] = {}
    for name in ("GroundingMetadata", "UrlContextMetadata", "CitationMetadata"):
        kinds_in(getattr(gemini_types, name), kinds_found)
    for name in ("ExecutableCode", "CodeExecutionResult", "ToolCall", "ToolResponse"):
        kinds_in(getattr(gemini_types, name), kinds_found)
    table = {name: {kind if isinstance(kind, str) else kind.__name__} for name, kind in KINDS.items()}
    assert {name: kinds for name, kinds in kinds_found.items() if table.get(name) != kinds} == {}


ODD = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([{}]) | st.just({}) | st.just([])


@pytest.mark.filterwarnings("ignore:.* is not a valid:UserWarning")
@given(position=st.integers(0, 200), value=ODD)
def test_google_sdk_accepts_answers_with_arbitrary_values_in_source_fields(position: int, value: Any) -> None:
    answered_fields = copy.deepcopy({"parts": PARTS, **SOURCES})
    positions: list[tuple[Any, Any]] = []
    waiting: list[Any] = [answered_fields["parts"], *(answered_fields[name] for name in SOURCES)]
    positions += [(answered_fields, name) for name in SOURCES]
    while waiting:
        container = waiting.pop()
        keys = range(len(container)) if isinstance(container, list) else list(container)
        positions += [(container, key) for key in keys]
        waiting += [container[key] for key in keys if isinstance(container[key], list | dict)]
    container, key = positions[position % len(positions)]
    container[key] = value
    body = gemini_body(answered_fields.pop("parts"), finishReason="STOP", **answered_fields)
    decoded = PROTOCOLS["gemini"].decode(200, {}, json.dumps(body).encode())
    if isinstance(decoded, Answer):
        gemini_types.GenerateContentResponse.model_validate(gemini_json(decoded, gemini_call(), "m", ""))


def test_document_lists_the_tools_that_are_allowed_by_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data-plane.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith("| `web_search` ")]
    assert [set(re.findall(r"`([\w-]+)`", line)) for line in lines] == [set(RUN_BY_VENDOR)]
