"""OpenAI's Agents SDK against a served `/v1`, through Responses, with a model behind each protocol."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    Runner,
    ToolOutputImage,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from openai import AsyncOpenAI, NotFoundError
from openai.types.responses import ResponseTextDeltaEvent
from openai.types.shared import Reasoning
from pydantic import BaseModel

URL, KEY = os.environ["CLIENTS_URL"], os.environ["CLIENTS_KEY"]
MODELS: dict[str, str] = json.loads(os.environ["CLIENTS_MODELS"])
PNG = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SETTINGS = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
THINKING = ModelSettings(
    store=False, response_include=["reasoning.encrypted_content"], reasoning=Reasoning(effort="low", summary="auto")
)
set_tracing_disabled(True)


class City(BaseModel):
    """A city and its population."""

    name: str
    inhabitants: int


@function_tool
def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


@function_tool
def screenshot(window: str) -> ToolOutputImage:
    """Return a screenshot of the window."""
    return ToolOutputImage(image_url=PNG)


@pytest.fixture(params=MODELS)
async def model(request: pytest.FixtureRequest) -> AsyncIterator[OpenAIResponsesModel]:
    async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as client:
        yield OpenAIResponsesModel(MODELS[request.param], client)


def make_agent(model: Any, settings: ModelSettings = SETTINGS, **options: Any) -> Agent[Any]:
    """Return an agent that stores nothing at the provider."""
    return Agent(name="agent", instructions="Be brief.", model=model, model_settings=settings, **options)


async def test_agent_answers_and_continues_the_conversation(model: Any) -> None:
    agent = make_agent(model)
    first = await Runner.run(agent, "hello")
    second = await Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "and now?"}])
    assert (first.final_output, second.final_output) == ("You said: hello", "You said: and now?")
    assert first.context_wrapper.usage.input_tokens == 11


async def test_agent_calls_its_tool(model: Any) -> None:
    """The tool's result is sent back together with the reasoning."""
    agent = make_agent(model, THINKING, tools=[double])
    result = await Runner.run(agent, "double the number 21, then answer in words")
    assert [item.output for item in result.new_items if item.type == "tool_call_output_item"] == [42]
    assert [item.type for item in result.new_items].count("reasoning_item") == 2
    assert result.final_output.startswith("You said: ")


async def test_tool_returns_an_image(model: Any) -> None:
    agent = make_agent(model, tools=[screenshot])
    result = await Runner.run(agent, "take a screenshot of 'paint', then answer in words")
    assert result.final_output.endswith("[image/png, 70 bytes]")


async def test_answer_is_parsed_as_a_python_type(model: Any) -> None:
    """The SDK derives the answer's schema from a Python type."""
    result = await Runner.run(make_agent(model, output_type=City), "'Zürich' has 443037 inhabitants")
    assert result.final_output == City(name="Zürich", inhabitants=443037)


async def test_answer_is_streamed(model: Any) -> None:
    stream = Runner.run_streamed(make_agent(model, tools=[double]), "double the number 21, then answer in words")
    raw = [event.data async for event in stream.stream_events() if event.type == "raw_response_event"]
    pieces = [event.delta for event in raw if isinstance(event, ResponseTextDeltaEvent)]
    assert len(pieces) > 1
    assert "".join(pieces) == stream.final_output


async def test_agent_hands_off_to_another_agent(model: Any) -> None:
    other = Agent(name="other", instructions="Answer.", model=model, model_settings=SETTINGS)
    result = await Runner.run(make_agent(model, handoffs=[handoff(other)]), "transfer_to_other, then answer in words")
    assert result.last_agent is other
    assert result.final_output.startswith("You said: ")


async def test_unknown_model_raises_the_clients_own_error() -> None:
    async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as client:
        with pytest.raises(NotFoundError) as refused:
            await Runner.run(make_agent(OpenAIResponsesModel("unknown-model", client)), "hello")
    assert refused.value.code == "model_not_found"
