"""Gemini's API over real sockets with google-genai."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from tests.gateway.plane import PNG
from tests.gateway.serving import Server, served
from tests.processes import NO_CERTIFICATES

pytestmark = pytest.mark.usefixtures("reset_lab")

UPSTREAMS = ("one", "by-openai-responses", "by-anthropic", "by-gemini")
HELLO = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("gemini")) as server:
        yield server


# google-genai sends the docstring as the function's description.
def double(n: int) -> int:
    """Double a number."""
    return n * 2


class Answer(BaseModel):
    """The structured output that the test requests."""

    n: int
    names: list[str] | None = None


@pytest.mark.smoke
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_complete_and_streamed_answers_agree_over_each_protocol(google, upstream):
    request: Any = {"model": f"{upstream}/lab", "contents": "hello", "config": {"system_instruction": "Be brief."}}
    whole = google.models.generate_content(**request)
    chunks = list(google.models.generate_content_stream(**request))
    assert whole.text == "".join(chunk.text or "" for chunk in chunks)
    assert (whole.candidates[0].finish_reason, chunks[-1].candidates[0].finish_reason) == ("STOP", "STOP")
    assert whole.usage_metadata == chunks[-1].usage_metadata
    assert whole.model_version == f"{upstream}/lab"


def test_api_version_v1beta_is_served(server):
    """Google's agents and its JavaScript client use this version."""
    options = {"base_url": server.url, "api_version": "v1beta", "client_args": {"verify": NO_CERTIFICATES}}
    google = genai.Client(api_key=server.key, http_options=options)
    assert google.models.generate_content(model="auto", contents="hello").text
    assert google.models.get(model="auto").name == "models/auto"


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_client_calls_the_function_and_sends_its_result(google, upstream):
    config = types.GenerateContentConfig(tools=[double])
    answer = google.models.generate_content(model=f"{upstream}/fault:capable", contents="double 4", config=config)
    parts = [part for turn in answer.automatic_function_calling_history for part in turn.parts]
    assert [part.function_call.name for part in parts if part.function_call] == ["double"]
    assert [part.function_response.name for part in parts if part.function_response] == ["double"]
    assert answer.text


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_keeps_function_calls_and_signatures_between_turns(google, server, upstream):
    declared = types.FunctionDeclaration(name="double", parameters_json_schema=TOOL)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    chat = google.chats.create(model=f"{upstream}/fault:capable", config=config)
    parts = [part for chunk in chat.send_message_stream("double 4") for part in chunk.candidates[0].content.parts]
    call = next(part.function_call for part in parts if part.function_call)
    result = types.Part.from_function_response(name="double", response={"result": call.args["n"] * 2})
    result.function_response.id = call.id
    assert chat.send_message(result).candidates[0].finish_reason == "STOP"
    assert server.lab.requests[-1].heard.tools == ["double"]


def test_files_and_response_schemas_reach_the_model(google, server):
    stored = httpx.post(
        f"{server.url}/v1/files",
        headers={"authorization": f"Bearer {server.key}"},
        data={"purpose": "user_data"},
        files={"file": ("a.png", PNG, "image/png")},
        verify=NO_CERTIFICATES,
    ).json()
    parts = [
        types.Part.from_bytes(data=PNG, mime_type="image/png"),
        types.Part.from_uri(file_uri=stored["id"], mime_type="image/png"),
    ]
    for form in ({"response_schema": Answer}, {"response_json_schema": Answer.model_json_schema()}):
        config = types.GenerateContentConfig(response_mime_type="application/json", **form)
        answer = google.models.generate_content(model="by-gemini/lab", contents=["Look", *parts], config=config)
        assert answer.candidates
        sent = server.lab.requests[-1].json["generationConfig"]
        assert list(sent["responseJsonSchema"]["properties"]) == ["n", "names"]


def test_gemini_options_reach_only_a_gemini_model(google, server):
    config = types.GenerateContentConfig(
        safety_settings=[types.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="BLOCK_NONE")],
        media_resolution="MEDIA_RESOLUTION_LOW",
        thinking_config=types.ThinkingConfig(thinking_budget=512, include_thoughts=True),
    )
    answer = google.models.generate_content(model="by-gemini/gemini-2.5-flash", contents="hi", config=config)
    sent = server.lab.requests[-1].json
    assert sent["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    assert sent["generationConfig"]["mediaResolution"] == "MEDIA_RESOLUTION_LOW"
    assert sent["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 512, "includeThoughts": True}
    assert "x-routing-dropped" not in answer.sdk_http_response.headers
    answer = google.models.generate_content(model="one/lab", contents="hi", config=config)
    dropped = answer.sdk_http_response.headers["x-routing-dropped"]
    assert "safetySettings" in dropped
    assert "generationConfig.mediaResolution" in dropped


def test_models_are_listed_and_tokens_counted(google):
    listed = [model.name for model in google.models.list(config={"page_size": 3})]
    assert len(set(listed)) == len(listed) > 6
    assert "models/task:planning" in listed
    assert google.models.get(model="task:planning").supported_actions == ["generateContent", "countTokens"]
    assert google.models.count_tokens(model="by-gemini/lab", contents="hello").total_tokens > 0


def test_failures_raise_the_clients_errors(google):
    with pytest.raises(errors.ClientError) as unknown:
        google.models.generate_content(model="nothing", contents="hi")
    assert (unknown.value.code, unknown.value.status) == (404, "NOT_FOUND")
    with pytest.raises(errors.ServerError) as failed:
        google.models.generate_content(model="one/fault:http_503", contents="hi")
    assert (failed.value.code, failed.value.status) == (502, "UNAVAILABLE")
    with pytest.raises(errors.ClientError) as limited:
        google.models.generate_content(model="one/fault:http_429", contents="hi")
    assert (limited.value.code, limited.value.status) == (429, "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_blocked_prompt_gets_an_answer_without_candidates(google, server, upstream):
    """Google's API answers in the same way, complete or streamed. The log records an error."""
    request: Any = {"model": f"{upstream}/fault:policy", "contents": "hi"}
    streamed = list(google.models.generate_content_stream(**request))
    whole = google.models.generate_content(**request)
    for answer in (whole, *streamed):
        assert (answer.candidates, answer.prompt_feedback.block_reason) == (None, "OTHER")
    logged = server.timeline(whole.sdk_http_response.headers["x-request-id"])
    assert (logged["outcome"], logged["status"]) == ("content_filter", 400)


def test_broken_stream_raises_an_error_in_the_client(google):
    stream = google.models.generate_content_stream(model="one/fault:no_finish", contents="hi")
    assert next(stream).candidates
    with pytest.raises(errors.APIError):
        list(stream)


def test_stream_without_alt_sse_is_one_json_list(server):
    """The last element of the list has the finish reason and the usage."""
    path = f"{server.url}/v1beta/models/one/lab:streamGenerateContent"
    headers = {"x-goog-api-key": server.key, "idempotency-key": "list"}
    client = httpx.Client(verify=NO_CERTIFICATES)
    answer = client.post(path, json=HELLO, headers=headers)
    chunks = answer.json()
    assert answer.headers["content-type"] == "application/json"
    assert all(types.GenerateContentResponse.model_validate(chunk) for chunk in chunks)
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] > 0
    assert client.post(path, json=HELLO, headers=headers).content == answer.content
    assert client.post(f"{path}?alt=sse", json=HELLO, headers=headers).status_code == 422
    broken = client.post(path.replace("lab", "fault:no_finish"), json=HELLO, headers={"x-goog-api-key": server.key})
    assert broken.json()[-1]["error"]["status"]


def test_large_body_without_a_valid_key_is_401_in_googles_error_format(server):
    url = f"{server.url}/v1beta/models/one/lab:generateContent"
    answer = httpx.post(url, content=json.dumps("x" * 100_000), verify=NO_CERTIFICATES)
    assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")


TOOL = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
