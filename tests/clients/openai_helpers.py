"""Helpers in openai-python that its own tests do not run against a server: `parse`, `stream`, pages, raw responses."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

URL, KEY = os.environ["CLIENTS_URL"], os.environ["CLIENTS_KEY"]
MODELS: dict[str, str] = json.loads(os.environ["CLIENTS_MODELS"])


class City(BaseModel):
    """A city and its population."""

    name: str
    inhabitants: int


ZURICH = City(name="Zürich", inhabitants=443037)
ABOUT_ZURICH: Any = [{"role": "user", "content": "'Zürich' has 443037 inhabitants"}]
HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=URL, api_key=KEY) as client:
        yield client


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return MODELS[request.param]


def test_answer_is_parsed_into_the_requested_type(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.parse(model=model, messages=ABOUT_ZURICH, response_format=City)
    assert answer.choices[0].message.parsed == ZURICH


def test_tool_arguments_are_parsed_into_the_requested_type(client: openai.OpenAI, model: str) -> None:
    tools = [openai.pydantic_function_tool(City)]
    answer = client.chat.completions.parse(model=model, messages=ABOUT_ZURICH, tools=tools)
    call = (answer.choices[0].message.tool_calls or [])[0]
    assert call.function.parsed_arguments == ZURICH
    assert answer.choices[0].finish_reason == "tool_calls"


def test_events_of_a_stream_make_up_its_completion(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.stream(model=model, messages=HELLO, stream_options={"include_usage": True}) as stream:
        events = list(stream)
    completion = stream.get_final_completion()
    pieces = [event.delta for event in events if event.type == "content.delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == completion.choices[0].message.content == "You said: hello"
    assert [event.content for event in events if event.type == "content.done"] == ["You said: hello"]
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == model
    assert completion.usage
    assert completion.usage.total_tokens == 18


def test_streamed_answer_is_parsed_into_the_requested_type(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.stream(model=model, messages=ABOUT_ZURICH, response_format=City) as stream:
        states = [event.parsed for event in stream if event.type == "content.delta"]
    assert states[-1] == ZURICH.model_dump()
    assert stream.get_final_completion().choices[0].message.parsed == ZURICH


def test_streamed_tool_arguments_are_parsed_into_the_requested_type(client: openai.OpenAI, model: str) -> None:
    tools = [openai.pydantic_function_tool(City)]
    with client.chat.completions.stream(model=model, messages=ABOUT_ZURICH, tools=tools) as stream:
        ended = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
    assert [(event.name, event.parsed_arguments) for event in ended] == [("City", ZURICH)]
    assert (stream.get_final_completion().choices[0].message.tool_calls or [])[0].id


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_can_be_sent_back_unchanged(client: openai.OpenAI, model: str, streamed: bool) -> None:
    tools: Any = [openai.pydantic_function_tool(City)]
    options: Any = {"model": model, "tools": tools, "reasoning_effort": "low"}
    if streamed:
        with client.chat.completions.stream(messages=ABOUT_ZURICH, **options) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(messages=ABOUT_ZURICH, **options).choices[0].message
    assert message.to_dict()["reasoning_content"] == "First I think about it. 先想一想。"
    turn: Any = message.model_dump(mode="json", exclude_none=True)
    call = (message.tool_calls or [])[0]
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "noted"}
    answer = client.chat.completions.create(messages=[*ABOUT_ZURICH, turn, result], **options)
    assert (answer.choices[0].message.content or "").startswith("You said: ")


def test_legacy_functions_are_called(client: openai.OpenAI, model: str) -> None:
    function: Any = {"name": "city", "parameters": City.model_json_schema()}
    answer = client.chat.completions.create(model=model, messages=ABOUT_ZURICH, functions=[function])
    call = answer.choices[0].message.function_call
    assert call
    assert (call.name, City.model_validate_json(call.arguments)) == ("city", ZURICH)
    turn: Any = answer.choices[0].message.model_dump(mode="json", exclude_none=True)
    result: Any = {"role": "function", "name": "city", "content": "noted"}
    second = client.chat.completions.create(model=model, messages=[*ABOUT_ZURICH, turn, result], functions=[function])
    assert second.choices[0].finish_reason == "stop"


def test_abandoned_stream_leaves_the_client_usable(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.create(model=model, messages=HELLO, stream=True) as stream:
        next(iter(stream))
    assert client.chat.completions.create(model=model, messages=HELLO).choices[0].message.content


async def test_each_of_many_concurrent_calls_gets_its_own_answer() -> None:
    async with openai.AsyncOpenAI(base_url=URL, api_key=KEY) as client:

        async def answer_text(number: int) -> str | None:
            messages: Any = [{"role": "user", "content": f"number {number}"}]
            answer = await client.chat.completions.create(model=MODELS["openai"], messages=messages)
            return answer.choices[0].message.content

        answers = await asyncio.gather(*(answer_text(number) for number in range(50)))
    assert answers == [f"You said: number {number}" for number in range(50)]


def test_refusal_raises_the_matching_error_class_and_names_the_parameter(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="unknown-model", messages=HELLO)
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as several:
        client.chat.completions.create(model=MODELS["openai"], messages=HELLO, n=2)
    assert several.value.param == "n"
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").chat.completions.create(model="auto", messages=HELLO)


def test_raw_response_has_the_request_id(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model=MODELS["openai"], messages=HELLO, extra_headers={"x-request-id": "mine"}
    )
    assert raw.request_id == "mine"
    assert raw.headers["x-routing-provider"] == MODELS["openai"]


def test_files_are_stored_read_paged_and_deleted(client: openai.OpenAI) -> None:
    stored = [client.files.create(file=(f"{n}.txt", f"text {n}".encode()), purpose="user_data") for n in range(3)]
    assert client.files.wait_for_processing(stored[0].id).status == "processed"
    assert client.files.content(stored[1].id).text == "text 1"
    listed = [file.id for file in client.files.list(limit=1)]
    assert listed[:3] == [file.id for file in reversed(stored)]
    assert all(client.files.delete(file.id).deleted for file in stored)
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(stored[0].id)


def test_models_are_listed_and_retrieved(client: openai.OpenAI) -> None:
    listed = {row.id for row in client.models.list()}
    assert set(MODELS.values()) <= listed
    assert client.models.retrieve(MODELS["gemini"]).id == MODELS["gemini"]
