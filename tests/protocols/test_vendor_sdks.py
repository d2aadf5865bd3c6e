"""The vendors' SDKs accept the fault lab's answers, and the fault lab can read their requests."""

from __future__ import annotations

import base64
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as gemini_errors
from google.genai import types

from tests.lab import Lab

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))
DATA = base64.b64encode(PNG).decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.fixture(scope="module")
def openai_client(lab: Lab) -> openai.OpenAI:
    return openai.OpenAI(base_url=lab.url("openai"), api_key="k", max_retries=0)


@pytest.fixture(scope="module")
def anthropic_client(lab: Lab) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=lab.url("anthropic").removesuffix("/v1"), api_key="k", max_retries=0)


@pytest.fixture(scope="module")
def gemini_client(lab: Lab) -> genai.Client:
    options = types.HttpOptions(base_url=lab.url("gemini").removesuffix("/v1beta"), api_version="v1beta")
    return genai.Client(api_key="k", http_options=options)


def test_openai_sdk_reads_answers_tool_calls_and_streams(lab: Lab, openai_client: openai.OpenAI) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    ]
    create = openai_client.chat.completions.create
    answer = create(model="m", messages=[{"role": "user", "content": parts}])  # type: ignore[misc, list-item]
    assert answer.choices[0].message.content == "You said: What is this? [image/png, 48 bytes]"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18
    assert lab.requests[-1].heard.media[0].data == PNG
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "hi"}]
    with_call = create(model="m", messages=messages, tools=tools, tool_choice="required")  # type: ignore[call-overload]
    assert with_call.choices[0].message.tool_calls[0].function.arguments == '{"city": "Zürich"}'
    chunks = list(create(model="fault:reasoning", messages=messages, stream=True))  # type: ignore[call-overload]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "You said: hi"
    assert chunks[-1].usage.completion_tokens == 7


def test_openai_sdk_reads_responses_api_answers_and_streams(lab: Lab, openai_client: openai.OpenAI) -> None:
    shot = {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"}
    conversation: Any = [
        {"type": "message", "role": "user", "content": "What is this?"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [shot]},
    ]
    answer = openai_client.responses.create(model="fault:reasoning", input=conversation)
    assert answer.output_text == "You said: What is this? [image/png, 48 bytes]"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}]
    with openai_client.responses.stream(model="fault:tool_call", input=conversation, tools=tools) as stream:
        final = stream.get_final_response()
    assert final.output[0].arguments == '{"city": "Zürich", "days": 2}'  # type: ignore[union-attr]
    cut = openai_client.responses.create(model="fault:length", input=conversation)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("scenario", "error"),
    [
        ("http_400", openai.BadRequestError),
        ("http_401", openai.AuthenticationError),
        ("quota", openai.RateLimitError),
        ("http_503", openai.InternalServerError),
        ("reset_before_headers", openai.APIConnectionError),
    ],
)
def test_openai_sdk_raises_its_own_errors_for_lab_faults(
    openai_client: openai.OpenAI, scenario: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        openai_client.chat.completions.create(model=f"fault:{scenario}", messages=[{"role": "user", "content": "hi"}])


def test_anthropic_sdk_reads_answers_tool_calls_and_streams(lab: Lab, anthropic_client: anthropic.Anthropic) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": DATA}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is this?"}]
    create = anthropic_client.messages.create
    answer = create(model="m", max_tokens=9, messages=[{"role": "user", "content": content}])  # type: ignore[typeddict-item, list-item]
    assert answer.content[0].text == "You said: What is this? [image/png, 48 bytes]"  # type: ignore[union-attr]
    assert (answer.stop_reason, answer.usage.output_tokens) == ("end_turn", 7)
    assert lab.requests[-1].heard.media[0].data == PNG
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages = [{"role": "user", "content": "hi"}]
    with anthropic_client.messages.stream(
        model="fault:tool_call",
        max_tokens=9,
        messages=messages,
        tools=tools,  # type: ignore[arg-type]
    ) as stream:
        final = stream.get_final_message()
    assert final.content[0].input == {"city": "Zürich", "days": 2}  # type: ignore[union-attr]
    assert final.stop_reason == "tool_use"
    with anthropic_client.messages.stream(model="fault:reasoning", max_tokens=9, messages=messages) as stream:  # type: ignore[arg-type]
        assert "".join(stream.text_stream) == "You said: hi"


def test_anthropic_sdk_raises_its_own_errors_for_lab_faults(anthropic_client: anthropic.Anthropic) -> None:
    message = {"role": "user", "content": "hi"}
    for scenario, error in (("http_529", anthropic.InternalServerError), ("http_429", anthropic.RateLimitError)):
        with pytest.raises(error):
            anthropic_client.messages.create(model=f"fault:{scenario}", max_tokens=9, messages=[message])  # type: ignore[list-item]
    with (
        pytest.raises(anthropic.APIStatusError),
        anthropic_client.messages.stream(model="fault:error_event_mid", max_tokens=9, messages=[message]) as stream,  # type: ignore[list-item]
    ):
        stream.get_final_message()


def test_google_sdk_reads_answers_function_calls_and_streams(lab: Lab, gemini_client: genai.Client) -> None:
    image = types.Part.from_bytes(data=PNG, mime_type="image/png")
    contents = [types.Content(role="user", parts=[image, types.Part(text="What is this?")])]
    answer = gemini_client.models.generate_content(model="m", contents=contents)  # type: ignore[arg-type]
    assert answer.text == "You said: What is this? [image/png, 48 bytes]"
    assert lab.requests[-1].heard.media[0].data == PNG
    with_call = gemini_client.models.generate_content(model="fault:tool_call", contents="hi")
    assert with_call.function_calls is not None
    assert with_call.function_calls[0].args == {"city": "Zürich", "days": 2}
    chunks = list(gemini_client.models.generate_content_stream(model="m", contents="hi"))
    assert "".join(chunk.text or "" for chunk in chunks) == "You said: hi"
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].usage_metadata.candidates_token_count == 7


def test_google_sdk_raises_its_own_errors_for_lab_faults(gemini_client: genai.Client) -> None:
    with pytest.raises(gemini_errors.ClientError) as refused:
        gemini_client.models.generate_content(model="fault:gemini_bad_key", contents="hi")
    assert refused.value.code == 400
    with pytest.raises(gemini_errors.ServerError):
        gemini_client.models.generate_content(model="fault:http_503", contents="hi")
