"""The Responses API over real sockets with OpenAI's own client, used as coding agents use it."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from pydantic import BaseModel

from tests.gateway.plane import PNG_URL
from tests.gateway.serving import Server, served

pytestmark = pytest.mark.usefixtures("reset_lab")

TOOL = {
    "type": "function",
    "name": "double",
    "description": "Doubles a number",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "strict": False,
}
UPSTREAMS = ("one", "by-openai-responses", "by-anthropic", "by-gemini")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("responses")) as server:
        yield server


@pytest.mark.smoke
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_complete_and_streamed_answers_agree_over_each_protocol(client, upstream):
    request_fields = {"model": f"{upstream}/lab", "input": "hello", "instructions": "Be brief.", "store": False}
    whole = client.responses.create(**request_fields)
    with client.responses.stream(**request_fields) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        last = stream.get_final_response()
    assert whole.output_text == text == last.output_text
    assert (whole.status, last.status) == ("completed", "completed")
    assert (whole.store, last.store) == (False, False)
    assert whole.usage.output_tokens == last.usage.output_tokens > 0


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("streamed", [False, True])
def test_tool_call_and_its_result_are_passed_on(client, upstream, streamed):
    request_fields = {"model": f"{upstream}/fault:capable", "tools": [TOOL], "include": ["reasoning.encrypted_content"]}
    request_fields["reasoning"] = {"effort": "low"}
    first = [{"role": "user", "content": "double 4"}]
    if streamed:
        with client.responses.stream(**request_fields, input=first) as stream:
            answer = stream.get_final_response()
    else:
        answer = client.responses.create(**request_fields, input=first)
    call = next(item for item in answer.output if item.type == "function_call")
    assert (call.name, call.status) == ("double", "completed")
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "8"}
    final_answer = client.responses.create(**request_fields, input=[*first, *items, result])
    assert final_answer.output_text


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_signature_is_sent_back_only_to_its_model(client, server, streamed):
    """The reasoning item is opaque to the client.

    The model that made the item receives its signature back, and other models do not.
    """
    thinking = {"type": "enabled", "budget_tokens": 2000}
    request_fields = {"tools": [TOOL], "max_output_tokens": 3000, "extra_body": {"thinking": thinking}}
    to_anthropic = {**request_fields, "model": "by-anthropic/fault:capable"}
    first = [{"role": "user", "content": "double 4"}]
    if streamed:
        with client.responses.stream(**to_anthropic, input=first) as stream:
            answer = stream.get_final_response()
    else:
        answer = client.responses.create(**to_anthropic, input=first)
    reasoning, call = answer.output[0], answer.output[-1]
    assert reasoning.type == "reasoning"
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
    turns = [*first, *items, {"type": "function_call_output", "call_id": call.call_id, "output": "8"}]
    client.responses.create(**to_anthropic, input=turns)
    (block,) = [part for part in server.lab.requests[-1].json["messages"][1]["content"] if part["type"] == "thinking"]
    client.responses.create(**{**request_fields, "model": "by-gemini/fault:capable"}, input=turns)
    assert block["signature"]
    assert block["signature"] not in str(server.lab.requests[-1].json)


def test_screenshot_in_a_tool_result_is_described_for_a_text_model(client, server):
    server.lab.play({"one": ["http_503"] * 3, "two": "ok"})
    shot = {"type": "input_image", "image_url": PNG_URL}
    turns = [
        {"role": "user", "content": "look"},
        {"type": "function_call", "call_id": "c1", "name": "double", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [shot]},
    ]
    raw = client.responses.with_raw_response.create(model="task:chain", input=turns, tools=[TOOL])
    assert raw.headers["x-routing-provider"] == "two"
    assert raw.headers["x-routing-attempts"] == "2"
    assert raw.headers["x-routing-adaptation"] == "image=described"
    assert PNG_URL not in str(server.lab.requests[-1].json)


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_asynchronous_client_works_for_answers_streams_and_tools(server, upstream):
    client_options = {"api_key": server.key, "base_url": server.url + "/v1", "max_retries": 0}
    async with openai.AsyncOpenAI(**client_options, _strict_response_validation=True) as client:
        whole = await client.responses.create(model=f"{upstream}/lab", input="hello")
        async with client.responses.stream(model=f"{upstream}/lab", input="hello") as stream:
            text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
        called = await client.responses.create(model=f"{upstream}/fault:capable", input="double 4", tools=[TOOL])
    assert "hello" in text
    assert whole.output_text == text
    assert called.output[-1].name == "double"


class Doubled(BaseModel):
    """The structured output that the test requests."""

    number: int
    doubled: int


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_answer_is_parsed_into_the_requested_type(client, upstream):
    request_fields = {"model": f"{upstream}/fault:capable", "input": "the number 4", "text_format": Doubled}
    with client.responses.stream(**request_fields) as stream:
        streamed = stream.get_final_response()
    assert (
        client.responses.parse(**request_fields).output_parsed == streamed.output_parsed == Doubled(number=4, doubled=4)
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("http_400", openai.BadRequestError),
        ("http_404", openai.NotFoundError),
        ("http_429:retry_after=30", openai.RateLimitError),
        ("http_422", openai.UnprocessableEntityError),
        ("http_500", openai.InternalServerError),
    ],
)
def test_refusal_raises_the_clients_error_class(client, step, error, streamed):
    with pytest.raises(error) as caught:
        client.responses.create(model=f"one/fault:{step}", input="hello", stream=streamed)
    assert caught.value.code
    assert caught.value.request_id == caught.value.body["request_id"]


def test_wrong_key_raises_the_clients_authentication_error(server):
    unknown_client = openai.OpenAI(api_key="ra_00000000_wrong", base_url=server.url + "/v1", max_retries=0)
    with pytest.raises(openai.AuthenticationError) as caught:
        unknown_client.responses.create(model="auto", input="hello")
    assert caught.value.code == "invalid_api_key"


def test_unknown_previous_response_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="auto", input="hello", previous_response_id="resp_1")
    assert caught.value.param == "previous_response_id"


def test_broken_stream_ends_with_a_failed_response(client):
    with client.responses.stream(model="one/fault:reset_mid_body", input="hello") as stream:
        events = list(stream)
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.type in ("stream_truncated", "stream_broken")
