"""The Messages API over real sockets with Anthropic's own client, used as coding agents use it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import anthropic
import pytest
from pydantic import BaseModel

from tests.gateway.plane import PNG
from tests.gateway.serving import Server, served

pytestmark = pytest.mark.usefixtures("reset_lab")

PICTURE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
HELLO = [{"role": "user", "content": "hello"}]
TOOL = {
    "name": "double",
    "description": "Doubles a number",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
RESULT = [
    {"role": "user", "content": "note it"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "note", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "noted"}]},
]
UPSTREAMS = ("one", "by-openai-responses", "by-anthropic", "by-gemini")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("messages")) as server:
        yield server


@pytest.mark.smoke
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_complete_and_streamed_answers_agree_over_each_protocol(claude, upstream):
    request_fields = {"model": f"{upstream}/lab", "max_tokens": 50, "messages": HELLO, "system": "Be brief."}
    whole = claude.messages.create(**request_fields)
    with claude.messages.stream(**request_fields) as stream:
        text = "".join(stream.text_stream)
        last = stream.get_final_message()
    assert whole.content[0].text == text == last.content[0].text
    assert (whole.stop_reason, last.stop_reason) == ("end_turn", "end_turn")
    assert whole.usage.output_tokens == last.usage.output_tokens > 0


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("streamed", [False, True])
def test_tool_call_and_its_result_are_passed_on(claude, upstream, streamed):
    request_fields = {"model": f"{upstream}/fault:capable", "max_tokens": 50, "tools": [TOOL]}
    first = [{"role": "user", "content": "double 4"}]
    if streamed:
        with claude.messages.stream(**request_fields, messages=first) as stream:
            answer = stream.get_final_message()
    else:
        answer = claude.messages.create(**request_fields, messages=first)
    call = answer.content[-1]
    assert (answer.stop_reason, call.type, call.name) == ("tool_use", "tool_use", "double")
    assert isinstance(call.input["n"], int)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "8"}
    turns = [*first, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    final_answer = claude.messages.create(**request_fields, messages=turns)
    assert final_answer.stop_reason == "end_turn"


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_name_that_the_vendor_would_refuse_is_replaced_and_restored(claude, server, streamed):
    """MCP servers use tool names with dots, which some vendors refuse."""
    name = "calculator.numbers/double"
    request_fields = {"model": "one/fault:capable", "max_tokens": 50, "tools": [{**TOOL, "name": name}]}
    request_fields["messages"] = [{"role": "user", "content": "double 4"}]
    if streamed:
        with claude.messages.stream(**request_fields) as stream:
            answer = stream.get_final_message()
    else:
        answer = claude.messages.create(**request_fields)
    assert answer.content[-1].name == name
    sent = json.loads(server.lab.requests[-1].body)["tools"][0]["function"]["name"]
    assert sent.startswith("calculator_numbers_double_")


def test_screenshot_in_a_tool_result_is_described_for_a_text_model(claude, server):
    server.lab.play({"one": ["http_503"] * 3, "two": "ok"})
    use = {"type": "tool_use", "id": "t1", "name": "double", "input": {"n": 4}}
    shot = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": PICTURE}]}
    turns = [*HELLO, {"role": "assistant", "content": [use]}, {"role": "user", "content": [shot]}]
    raw = claude.messages.with_raw_response.create(
        model="task:chain", max_tokens=50, messages=turns, tools=[TOOL], system=[{"type": "text", "text": "You are"}]
    )
    assert raw.headers["x-routing-provider"] in ("two", "three")
    assert raw.headers["x-routing-attempts"] != "1"
    assert raw.headers["x-routing-adaptation"] == "image=described"
    assert PICTURE["data"] not in str(server.lab.requests[-1].json)


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_asynchronous_client_works_for_answers_streams_tools_and_token_counts(server, upstream):
    client_options = {
        "api_key": server.key,
        "base_url": server.url,
        "max_retries": 0,
        "_strict_response_validation": True,
    }
    request_fields = {"model": f"{upstream}/lab", "max_tokens": 50, "messages": HELLO}
    async with anthropic.AsyncAnthropic(**client_options) as claude:
        whole = await claude.messages.create(**request_fields)
        async with claude.messages.stream(**request_fields) as stream:
            text = "".join([piece async for piece in stream.text_stream])
        events = [event.type async for event in await claude.messages.create(**request_fields, stream=True)]
        called = await claude.messages.create(**{**request_fields, "model": f"{upstream}/fault:capable"}, tools=[TOOL])
        counted = await claude.messages.count_tokens(model=f"{upstream}/lab", messages=HELLO)
    assert "hello" in text
    assert whole.content[0].text == text
    assert (events[0], events[-1]) == ("message_start", "message_stop")
    assert called.content[-1].name == "double"
    assert counted.input_tokens > 0


class Doubled(BaseModel):
    """The structured output that the test requests."""

    number: int
    doubled: int


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_answer_is_parsed_into_the_requested_type(claude, upstream):
    messages = [{"role": "user", "content": "the number 4"}]
    answer = claude.messages.parse(
        model=f"{upstream}/fault:capable", max_tokens=50, messages=messages, output_format=Doubled
    )
    assert answer.parsed_output == Doubled(number=4, doubled=4)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("http_400", anthropic.BadRequestError),
        ("http_404", anthropic.NotFoundError),
        ("http_429:retry_after=30", anthropic.RateLimitError),
        ("http_422", anthropic.UnprocessableEntityError),
        ("http_500", anthropic.InternalServerError),
    ],
)
def test_refusal_raises_the_clients_error_class(claude, step, error, streamed):
    with pytest.raises(error) as caught:
        claude.messages.create(model=f"one/fault:{step}", max_tokens=5, messages=HELLO, stream=streamed)
    assert caught.value.body["type"] == "error"
    assert caught.value.request_id == caught.value.body["request_id"]


def test_wrong_key_raises_the_clients_authentication_error(server):
    unknown_client = anthropic.Anthropic(api_key="ra_00000000_wrong", base_url=server.url, max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        unknown_client.messages.create(model="auto", max_tokens=5, messages=HELLO)


def test_broken_stream_raises_an_error_in_the_client(claude):
    with (
        pytest.raises(anthropic.APIStatusError),
        claude.messages.stream(model="one/fault:reset_mid_body", max_tokens=5, messages=HELLO) as stream,
    ):
        list(stream.text_stream)


@pytest.mark.parametrize("streamed", [False, True])
def test_thinking_signature_is_sent_back_only_to_its_model(claude, server, streamed):
    """The client gets the signature with a prefix that identifies the model.

    Only this model receives the signature in the next turn, without the prefix.
    """
    request_fields = {"max_tokens": 3000, "tools": [TOOL], "thinking": {"type": "enabled", "budget_tokens": 2000}}
    to_anthropic = {**request_fields, "model": "by-anthropic/fault:capable"}
    first = [{"role": "user", "content": "double 4"}]
    if streamed:
        with claude.messages.stream(**to_anthropic, messages=first) as stream:
            answer = stream.get_final_message()
    else:
        answer = claude.messages.create(**to_anthropic, messages=first)
    thought, call = answer.content[0], answer.content[-1]
    assert (thought.type, call.type) == ("thinking", "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "8"}
    turns = [*first, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    claude.messages.create(**to_anthropic, messages=turns)
    sent = server.lab.requests[-1].json["messages"][1]["content"]
    assert sent[0]["type"] == "thinking"
    assert thought.signature.endswith(f":{sent[0]['signature']}")
    claude.messages.create(**{**request_fields, "model": "by-gemini/fault:capable"}, messages=turns)
    assert sent[0]["signature"] not in str(server.lab.requests[-1].json)


@pytest.mark.parametrize("streamed", [False, True])
def test_empty_answer_after_a_tool_result_is_valid(claude, server, streamed):
    """Claude may end a turn without content after a tool result. Anywhere else, an empty answer is a fault."""
    server.lab.play({"by-anthropic": "empty_content"})
    request_fields = {"model": "by-anthropic/lab", "max_tokens": 50}
    if streamed:
        with claude.messages.stream(**request_fields, messages=RESULT) as stream:
            answer = stream.get_final_message()
    else:
        answer = claude.messages.create(**request_fields, messages=RESULT)
    assert (answer.content, answer.stop_reason) == ([], "end_turn")
    assert len(server.lab.requests) == 1
    with pytest.raises(anthropic.InternalServerError, match="empty"):
        claude.messages.create(**request_fields, messages=HELLO)


def test_thread_is_refused_and_the_client_continues_without_one(claude, server):
    """The newest SDK's tool runner first requests a thread.

    If the thread is refused, it sends the whole conversation in each turn.
    """

    @anthropic.beta_tool
    def double(n: int) -> str:
        """Double a number.

        Args:
            n: The number.
        """
        return str(2 * n)

    with pytest.raises(anthropic.BadRequestError, match="without thread") as refused:
        claude.beta.messages.create(
            model="by-anthropic/lab", max_tokens=50, messages=HELLO, extra_body={"thread": {"type": "create"}}
        )
    assert refused.value.body["error"]["details"]["error_code"] == "thread_unsupported_request"
    request_fields = {"model": "by-anthropic/fault:capable", "max_tokens": 50, "tools": [double]}
    runner = claude.beta.messages.tool_runner(**request_fields, messages=[{"role": "user", "content": "double 4"}])
    assert runner.until_done().stop_reason == "end_turn"
    bodies = [received.json for received in server.lab.requests]
    assert all("thread" not in body for body in bodies)
    assert [len(body["messages"]) for body in bodies] == [1, 3]
