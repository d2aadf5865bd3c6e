"""What a model answers beside its words reaches the caller and the log: the official client over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab

HELLO: Any = [{"role": "user", "content": "hello"}]


def configured(lab: Lab) -> dict[str, Any]:
    """The usual providers, and a route that asks the one that speaks Gemini's protocol first."""
    file = routing(lab)
    file["routing"]["mixed"] = {"provider": "by-gemini", "fallback": ["one"], "retries": 0}
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("answers"), configured=configured) as server:
        yield server


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0)


def ask(client: openai.OpenAI, model: str, *, stream: bool) -> tuple[str, list[Any]]:
    """The id of a request, and the chunks of its answer; a whole one is a single chunk."""
    more: Any = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    with client.chat.completions.with_streaming_response.create(model=model, messages=HELLO, **more) as raw:
        request_id = raw.headers["x-request-id"]
        return request_id, list(raw.parse()) if stream else [raw.parse()]  # type: ignore[call-overload]


BOTH = pytest.mark.parametrize("stream", [False, True])
PROVIDERS = pytest.mark.parametrize("provider", ["one", "by-anthropic", "by-gemini"])


@BOTH
@PROVIDERS
def test_an_unknown_reason_to_stop_reaches_caller_and_log(client, server, provider, stream):
    """The caller gets `length` and the vendor's own word; the log has both."""
    request_id, chunks = ask(client, f"{provider}/fault:stops:reason=VANISHED", stream=stream)
    (ending,) = [chunk.choices[0] for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert (ending.finish_reason, ending.model_extra["native_finish_reason"]) == ("length", "VANISHED")
    assert server.timeline(request_id)["answer"] == {"finishReason": "length", "stopReason": "VANISHED"}


@BOTH
def test_a_failed_generation_goes_to_the_next_candidate(client, server, stream):
    """Gemini says that it failed, another provider answers, and the log says why."""
    server.lab.play({"by-gemini": ["failed_generation:reason=TOO_MANY_TOOL_CALLS"], "one": ["say:Here."]})
    request_id, chunks = ask(client, "task:mixed", stream=stream)
    said = "".join(
        (each.choices[0].delta if stream else each.choices[0].message).content or "" for each in chunks if each.choices
    )
    assert said == "Here."
    failed, answered = server.timeline(request_id)["attempts"]
    assert (failed["outcome"], answered["outcome"]) == ("generation_failed", "ok")


DETAILS = {
    "one": (
        {"cached_tokens": 20, "cache_write_tokens": 100, "audio_tokens": 5, "image_tokens": 6},
        {"reasoning_tokens": 7, "audio_tokens": 8},
    ),
    "by-anthropic": (
        {
            "cached_tokens": 20,
            "cache_write_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40},
        },
        {"reasoning_tokens": 7},
    ),
    "by-gemini": (
        {"cached_tokens": 20, "audio_tokens": 5, "image_tokens": 6, "tool_tokens": 20},
        {"reasoning_tokens": 7, "audio_tokens": 8},
    ),
}


@BOTH
@PROVIDERS
def test_every_sort_of_tokens_reaches_caller_and_log(client, server, provider, stream):
    """In OpenAI's words where it has one; the log counts the same."""
    request_id, chunks = ask(client, f"{provider}/fault:recorded:name=counts", stream=stream)
    usage = chunks[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (140, 30, 170)
    said = [usage.prompt_tokens_details, usage.completion_tokens_details]
    assert tuple(each.model_dump(exclude_none=True) for each in said) == DETAILS[provider]
    logged = server.timeline(request_id)["usage"]
    assert (logged["promptTokens"], logged["cachedTokens"], logged["reasoningTokens"]) == (140, 20, 7)


@BOTH
def test_tier_and_fingerprint_reach_the_caller(client, server, stream):
    """Whole, and with the last chunks of a stream."""
    request_id, chunks = ask(client, "one/fault:recorded:name=counts", stream=stream)
    assert (chunks[-1].service_tier, chunks[-1].system_fingerprint) == ("priority", "fp_lab")
    answer = server.timeline(request_id)["answer"]
    assert (answer["serviceTier"], answer["systemFingerprint"]) == ("priority", "fp_lab")


@BOTH
def test_why_a_model_refused_reaches_caller_and_log(client, server, stream):
    """Anthropic's explanation is the message's refusal; its category stands in the log."""
    request_id, chunks = ask(client, "by-anthropic/fault:recorded:name=refused", stream=stream)
    parts = [each.choices[0].delta if stream else each.choices[0].message for each in chunks if each.choices]
    assert "".join(part.refusal or "" for part in parts) == "This could do harm."
    assert server.timeline(request_id)["answer"]["stopDetails"]["category"] == "bio"
