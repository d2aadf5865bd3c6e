"""Finish reasons, usage, media and citations reach the official client and the log over real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab
from tests.lab.recordings import PAGE, PHOTO, PICTURE, SOUND, URL_CITATION, b64

HELLO: Any = [{"role": "user", "content": "hello"}]


def configured(lab: Lab) -> dict[str, Any]:
    file = routing(lab)
    file["routing"]["mixed"] = {"provider": "by-gemini", "fallback": ["one"], "retries": 0}
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("answers"), configured=configured) as server:
        yield server


def ask(client: openai.OpenAI, model: str, *, stream: bool) -> tuple[str, list[Any]]:
    """Return the request id and the response's chunks. An unstreamed response is a single chunk."""
    more: Any = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    with client.chat.completions.with_streaming_response.create(model=model, messages=HELLO, **more) as raw:
        request_id = raw.headers["x-request-id"]
        return request_id, list(raw.parse()) if stream else [raw.parse()]  # type: ignore[call-overload]


BOTH = pytest.mark.parametrize("stream", [False, True])
PROVIDERS = pytest.mark.parametrize("provider", ["one", "by-anthropic", "by-gemini"])


@BOTH
@PROVIDERS
def test_unknown_finish_reason_reaches_caller_and_log(client, server, provider, stream):
    request_id, chunks = ask(client, f"{provider}/fault:stops:reason=VANISHED", stream=stream)
    (ending,) = [chunk.choices[0] for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert (ending.finish_reason, ending.model_extra["native_finish_reason"]) == ("length", "VANISHED")
    assert server.timeline(request_id)["answer"] == {"finishReason": "length", "stopReason": "VANISHED"}


@BOTH
def test_failed_generation_falls_back_to_the_next_candidate(client, server, stream):
    server.lab.play({"by-gemini": ["failed_generation:reason=TOO_MANY_TOOL_CALLS"], "one": ["say:Here."]})
    request_id, chunks = ask(client, "task:mixed", stream=stream)
    text = "".join(
        (chunk.choices[0].delta if stream else chunk.choices[0].message).content or ""
        for chunk in chunks
        if chunk.choices
    )
    assert text == "Here."
    failed, answered = server.timeline(request_id)["attempts"]
    assert (failed["outcome"], answered["outcome"]) == ("generation_failed", "ok")


DETAILS = {
    "one": (
        {"cached_tokens": 20, "cache_write_tokens": 100, "audio_tokens": 5, "image_tokens": 6} | {"text_tokens": 129},
        {"reasoning_tokens": 7, "audio_tokens": 8, "text_tokens": 15}
        | {"accepted_prediction_tokens": 2, "rejected_prediction_tokens": 3},
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
        {"cached_tokens": 20, "audio_tokens": 5, "image_tokens": 6, "text_tokens": 109, "tool_tokens": 20},
        {"reasoning_tokens": 7, "audio_tokens": 8},
    ),
}


@BOTH
@PROVIDERS
def test_every_kind_of_token_count_reaches_caller_and_log(client, server, provider, stream):
    request_id, chunks = ask(client, f"{provider}/fault:recorded:name=counts", stream=stream)
    usage = chunks[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (140, 30, 170)
    details = [usage.prompt_tokens_details, usage.completion_tokens_details]
    assert tuple(detail.model_dump(exclude_none=True) for detail in details) == DETAILS[provider]
    logged = server.timeline(request_id)["usage"]
    assert (logged["promptTokens"], logged["cachedTokens"], logged["reasoningTokens"]) == (140, 20, 7)


@BOTH
def test_service_tier_and_system_fingerprint_reach_caller_and_log(client, server, stream):
    request_id, chunks = ask(client, "one/fault:recorded:name=counts", stream=stream)
    assert (chunks[-1].service_tier, chunks[-1].system_fingerprint) == ("priority", "fp_lab")
    answer = server.timeline(request_id)["answer"]
    assert (answer["serviceTier"], answer["systemFingerprint"]) == ("priority", "fp_lab")


@BOTH
def test_refusal_explanation_reaches_caller_and_log(client, server, stream):
    request_id, chunks = ask(client, "by-anthropic/fault:recorded:name=refused", stream=stream)
    parts = [chunk.choices[0].delta if stream else chunk.choices[0].message for chunk in chunks if chunk.choices]
    assert "".join(part.refusal or "" for part in parts) == "This could do harm."
    assert server.timeline(request_id)["answer"]["stopDetails"]["category"] == "bio"


MAKERS = pytest.mark.parametrize("provider", ["one", "by-gemini"])


def field_values(chunks: list[Any], name: str) -> list[Any]:
    """Return a field's values in all messages or deltas, in order."""
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    parts = [choice.message if hasattr(choice, "message") else choice.delta for choice in choices]
    values = (json.loads(part.model_dump_json(exclude_unset=True)).get(name) for part in parts)
    return [value for value in values if value]


def check_log(server: Server, request_id: str, data: bytes, *, kind: str) -> None:
    """Check that the request's log row describes the media, and that no log contains the media's bytes."""
    row = server.timeline(request_id)
    (media,) = row["answer"]["media"]
    assert (media["kind"], media["size"], len(row["attempts"])) == (kind, len(data), 1)
    assert media["artifactId"]
    assert b64(data)[:40] not in json.dumps(row) + server.log


@BOTH
@MAKERS
def test_generated_image_has_a_reference_to_its_artifact(client, server, provider, stream):
    request_id, chunks = ask(client, f"{provider}/fault:recorded:name=image", stream=stream)
    ((image,),) = field_values(chunks, "images")
    assert image["image_url"]["url"] == f"data:image/png;base64,{b64(PICTURE)}"
    assert (image["type"], image["index"]) == ("image_url", 0)
    assert client.files.content(image["artifact"]).read() == PICTURE
    check_log(server, request_id, PICTURE, kind="image")


@BOTH
@MAKERS
def test_large_generated_image_arrives_complete(client, provider, stream):
    _, chunks = ask(client, f"{provider}/fault:recorded:name=large_image", stream=stream)
    ((image,),) = field_values(chunks, "images")
    assert image["image_url"]["url"] == f"data:image/png;base64,{b64(PHOTO)}"
    assert client.files.content(image["artifact"]).read() == PHOTO


@BOTH
@MAKERS
def test_generated_audio_has_a_reference_to_its_artifact(client, server, provider, stream):
    request_id, chunks = ask(client, f"{provider}/fault:recorded:name=speech", stream=stream)
    pieces = field_values(chunks, "audio")
    assert b"".join(base64.b64decode(piece.get("data", "")) for piece in pieces) == SOUND
    if provider == "one":
        assert "".join(piece.get("transcript", "") for piece in pieces) == "Good day."
        assert {piece["id"] for piece in pieces} == {"audio_lab"}
    if not stream:
        assert set(pieces[0]) == {"id", "data", "transcript", "expires_at", "artifact"}
    assert client.files.content(pieces[-1]["artifact"]).read() == SOUND
    check_log(server, request_id, SOUND, kind="audio")


@BOTH
def test_image_that_cannot_be_stored_is_still_returned(client, server, stream):
    request_id, chunks = ask(client, "one/fault:recorded:name=broken_image", stream=stream)
    ((image,),) = field_values(chunks, "images")
    assert (field_values(chunks, "content"), "artifact" in image) == (["Look:"], False)
    (media,) = server.timeline(request_id)["answer"]["media"]
    assert media["artifactId"] is None
    assert "could not be stored" in server.log


@BOTH
@PROVIDERS
def test_citations_reach_the_caller(client, server, provider, stream):
    request_id, chunks = ask(client, f"{provider}/fault:recorded:name=cited", stream=stream)
    citations = [citation for part in field_values(chunks, "annotations") for citation in part]
    assert citations[0]["url_citation"].items() >= {**PAGE, "start_index": 4, "end_index": 16}.items()
    assert provider != "one" or citations == [{**URL_CITATION, "index": 0} if stream else URL_CITATION]
    files = [citation for part in field_values(chunks, "file_annotations") for citation in part]
    assert [citation["type"] for citation in files] == (["file_citation"] if provider == "by-anthropic" else [])
    assert server.timeline(request_id)["answer"]["citations"] == len(citations + files)


def test_agents_api_returns_references_to_generated_media(client, server):
    server.lab.play({"by-gemini": ["recorded:name=image"]})
    body = json.dumps({"prompt": "Draw", "taskType": "mixed"}).encode()
    response = server.post("/api/v1/llm/send", body)
    (media,) = response["media"]
    assert (media["kind"], media["mimeType"], media["size"]) == ("image", "image/png", len(PICTURE))
    assert client.files.content(media["artifactRef"]).read() == PICTURE
