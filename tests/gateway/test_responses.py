"""OpenAI's Responses API within the test process: items, tools, reasoning, files, refusals, and what Codex sends."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

import pytest

from capabilities.core.delivery.vendor_items import fit_vendor_items
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, AnswerDetails, Delta, Finish, Media, ToolCallDelta, Usage
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import BadRequestError, GatewayError
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.parsing import needs_thread, parse
from routing_admin.gateway.responses.rendering import ResponseHead, response_json
from tests.gateway.plane import PNG, PNG_URL, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ORIGIN = "0123456789ab"
CALL = ChatCall(ChatRequest(()), "m")
THOUGHT = ReasoningBlock(ThoughtForm.ENCRYPTED, "", "cHJvb2Y=", 0, 0, id="rs_1", dialect="openai-responses-v1")


def request(*items: object, **more: object) -> dict[str, object]:
    content = items[0] if len(items) == 1 and isinstance(items[0], str) else list(items)
    return {"model": "echo-text", "input": content, **more}


def user(*parts: object) -> dict[str, object]:
    return {"role": "user", "content": list(parts)}


def messages(body: dict[str, object]) -> tuple[Message, ...]:
    return parse(body, lambda _: None).chat.messages


def read_events(stream: bytes) -> list[dict[str, object]]:
    events = []
    for number, block in enumerate(stream.decode().strip().split("\n\n")):
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert (name, value["sequence_number"]) == (f"event: {value['type']}", number)
        events.append(value)
    return events


def encode_stream(deltas: Iterable[Delta], finish: Finish | None = None) -> list[dict[str, object]]:
    events = ResponseEvents(ResponseHead("m", CALL.chat), ORIGIN)
    blocks = [events.write_delta(delta) for delta in deltas]
    return read_events(b"".join([*blocks, events.write_finish(finish or Finish("stop", Usage(5, 7)))]))


def test_question_is_answered_with_a_response(key):
    answer = post(key, request("Plan a picnic", instructions="Be brief."), "/v1/responses")
    body = answer.json()
    assert (body["object"], body["status"], body["model"], body["store"]) == (
        "response",
        "completed",
        "echo-text",
        True,
    )
    (item,) = body["output"]
    assert "Plan a picnic" in item["content"][0]["text"]
    assert body["usage"]["total_tokens"] > 0
    assert answer.headers["x-routing-model"] == "echo-text"
    assert logged(answer.headers["x-request-id"]).outcome == "ok"


def test_output_items_of_one_answer_become_one_assistant_message():
    reasoning = response_json(Answer("", reasoning="hm", thoughts=(THOUGHT,)), CALL, "m", ORIGIN)["output"][0]
    system, question, called, result, custom_result = messages(
        request(
            {"role": "developer", "content": "You are"},
            user({"type": "input_text", "text": "go"}),
            reasoning,
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
            {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
            {"type": "function_call_output", "call_id": "c1", "output": "42"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "done"}]},
        )
    )
    assert [message.role for message in (system, question, called, result, custom_result)] == [
        *(Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL),
    ]
    assert (called.text, called.reasoning) == ("Yes.", "hm")
    assert [(call.id, call.custom) for call in called.tool_calls] == [("c1", False), ("c2", True)]
    (thought,) = called.thoughts
    assert (thought.proof, thought.origin) == (THOUGHT.proof, ORIGIN)
    assert (result.tool_call_id, result.text, custom_result.text) == ("c1", "42", "done")


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "input_image", "image_url": PNG_URL, "detail": "low"}, Kind.IMAGE),
        ({"type": "input_image", "image_url": "https://example.org/a.png"}, Kind.IMAGE),
        ({"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}, Kind.TEXT),
        ({"type": "input_file", "file_url": "https://example.org/a.pdf"}, Kind.DOCUMENT),
    ],
)
def test_files_are_read_in_messages_and_tool_results(part, kind):
    user_message, tool_message = messages(
        request(user(part), {"type": "function_call_output", "call_id": "c", "output": [part]})
    )
    for message in (user_message, tool_message):
        (file,) = message.parts
        assert isinstance(file, FilePart)
        assert file.kind is kind


def test_parameters_of_the_responses_api_are_read():
    schema = {"type": "object", "properties": {}}
    body = request(
        "x",
        tools=[
            {"type": "function", "name": "add", "parameters": schema, "strict": False},
            {"type": "custom", "name": "patch", "format": {"type": "text"}},
            {"type": "web_search"},
        ],
        tool_choice={"type": "function", "name": "add"},
        text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}, "verbosity": "low"},
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        store=False,
        max_output_tokens=9,
        prompt_cache_key="k",
    )
    chat = parse(body, lambda _: None).chat
    assert [(tool.name, tool.custom is not None) for tool in chat.tools] == [("add", False), ("patch", True)]
    assert chat.inner == ("tools[1].custom",)
    assert [(item.name, item.path) for item in chat.vendor] == [("web_search", "tools[2]")]
    assert (chat.tool_name, chat.max_tokens) == ("add", 9)
    assert chat.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "n", "strict": True, "schema": schema},
    }
    extra = {"reasoning_effort": "high", "reasoning_summary": "auto", "verbosity": "low", "prompt_cache_key": "k"}
    assert chat.extra == extra


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "x"}, "model"),
        ({"model": "a"}, "input"),
        ({"model": "a", "input": []}, "input"),
        (request("x", previous_response_id="resp_1"), "previous_response_id"),
        (request("x", background=True), "background"),
        (request("x", conversation="conv_1"), "conversation"),
        (request("x", prompt={"id": "p"}), "prompt"),
        (request({"type": "item_reference", "id": "msg_1"}), "input[0].type"),
        (request({"type": "compaction_trigger"}), "input[0].type"),
        (request({"type": "strange"}), "input[0].type"),
        (request({"role": "robot", "content": "x"}), "input[0].role"),
        (request(user({"type": "video"})), "input[0].content[0].type"),
        (request(user({"type": "input_image"})), "input[0].content[0].image_url"),
        (request({"type": "function_call_output", "output": "x"}), "input[0].call_id"),
        (request("x", tool_choice="some"), "tool_choice"),
        (request("x", tool_choice={"type": "allowed_tools", "mode": "some", "tools": []}), "tool_choice.mode"),
        (request({"type": ["message"], "role": "user", "content": "x"}), "input[0].type"),
        (request({"type": "reasoning", "summary": 5}), "input[0].summary"),
    ],
)  # fmt: skip
def test_invalid_request_is_refused_with_the_path_of_the_field(body, param):
    with pytest.raises(BadRequestError) as refused:
        parse(body, lambda _: None)
    assert refused.value.param == param


def test_items_of_openais_own_tools_are_sent_only_to_openai():
    chat = parse(
        request({"type": "web_search_call", "id": "ws_1"}, user({"type": "input_text", "text": "x"})), print
    ).chat
    assert [message.role for message in chat.messages] == [Role.ASSISTANT, Role.USER]
    assert [(item.name, item.path) for item in chat.messages[0].vendor] == [("web_search", "input[0]")]
    assert fit_vendor_items(chat, "gemini", (), "en")[1] == ("input[0]",)


@pytest.mark.parametrize(
    ("item", "threaded"),
    [
        (user({"type": "input_text", "text": "x"}), False),
        ({"role": "user", "content": "x"}, False),
        (user({"type": "input_image", "image_url": PNG_URL}), False),
        (user({"type": "input_image", "image_url": "artifact:a"}), True),
        (user({"type": "input_image", "file_id": "a"}), True),
        (user({"type": "input_file", "file_id": "a"}), True),
        ({"type": "function_call_output", "output": "42"}, False),
        ({"type": "function_call_output", "output": '{"routing": "file"}'}, True),
    ],
)
def test_only_stored_and_large_files_are_read_in_a_thread(item, threaded):
    assert needs_thread(request(item), 1000) is threaded


def test_answer_has_its_output_items_in_order():
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.org/", "start_index": 0, "end_index": 5}}
    image = Media(Kind.IMAGE, "image/png", base64.b64encode(PNG).decode())
    sound = Media(Kind.AUDIO, "audio/wav", "AA==", artifact_id="a1")
    answer = Answer("Hello", reasoning="hm", thoughts=(THOUGHT,), annotations=(cited,), media=(image, sound))
    reasoning, message, image_item = response_json(answer, CALL, "m", ORIGIN)["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert message["content"][0]["text"] == "Hello\n[audio/wav artifact:a1]"
    assert message["content"][0]["annotations"][0]["url"] == "https://example.org/"
    assert (image_item["type"], image_item["result"]) == ("image_generation_call", image.data)


@pytest.mark.parametrize(
    ("finish_reason", "status", "reason"),
    [("stop", "completed", None), ("length", "incomplete", "max_output_tokens"),
     ("content_filter", "incomplete", "content_filter")],
)  # fmt: skip
def test_finish_reason_determines_the_status_of_complete_and_streamed_responses(finish_reason, status, reason):
    whole = response_json(Answer("x", finish_reason=finish_reason), CALL, "m", ORIGIN)
    streamed = encode_stream([Delta("x")], Finish(finish_reason))[-1]
    for response in (whole, streamed["response"]):
        assert response["status"] == status
        assert (response["incomplete_details"] or {}).get("reason") == reason
    assert streamed["type"] == f"response.{status}"


def test_last_stream_event_has_the_complete_response():
    thought = Delta(thoughts=(THOUGHT,))
    calls = [
        ToolCallDelta(0, "c0", "add", '{"x"'), ToolCallDelta(1, "c1", "sub", "{"),
        ToolCallDelta(0, arguments=": 1}"), ToolCallDelta(1, arguments="}"),
    ]  # fmt: skip
    events = encode_stream(
        [Delta(reasoning="hm"), thought, Delta("Hel"), Delta("lo"), *(Delta(tool_calls=(call,)) for call in calls)]
    )
    names = [event["type"] for event in events]
    assert names[:2] == ["response.created", "response.in_progress"]
    assert names.count("response.output_item.added") == names.count("response.output_item.done") == 4
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "function_call"]
    assert [item["arguments"] for item in output[2:]] == ['{"x": 1}', "{}"]
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == "Hello"
    assert output[1]["content"][0]["text"] == "Hello"
    message = messages(request(*output))[0]
    assert (message.text, message.thoughts[0].proof, len(message.tool_calls)) == ("Hello", THOUGHT.proof, 2)


def test_refusal_and_citations_are_parts_of_the_message_item():
    events = ResponseEvents(ResponseHead("m", CALL.chat), ORIGIN)
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.org/"}}
    stream = (
        events.write_delta(Delta("No"))
        + events.write_annotations([cited])
        + events.write_delta(Delta(refusal="I won't"))
    )
    (item,) = read_events(stream + events.write_finish(Finish("stop")))[-1]["response"]["output"]
    assert [part["type"] for part in item["content"]] == ["output_text", "refusal"]
    assert item["content"][0]["annotations"][0]["url"] == "https://example.org/"


def test_response_fields_have_values_that_strict_clients_accept():
    """The response repeats the request's parameters.

    All other fields have OpenAI's defaults, since strict clients refuse null.
    """
    default = response_json(Answer("x"), CALL, "m", ORIGIN)
    shape = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    parameters = {"metadata": {"a": "b"}, "prompt_cache_key": "k", "text": {"format": shape}}
    call = parse(request("x", temperature=0.2, **parameters), lambda _: None)
    answer = Answer("x", details=AnswerDetails(service_tier="flex"))
    response = response_json(answer, call, "m", ORIGIN)
    assert (default["temperature"], default["top_p"], default["top_logprobs"], default["service_tier"]) == (
        1,
        1,
        0,
        "default",
    )
    assert (response["temperature"], response["metadata"], response["prompt_cache_key"]) == (0.2, {"a": "b"}, "k")
    assert (response["service_tier"], default["text"]) == ("flex", {"format": {"type": "text"}})
    assert response["text"]["format"] == {**shape, "description": None}
    assert response["completed_at"] >= response["created_at"]


def test_broken_stream_ends_with_a_failed_response():
    """The error's code is one of OpenAI's codes, and its type is the gateway's own code."""
    events = ResponseEvents(ResponseHead("m", CALL.chat), ORIGIN)
    last = read_events(
        events.write_delta(Delta("x")) + events.write_error(GatewayError(502, "stream_broken", "Broke."), "r")
    )[-1]
    assert last["type"] == "response.failed"
    error = last["response"]["error"]
    assert (error["code"], error["type"]) == ("server_error", "stream_broken")


def test_plain_text_input_is_a_user_message():
    (message,) = messages(request("hello"))
    assert (message.role, message.parts) == (Role.USER, (TextPart("hello"),))
