"""Several answers to one request (`n`, `candidateCount`), if the route allows them, with the official clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from google import genai
from google.genai import errors, types

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab
from tests.processes import NO_CERTIFICATES

pytestmark = pytest.mark.usefixtures("reset_lab")

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}


def configured(lab: Lab) -> dict[str, Any]:
    file = routing(lab)
    several = {"provider": "one", "retries": 0, "allowN": True}
    file["routing"] |= {"several": {**several, "fallback": ["two"]}, "crossing": {**several, "fallback": ["by-gemini"]}}
    file["routing"]["alone"] = several
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("several"), configured=configured) as server:
        yield server


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    local = openai.DefaultHttpxClient(verify=NO_CERTIFICATES)
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=3, http_client=local)


def rows(server: Server, request_id: str, count: int) -> list[dict[str, Any]]:
    return [server.timeline(request_id + (f"~{number}" if number > 1 else "")) for number in range(1, count + 1)]


def test_each_of_several_choices_is_a_separate_upstream_call(client: openai.OpenAI, server: Server) -> None:
    raw = client.chat.completions.with_raw_response.create(model="task:several", messages=HELLO, n=3)
    answer = raw.parse()
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert {(choice.finish_reason, choice.message.content) for choice in answer.choices} == {
        ("stop", answer.choices[0].message.content)
    }
    # The fault lab reports 11 input and 7 output tokens for each answer.
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (33, 21)
    assert answer.usage.prompt_tokens_details.cached_tokens == 9
    assert [("n" in received.json, received.name) for received in server.lab.requests] == [(False, "one")] * 3
    logged = rows(server, raw.headers["x-request-id"], 3)
    first = raw.headers["x-request-id"]
    assert [row["answer"]["choice"] for row in logged] == [{"number": n, "of": 3, "first": first} for n in (1, 2, 3)]
    assert [(row["outcome"], row["usage"]["promptTokens"], row["model"]) for row in logged] == [
        ("ok", 11, "task:several")
    ] * 3


def test_each_of_several_choices_falls_back_separately(client: openai.OpenAI, server: Server) -> None:
    server.lab.play({"one": [503]})
    raw = client.chat.completions.with_raw_response.create(model="task:crossing", messages=HELLO, n=2)
    assert len(raw.parse().choices) == 2
    logged = rows(server, raw.headers["x-request-id"], 2)
    assert sorted(row["answeredBy"]["provider"] for row in logged) == ["by-gemini", "one"]


@pytest.mark.parametrize("counted", [True, False])
def test_chunks_of_all_choices_share_one_stream(client: openai.OpenAI, server: Server, counted: bool) -> None:
    more: Any = {"stream_options": {"include_usage": True}} if counted else {}
    stream = client.chat.completions.create(model="task:several", messages=HELLO, n=3, stream=True, **more)
    chunks = list(stream)
    assert len({chunk.id for chunk in chunks}) == 1
    choices_by_index: dict[int, list[Any]] = {}
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        choices_by_index.setdefault(choice.index, []).append(choice)
    texts = {
        index: "".join(choice.delta.content or "" for choice in choices) for index, choices in choices_by_index.items()
    }
    assert set(texts) == {0, 1, 2}
    assert len(set(texts.values())) == 1
    assert [
        [choice.finish_reason for choice in choices if choice.finish_reason] for choices in choices_by_index.values()
    ] == [["stop"]] * 3
    totals = [chunk.usage.total_tokens for chunk in chunks if chunk.usage]
    assert totals == ([54] if counted else [])
    logged = rows(server, stream.response.headers["x-request-id"], 3)
    assert [(row["stream"], row["outcome"]) for row in logged] == [(True, "ok")] * 3


def test_stream_of_several_choices_has_only_one_done_event(server: Server) -> None:
    body = {"model": "task:several", "messages": HELLO, "n": 2, "stream": True}
    headers = {"authorization": f"Bearer {server.key}"}
    url = f"{server.url}/v1/chat/completions"
    answer = httpx.post(url, json=body, headers=headers, timeout=30, verify=NO_CERTIFICATES)
    events = [line for line in answer.text.split("\n") if line.startswith("data: ")]
    assert [index for index, event in enumerate(events) if event == "data: [DONE]"] == [len(events) - 1]


@pytest.mark.parametrize("stream", [False, True])
def test_failure_of_one_call_fails_the_request(client: openai.OpenAI, server: Server, stream: bool) -> None:
    server.lab.play({"one": ["ok", 400, "ok"]})
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="task:alone", messages=HELLO, n=3, stream=stream)
    outcomes = {row["outcome"] for row in rows(server, caught.value.response.headers["x-request-id"], 3)}
    assert outcomes <= {"ok", "upstream_400"}
    assert "upstream_400" in outcomes


def test_broken_stream_ends_all_choices(client: openai.OpenAI, server: Server) -> None:
    server.lab.play({"one": ["ok", "reset_mid_body"]})
    stream = client.chat.completions.create(model="task:alone", messages=HELLO, n=2, stream=True)
    with pytest.raises(openai.APIError, match="broke off"):
        list(stream)
    outcomes = {row["outcome"] for row in rows(server, stream.response.headers["x-request-id"], 2)}
    assert "stream_broken" in outcomes
    assert outcomes <= {"ok", "stream_broken"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": "task:chain", "n": 2}, "n must be 1"),
        ({"model": "one/lab", "n": 2}, "n must be 1"),
        ({"model": "task:several", "n": 9}, "n can be at most 8"),
    ],
)
def test_more_choices_than_allowed_are_refused(client: openai.OpenAI, server: Server, body: Any, message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message) as caught:
        client.chat.completions.create(messages=HELLO, **body)
    assert (caught.value.param, caught.value.code, server.lab.requests) == ("n", "unsupported_value", [])


def test_idempotent_call_replays_all_choices(client: openai.OpenAI, server: Server) -> None:
    once = {"Idempotency-Key": "several"}
    answers = [
        client.chat.completions.create(model="task:several", messages=HELLO, n=2, extra_headers=once) for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len(server.lab.requests) == 2


def test_single_choice_is_logged_without_a_number(client: openai.OpenAI, server: Server) -> None:
    raw = client.chat.completions.with_raw_response.create(model="task:several", messages=HELLO, n=1)
    assert len(raw.parse().choices) == 1
    assert "choice" not in server.timeline(raw.headers["x-request-id"])["answer"]


def candidates(count: int) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(candidate_count=count)


def test_each_gemini_candidate_is_a_separate_upstream_call(google: genai.Client, server: Server) -> None:
    server.lab.play({"one": [503]})
    answer = google.models.generate_content(model="task:crossing", contents="hello", config=candidates(3))
    assert answer.candidates
    assert answer.usage_metadata
    assert answer.sdk_http_response
    assert [candidate.index for candidate in answer.candidates] == [0, 1, 2]
    assert all(
        candidate.content and candidate.content.parts and candidate.content.parts[0].text
        for candidate in answer.candidates
    )
    first = (answer.sdk_http_response.headers or {})["x-request-id"]
    logged = rows(server, first, 3)
    assert [row["answer"]["choice"] for row in logged] == [{"number": n, "of": 3, "first": first} for n in (1, 2, 3)]
    assert sorted(row["answeredBy"]["provider"] for row in logged) == ["by-gemini", "one", "one"]
    assert answer.usage_metadata.prompt_token_count == sum(row["usage"]["promptTokens"] for row in logged)
    assert not any("candidateCount" in str(received.json) for received in server.lab.requests)


def test_chunks_of_all_gemini_candidates_share_one_stream(google: genai.Client) -> None:
    stream = google.models.generate_content_stream(model="task:several", contents="hello", config=candidates(3))
    chunks = list(stream)
    assert len({chunk.response_id for chunk in chunks}) == 1
    streamed = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    ends = {candidate.index: candidate.finish_reason for candidate in streamed if candidate.finish_reason}
    assert ends == dict.fromkeys((0, 1, 2), types.FinishReason.STOP)
    texts: dict[int | None, str] = {}
    for candidate in streamed:
        parts = (candidate.content and candidate.content.parts) or ()
        texts[candidate.index] = texts.get(candidate.index, "") + "".join(part.text or "" for part in parts)
    assert len(set(texts.values())) == 1
    counts = [chunk.usage_metadata.total_token_count for chunk in chunks if chunk.usage_metadata]
    assert counts == [54]
    assert chunks[-1].usage_metadata


@pytest.mark.parametrize("step", ["ok", "reset_mid_body"])
def test_gemini_candidates_without_alt_sse_are_one_json_list(server: Server, step: str) -> None:
    server.lab.play({"one": ["ok", step]})
    path = f"{server.url}/v1beta/models/task:alone:streamGenerateContent"
    body = {**CONTENTS, "generationConfig": {"candidateCount": 2}}
    answer = httpx.post(path, json=body, headers={"x-goog-api-key": server.key}, timeout=30, verify=NO_CERTIFICATES)
    *chunks, last = answer.json()
    assert {chunk["candidates"][0]["index"] for chunk in chunks} <= {0, 1}
    assert ("error" in last) == (step != "ok")
    assert all("error" not in chunk for chunk in chunks)


@pytest.mark.parametrize("count", [2, 9])
def test_more_gemini_candidates_than_allowed_are_refused(google: genai.Client, server: Server, count: int) -> None:
    model = "task:chain" if count == 2 else "task:several"
    with pytest.raises(errors.ClientError, match="candidateCount") as caught:
        google.models.generate_content(model=model, contents="hello", config=candidates(count))
    assert (caught.value.code, caught.value.status, server.lab.requests) == (400, "INVALID_ARGUMENT", [])
