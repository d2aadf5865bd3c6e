"""pydantic-ai's agents against a served `/v1`: tools, typed output, streams and files, over each protocol."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ImageUrl, ModelHTTPError, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.messages import ModelResponse, ThinkingPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from sample_pdf import PDF

URL, KEY = os.environ["CLIENTS_URL"], os.environ["CLIENTS_KEY"]
MODELS: dict[str, str] = json.loads(os.environ["CLIENTS_MODELS"])

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class City(BaseModel):
    """A city and its population."""

    name: str
    inhabitants: int


class Trip(BaseModel):
    """A model with nested values, a list, an enumeration, and an optional value."""

    stops: list[City]
    by_train: bool
    remark: str | None = None


CHAT_APIS: dict[str, Callable[[str, str], Model]] = {
    "chat": lambda name, key: OpenAIChatModel(name, provider=OpenAIProvider(base_url=URL, api_key=key)),
    "responses": lambda name, key: OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=URL, api_key=key)),
    "messages": lambda name, key: AnthropicModel(
        name,
        provider=AnthropicProvider(base_url=URL.removesuffix("/v1"), api_key=key),
        profile=ModelProfile(supports_json_schema_output=True),
    ),
}


def make_model(name: str, key: str = KEY, chat_api: str = "chat") -> Model:
    return CHAT_APIS[chat_api](name, key)


@pytest.fixture(params=product(CHAT_APIS, MODELS), ids="-".join)
def model(request: pytest.FixtureRequest) -> Model:
    chat_api, protocol = request.param
    return make_model(MODELS[protocol], chat_api=chat_api)


def calls_in(messages: list[Any]) -> list[str]:
    parts = (part for message in messages if isinstance(message, ModelResponse) for part in message.parts)
    return [part.tool_name for part in parts if isinstance(part, ToolCallPart)]


async def test_agent_answers_with_text(model: Model) -> None:
    result = await Agent(model, instructions="Be brief.").run("hello")
    assert result.output == "You said: hello"
    assert result.response.model_name == model.model_name
    assert result.response.finish_reason == "stop"
    assert (result.usage.input_tokens, result.usage.output_tokens) == (11, 7)


async def test_agent_continues_a_conversation(model: Model) -> None:
    agent = Agent(model)
    first = await agent.run("hello")
    second = await agent.run("and now?", message_history=first.all_messages())
    assert second.output == "You said: and now?"
    assert len(second.all_messages()) == 4


async def test_agent_calls_its_tools_in_sequence(model: Model) -> None:
    agent, arguments = Agent(model), []

    @agent.tool_plain
    def double(number: int) -> int:
        """Return twice the number."""
        arguments.append(number)
        return 2 * number

    @agent.tool_plain
    def shout(text: str) -> str:
        """Return the text in capitals."""
        arguments.append(text)
        return text.upper()

    result = await agent.run("double the number 21, then shout 'grüezi 你好'")
    assert arguments == [21, "grüezi 你好"]
    assert calls_in(result.all_messages()) == ["double", "shout"]
    assert result.output.startswith("You said: ")


@pytest.mark.parametrize("output_mode", [ToolOutput, NativeOutput, PromptedOutput])
async def test_typed_output_works_in_each_mode(model: Model, output_mode: Any) -> None:
    """The three modes are a required tool call, a response schema, and a prompt with JSON mode."""
    result = await Agent(model, output_type=output_mode(Trip)).run("a trip to 'Zürich' with 443037 inhabitants")
    assert result.output == Trip(stops=[City(name="Zürich", inhabitants=443037)], by_train=True)


@pytest.mark.parametrize("output_mode", [ToolOutput, NativeOutput, PromptedOutput])
async def test_typed_output_works_after_a_tool_call(model: Model, output_mode: Any) -> None:
    agent = Agent(model, output_type=output_mode(City))

    @agent.tool_plain
    def count(name: str) -> int:
        """Return the number of entries."""
        return 443037

    result = await agent.run("count the people of 'Zürich': 443037")
    assert result.output == City(name="Zürich", inhabitants=443037)
    assert calls_in(result.all_messages())[0] == "count"


async def test_text_is_streamed(model: Model) -> None:
    async with Agent(model).run_stream("hello, how are you?") as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert len(pieces) > 1
    assert "".join(pieces) == "You said: hello, how are you?"
    assert (stream.usage.input_tokens, stream.usage.output_tokens) == (11, 7)
    assert stream.response.finish_reason == "stop"


@pytest.mark.parametrize("output_mode", [ToolOutput, NativeOutput])
async def test_typed_output_is_streamed(model: Model, output_mode: Any) -> None:
    async with Agent(model, output_type=output_mode(City)).run_stream("'Zürich' has 443037 inhabitants") as stream:
        states = [state async for state in stream.stream_output(debounce_by=None)]
    assert states[-1] == City(name="Zürich", inhabitants=443037)


async def test_tool_is_called_in_a_stream(model: Model) -> None:
    agent, arguments = Agent(model), []

    @agent.tool_plain
    def double(number: int) -> int:
        """Return twice the number."""
        arguments.append(number)
        return 2 * number

    async with agent.run_stream("double the number 21") as stream:
        text = await stream.get_output()
    assert arguments == [21]
    assert text == "You said: double the number 21"


async def test_reasoning_is_kept_in_a_conversation(model: Model) -> None:
    settings: Any = {"openai_reasoning_effort": "low", "anthropic_effort": "low"}
    agent = Agent(model, model_settings=settings)

    @agent.tool_plain
    def double(number: int) -> int:
        """Return twice the number."""
        return 2 * number

    first = await agent.run("double the number 21")
    async with agent.run_stream("double the number 4", message_history=first.all_messages()) as stream:
        await stream.get_output()
    thoughts = [
        part.content
        for message in stream.all_messages()
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ThinkingPart)
        and part.content  # Other parts are encrypted and can only be read by the vendor.
    ]
    assert thoughts == ["First I think about it. 先想一想。"] * 4


@pytest.mark.parametrize("mime_type", ["image/png", "application/pdf"])
async def test_file_reaches_the_model(model: Model, mime_type: str) -> None:
    data = {"image/png": PNG, "application/pdf": PDF}[mime_type]
    result = await Agent(model).run(["What is this?", BinaryContent(data=data, media_type=mime_type)])
    assert result.output.startswith("You said: What is this?")
    assert f"{mime_type}, {len(data)} bytes]" in result.output


async def test_image_url_is_passed_on_to_the_model() -> None:
    """The model can load the image from the URL."""
    result = await Agent(make_model(MODELS["openai"])).run(["Look", ImageUrl("https://example.com/a.png")])
    assert result.output == "You said: Look [https://example.com/a.png, 0 bytes]"


async def test_model_settings_are_accepted_by_each_protocol(model: Model) -> None:
    """Settings that the protocol does not have are dropped."""
    settings: Any = {
        "max_tokens": 64,
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 7,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.1,
        "stop_sequences": ["END"],
        "parallel_tool_calls": False,
        "logit_bias": {"1": 1},
        "openai_user": "user-7",
        "openai_reasoning_effort": "low",
        "extra_headers": {"x-request-id": "pydantic-ai"},
    }
    result = await Agent(model).run("hello", model_settings=settings)
    assert result.output == "You said: hello"


@pytest.mark.parametrize(("name", "key", "status"), [("unknown-model", KEY, 404), (MODELS["openai"], "wrong", 401)])
async def test_refusal_raises_an_error_with_the_http_status(name: str, key: str, status: int) -> None:
    """The client raises pydantic-ai's own error classes."""
    with pytest.raises(ModelHTTPError) as refusal:
        await Agent(make_model(name, key)).run("hello")
    assert refusal.value.status_code == status
    assert isinstance(refusal.value.body, dict)
    assert refusal.value.body["code"] == {404: "model_not_found", 401: "invalid_api_key"}[status]


async def test_answer_passes_the_sdks_strict_validation(model: Model) -> None:
    """In complete and in streamed answers, the SDK's strict validation finds no missing field and no wrong type."""
    messages: Any = [{"role": "user", "content": "hello"}]
    async with AsyncOpenAI(base_url=URL, api_key=KEY, _strict_response_validation=True) as client:
        answer = await client.chat.completions.create(model=model.model_name, messages=messages)
        stream = await client.chat.completions.create(model=model.model_name, messages=messages, stream=True)
        text = "".join([piece.choices[0].delta.content or "" async for piece in stream])
    assert answer.choices[0].message.content == text == "You said: hello"
