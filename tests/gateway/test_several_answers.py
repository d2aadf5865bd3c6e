"""Several answers to one request (`n`, `candidateCount`) where the route allows them, with the official clients."""

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
    server.lab.play({})
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=3)


@pytest.fixture
def google(server: Server) -> genai.Client:
    server.lab.play({})
    return genai.Client(api_key=server.key, http_options={"base_url": server.url})


def rows(server: Server, request_id: str, count: int) -> list[dict[str, Any]]:
    return [server.timeline(request_id + (f"~{number}" if number > 1 else "")) for number in range(1, count + 1)]


def test_as_many_calls_become_one_answer(client: openai.OpenAI, server: Server) -> None:
    """Each answer is a call of its own without `n`, has its index and its row, and the usage is the sum."""
    raw = client.chat.completions.with_raw_response.create(model="task:several", messages=HELLO, n=3)
    answer = raw.parse()
    assert [each.index for each in answer.choices] == [0, 1, 2]
    assert {(each.finish_reason, each.message.content) for each in answer.choices} == {
        ("stop", answer.choices[0].message.content)
    }
    # The lab reports 11 and 7 tokens for each answer.
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (33, 21)
    assert answer.usage.prompt_tokens_details.cached_tokens == 9
    assert [("n" in each.json, each.name) for each in server.lab.requests] == [(False, "one")] * 3
    found = rows(server, raw.headers["x-request-id"], 3)
    first = raw.headers["x-request-id"]
    assert [each["answer"]["choice"] for each in found] == [{"number": n, "of": 3, "first": first} for n in (1, 2, 3)]
    assert [(each["outcome"], each["usage"]["promptTokens"], each["model"]) for each in found] == [
        ("ok", 11, "task:several")
    ] * 3


def test_each_call_goes_along_the_chain_by_itself(client: openai.OpenAI, server: Server) -> None:
    """Each call falls back separately, to another protocol too."""
    server.lab.play({"one": [503]})
    raw = client.chat.completions.with_raw_response.create(model="task:crossing", messages=HELLO, n=2)
    assert len(raw.parse().choices) == 2
    found = rows(server, raw.headers["x-request-id"], 2)
    assert sorted(each["answeredBy"]["provider"] for each in found) == ["by-gemini", "one"]


@pytest.mark.parametrize("counted", [True, False])
def test_pieces_of_all_answers_come_in_one_stream(client: openai.OpenAI, server: Server, counted: bool) -> None:
    """Chunks of all answers have one id and their index; a single usage and `[DONE]` follow the last one."""
    more: Any = {"stream_options": {"include_usage": True}} if counted else {}
    stream = client.chat.completions.create(model="task:several", messages=HELLO, n=3, stream=True, **more)
    chunks = list(stream)
    assert len({each.id for each in chunks}) == 1
    parts: dict[int, list[Any]] = {}
    for choice in (choice for each in chunks for choice in each.choices):
        parts.setdefault(choice.index, []).append(choice)
    texts = {at: "".join(each.delta.content or "" for each in found) for at, found in parts.items()}
    assert set(texts) == {0, 1, 2}
    assert len(set(texts.values())) == 1
    assert [[each.finish_reason for each in found if each.finish_reason] for found in parts.values()] == [["stop"]] * 3
    totals = [each.usage.total_tokens for each in chunks if each.usage]
    assert totals == ([54] if counted else [])
    found = rows(server, stream.response.headers["x-request-id"], 3)
    assert [(each["stream"], each["outcome"]) for each in found] == [(True, "ok")] * 3


def test_a_streamed_request_ends_with_one_goodbye(server: Server) -> None:
    """On the wire, the stream has one `[DONE]`, as its last event."""
    server.lab.play({})
    body = {"model": "task:several", "messages": HELLO, "n": 2, "stream": True}
    answer = httpx.post(
        f"{server.url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {server.key}"}, timeout=30
    )
    events = [line for line in answer.text.split("\n") if line.startswith("data: ")]
    assert [at for at, each in enumerate(events) if each == "data: [DONE]"] == [len(events) - 1]


@pytest.mark.parametrize("stream", [False, True])
def test_one_failure_is_the_whole_request_s(client: openai.OpenAI, server: Server, stream: bool) -> None:
    """If one call fails, the request fails; the log has the outcome of each call."""
    server.lab.play({"one": ["ok", 400, "ok"]})
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="task:alone", messages=HELLO, n=3, stream=stream)
    outcomes = {each["outcome"] for each in rows(server, caught.value.response.headers["x-request-id"], 3)}
    assert outcomes <= {"ok", "upstream_400"}
    assert "upstream_400" in outcomes


def test_a_stream_that_breaks_ends_all(client: openai.OpenAI, server: Server) -> None:
    """The error is the last event, without `[DONE]`."""
    server.lab.play({"one": ["ok", "reset_mid_body"]})
    stream = client.chat.completions.create(model="task:alone", messages=HELLO, n=2, stream=True)
    with pytest.raises(openai.APIError, match="broke off"):
        list(stream)
    outcomes = {each["outcome"] for each in rows(server, stream.response.headers["x-request-id"], 2)}
    assert "stream_broken" in outcomes
    assert outcomes <= {"ok", "stream_broken"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"model": "task:chain", "n": 2}, "n must be 1"),
        ({"model": "one/lab", "n": 2}, "n must be 1"),
        ({"model": "task:several", "n": 9}, "n can be at most 8"),
    ],
)
def test_more_than_is_allowed_is_refused(client: openai.OpenAI, server: Server, asked: Any, words: str) -> None:
    """Without `allowN` one answer is allowed, with it eight. A refusal makes no upstream call."""
    with pytest.raises(openai.BadRequestError, match=words) as caught:
        client.chat.completions.create(messages=HELLO, **asked)
    assert (caught.value.param, caught.value.code, server.lab.requests) == ("n", "unsupported_value", [])


def test_the_same_key_gets_all_answers_again(client: openai.OpenAI, server: Server) -> None:
    once = {"Idempotency-Key": "several"}
    answers = [
        client.chat.completions.create(model="task:several", messages=HELLO, n=2, extra_headers=once) for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len(server.lab.requests) == 2


def test_one_answer_is_as_without(client: openai.OpenAI, server: Server) -> None:
    """With `n` of 1 the log has no mark of several answers."""
    raw = client.chat.completions.with_raw_response.create(model="task:several", messages=HELLO, n=1)
    assert len(raw.parse().choices) == 1
    assert "choice" not in server.timeline(raw.headers["x-request-id"])["answer"]


def candidates(count: int) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(candidate_count=count)


def test_candidates_of_gemini_are_as_many_calls(google: genai.Client, server: Server) -> None:
    """Each candidate is a call of its own to a provider of any protocol, has its index, and the usage is the sum."""
    server.lab.play({"one": [503]})
    answer = google.models.generate_content(model="task:crossing", contents="hello", config=candidates(3))
    assert answer.candidates
    assert answer.usage_metadata
    assert answer.sdk_http_response
    assert [each.index for each in answer.candidates] == [0, 1, 2]
    assert all(each.content and each.content.parts and each.content.parts[0].text for each in answer.candidates)
    first = (answer.sdk_http_response.headers or {})["x-request-id"]
    found = rows(server, first, 3)
    assert [each["answer"]["choice"] for each in found] == [{"number": n, "of": 3, "first": first} for n in (1, 2, 3)]
    assert sorted(each["answeredBy"]["provider"] for each in found) == ["by-gemini", "one", "one"]
    assert answer.usage_metadata.prompt_token_count == sum(each["usage"]["promptTokens"] for each in found)
    assert not any("candidateCount" in str(each.json) for each in server.lab.requests)


def test_chunks_of_all_candidates_come_in_one_stream(google: genai.Client) -> None:
    """Chunks of all candidates have one id and their index, and one of them has the usage."""
    stream = google.models.generate_content_stream(model="task:several", contents="hello", config=candidates(3))
    chunks = list(stream)
    assert len({each.response_id for each in chunks}) == 1
    found = [candidate for each in chunks for candidate in each.candidates or ()]
    ends = {each.index: each.finish_reason for each in found if each.finish_reason}
    assert ends == dict.fromkeys((0, 1, 2), types.FinishReason.STOP)
    texts: dict[int | None, str] = {}
    for each in found:
        parts = (each.content and each.content.parts) or ()
        texts[each.index] = texts.get(each.index, "") + "".join(part.text or "" for part in parts)
    assert len(set(texts.values())) == 1
    counts = [each.usage_metadata.total_token_count for each in chunks if each.usage_metadata]
    assert counts == [54]
    assert chunks[-1].usage_metadata


@pytest.mark.parametrize("play", ["ok", "reset_mid_body"])
def test_a_list_of_all_candidates_is_one_list(server: Server, play: str) -> None:
    """Without `alt=sse` the list is complete, or has the error as its last element."""
    server.lab.play({"one": ["ok", play]})
    path = f"{server.url}/v1beta/models/task:alone:streamGenerateContent"
    body = {**CONTENTS, "generationConfig": {"candidateCount": 2}}
    answer = httpx.post(path, json=body, headers={"x-goog-api-key": server.key}, timeout=30)
    *chunks, last = answer.json()
    assert {each["candidates"][0]["index"] for each in chunks} <= {0, 1}
    assert ("error" in last) == (play != "ok")
    assert all("error" not in each for each in chunks)


@pytest.mark.parametrize("count", [2, 9])
def test_more_candidates_than_are_allowed_are_refused(google: genai.Client, server: Server, count: int) -> None:
    model = "task:chain" if count == 2 else "task:several"
    with pytest.raises(errors.ClientError, match="candidateCount") as caught:
        google.models.generate_content(model=model, contents="hello", config=candidates(count))
    assert (caught.value.code, caught.value.status, server.lab.requests) == (400, "INVALID_ARGUMENT", [])
