"""Embeddings, reranking, transcripts, speech and images through /v1: the official client over real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.gateway.serving import Server, routing, served
from tests.lab import Lab
from tests.lab.operations import SOUND, vector
from tests.lab.recordings import PICTURE
from tests.processes import NO_CERTIFICATES

pytestmark = pytest.mark.usefixtures("reset_lab")

WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0"
SPEECH_FILE = ("talk.wav", WAV, "audio/wav")


def configured(lab: Lab) -> dict[str, Any]:
    file = routing(lab)
    same, other_model = [{"provider": name, "model": "embed-1"} for name in ("two", "three")], {"provider": "three"}
    file["routing"] |= {
        "vectors": {"provider": "one", "model": "embed-1", "fallback": same, "retries": 0},
        "mixed-vectors": {"provider": "one", "model": "embed-1", "fallback": [other_model, same[0]], "retries": 0},
        "crossing": {"provider": "by-gemini", "fallback": ["by-anthropic", "two"], "retries": 0},
        "unsupported": {"provider": "by-gemini", "fallback": ["by-openai-responses"], "retries": 0},
    }
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("operations"), configured=configured) as server:
        yield server


@pytest.fixture
async def async_client(server: Server) -> openai.AsyncOpenAI:
    local = openai.DefaultAsyncHttpxClient(verify=NO_CERTIFICATES)
    return openai.AsyncOpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0, http_client=local)


def post(server: Server, path: str, body: Any, **headers: str) -> httpx.Response:
    sent = {"authorization": f"Bearer {server.key}", **headers}
    return httpx.post(server.url + path, json=body, headers=sent, timeout=30, verify=NO_CERTIFICATES)


def facts(server: Server, response: Any) -> dict[str, Any]:
    """Return the fields of the request's log entry whose values are the same in every test run."""
    row = server.timeline(response.headers["x-request-id"])
    names = ("surface", "outcome", "status", "stream", "taskType", "model", "usage")
    return {name: row[name] for name in names if name in row}


def stored(server: Server, response: Any) -> list[bytes]:
    refs = response.headers["x-routing-artifacts"].split(", ")
    headers = {"authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=server.url, headers=headers, verify=NO_CERTIFICATES) as files:
        return [files.get(f"/v1/files/{ref}/content").content for ref in refs]


@pytest.mark.smoke
def test_embeddings_are_decoded_by_the_official_client(client, server):
    answer = client.embeddings.create(model="one/embed-1", input=["hello", "你好"])
    assert [item.embedding for item in answer.data] == [vector("hello"), vector("你好")]
    assert (answer.model, answer.usage.prompt_tokens) == ("one/embed-1", 9)
    (received,) = server.lab.requests
    assert received.path == "/one/v1/embeddings"
    assert received.json == {"model": "embed-1", "input": ["hello", "你好"], "encoding_format": "base64"}


async def test_asynchronous_client_gets_embeddings_as_numbers(async_client):
    answer = await async_client.embeddings.create(model="one/embed-1", input="hello", encoding_format="float")
    assert answer.data[0].embedding == vector("hello")


def test_unknown_parameters_are_passed_on_unchanged(client, server):
    extra = {"task_type": "vectors", "truncate": "END", "n": {"deep": [1, None, "x"]}}
    client.embeddings.create(model="anything", input="a", dimensions=3, user="u", extra_body=extra)
    sent = server.lab.requests[0].json
    assert sent == {
        "model": "embed-1",
        "input": "a",
        "dimensions": 3,
        "user": "u",
        "encoding_format": "base64",
        "truncate": "END",
        "n": {"deep": [1, None, "x"]},
    }


def test_embeddings_fall_back_to_the_same_model_of_another_provider(client, server):
    server.lab.play({"one": [503]})
    raw = client.embeddings.with_raw_response.create(model="task:vectors", input="a")
    routing_headers = [raw.headers[f"x-routing-{name}"] for name in ("provider", "model", "attempts")]
    assert (routing_headers, raw.parse().model) == (["two", "embed-1", "2"], "embed-1")
    assert facts(server, raw) == {
        "surface": "v1/embeddings",
        "outcome": "ok",
        "status": 200,
        "stream": False,
        "taskType": "vectors",
        "model": "task:vectors",
        "usage": {"promptTokens": 9, "completionTokens": None},
    }
    row = server.timeline(raw.headers["x-request-id"])
    assert [attempt["outcome"] for attempt in row["attempts"]] == ["http_503", "ok"]


def test_embeddings_never_fall_back_to_another_model(client, server):
    """Embeddings of different models are not comparable."""
    server.lab.play({"one": [503]})
    raw = client.embeddings.with_raw_response.create(model="task:mixed-vectors", input="a")
    assert raw.headers["x-routing-provider"] == "two"
    assert raw.headers["x-routing-skipped"] == "three/lab=other_model"
    attempts = server.timeline(raw.headers["x-request-id"])["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["http_503", "skipped_other_model", "ok"]
    assert "embed-1" in attempts[1]["error"]
    assert server.lab.played_for("three") == []


def test_embeddings_fail_if_only_another_model_is_left(server):
    server.lab.play({"one": [503], "two": [503], "three": ["ok"]})
    refused = post(server, "/v1/embeddings", {"model": "task:mixed-vectors", "input": "a"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "all_providers_failed")
    assert [attempt["outcome"] for attempt in refused.json()["error"]["attempts"]] == [
        "http_503",
        "skipped_other_model",
        "http_503",
    ]


def test_repeated_call_with_an_idempotency_key_makes_one_upstream_request(client, server):
    embedding_key = {"extra_headers": {"Idempotency-Key": "vectors"}}
    first, replay = (client.embeddings.create(model="one/embed-1", input="a", **embedding_key) for _ in range(2))
    assert first == replay
    speech_key = {"extra_headers": {"Idempotency-Key": "voice"}}
    sounds = [client.audio.speech.create(model="one/tts", voice="v", input="a", **speech_key).content for _ in range(2)]
    assert sounds == [SOUND, SOUND]
    assert len(server.lab.requests) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rerank", {"query": "q", "documents": ["a", "b"]}),
        ("/v1/embeddings", {"input": "a"}),
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/moderations", {"input": "a"}),
        ("/v1/images/generations", {"prompt": "p"}),
        ("/v1/audio/speech", {"input": "hi", "voice": "alloy"}),
    ],
)
def test_candidates_whose_protocol_lacks_the_operation_are_skipped(server, path, body):
    answer = post(server, path, {"model": "task:crossing", **body})
    assert (answer.status_code, answer.headers["x-routing-provider"]) == (200, "two")
    assert answer.headers["x-routing-skipped"] == "by-gemini/lab=protocol; by-anthropic/lab=protocol"
    outcomes = [attempt["outcome"] for attempt in server.timeline(answer.headers["x-request-id"])["attempts"]]
    assert outcomes == ["skipped_protocol", "skipped_protocol", "ok"]


def test_operation_without_a_candidate_is_refused_with_the_protocol(server):
    refused = post(server, "/v1/embeddings", {"model": "task:unsupported", "input": "a"})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (400, "operation_not_offered", "model")
    assert error["type"] == "invalid_request_error"
    assert "by-gemini speaks gemini" in error["message"]
    assert "provider that speaks openai" in error["message"]
    row = server.timeline(refused.headers["x-request-id"])
    assert (row["outcome"], row["surface"], len(row["attempts"])) == ("operation_not_offered", "v1/embeddings", 2)


def test_rerank_results_are_passed_on_unchanged(server):
    body = {"model": "one/ranker", "query": "q", "documents": ["a", "b"], "top_n": 2}
    answer = post(server, "/v1/rerank", body)
    assert answer.json()["results"] == [{"index": 0, "relevance_score": 1.0}, {"index": 1, "relevance_score": 0.5}]
    assert server.lab.requests[0].json == {**body, "model": "ranker"}
    assert facts(server, answer)["surface"] == "v1/rerank"


@pytest.mark.parametrize("prompt", ["Once", ["Once", "Twice"]])
def test_completion_and_its_parameters_are_passed_on_unchanged(client, server, prompt):
    raw = client.completions.with_raw_response.create(model="one/instruct", prompt=prompt, n=2, echo=True, suffix="!")
    answer = raw.parse()
    count = 2 * (len(prompt) if isinstance(prompt, list) else 1)
    assert [choice.index for choice in answer.choices] == list(range(count))
    assert {choice.finish_reason for choice in answer.choices} == {"stop"}
    assert (answer.object, answer.model, answer.usage.completion_tokens) == ("text_completion", "one/instruct", 7)
    (received,) = server.lab.requests
    assert received.path == "/one/v1/completions"
    assert received.json == {"model": "instruct", "prompt": prompt, "n": 2, "echo": True, "suffix": "!"}
    row = facts(server, raw)
    assert (row["surface"], row["usage"]["completionTokens"]) == ("v1/completions", 7)


@pytest.mark.parametrize("includes_usage", [True, False])
@pytest.mark.parametrize("step", ["ok", "unstreamed"])
def test_completion_is_streamed_with_its_usage(client, server, includes_usage, step):
    server.lab.play({"one": [step]})
    options = {"stream_options": {"include_usage": True}} if includes_usage else {}
    stream = client.completions.create(model="one/instruct", prompt="Once", n=2, stream=True, **options)
    chunks = list(stream)
    texts = [
        "".join(choice.text for chunk in chunks for choice in chunk.choices if choice.index == index)
        for index in (0, 1)
    ]
    assert texts[0] == texts[1] != ""
    assert {chunk.model for chunk in chunks} == {"one/instruct"}
    row = server.timeline(stream.response.headers["x-request-id"])
    assert (row["stream"], row["outcome"], row["surface"]) == (True, "ok", "v1/completions")
    assert row["usage"]["completionTokens"] == (7 if includes_usage or step == "unstreamed" else None)


def test_completion_stream_without_a_finish_reason_raises_an_error(client, server):
    server.lab.play({"one": ["reset_mid_body"]})
    with pytest.raises(openai.APIError, match="broke off"):
        list(client.completions.create(model="one/instruct", prompt="Once", stream=True))


def test_moderation_result_is_passed_on_unchanged_after_a_fallback(client, server):
    server.lab.play({"one": [503]})
    raw = client.moderations.with_raw_response.create(model="task:chain", input=["harm", "hello"])
    answer = raw.parse()
    assert [result.flagged for result in answer.results] == [True, False]
    assert answer.results[0].categories.harassment
    assert answer.results[0].category_scores.violence_graphic == 0.1
    assert raw.headers["x-routing-provider"] == "two"
    assert facts(server, raw)["surface"] == "v1/moderations"


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/moderations"])
def test_providers_refusal_is_raised_by_the_client(client, server, path):
    with pytest.raises(openai.BadRequestError, match="is required") as caught:
        client.post(path.removeprefix("/v1"), cast_to=httpx.Response, body={"model": "one/instruct"})
    assert (caught.value.status_code, caught.value.code) == (400, "upstream_400")


def test_transcription_form_reaches_the_provider_unchanged(client, server):
    answer = client.audio.transcriptions.create(
        model="one/whisper-1",
        file=SPEECH_FILE,
        language="de",
        timestamp_granularities=["word", "segment"],
        temperature=0.2,
    )
    assert answer.text == f"You said:  [audio/wav, {len(WAV)} bytes]"
    (received,) = server.lab.requests
    assert received.path == "/one/v1/audio/transcriptions"
    assert received.heard.media[0].data == WAV
    assert received.heard.data == {
        "model": ["whisper-1"],
        "language": ["de"],
        "temperature": ["0.2"],
        "file": ["talk.wav"],
        "timestamp_granularities[]": ["word", "segment"],
    }


async def test_plain_text_transcript_is_returned_as_text(async_client):
    answer = await async_client.audio.transcriptions.create(
        model="one/whisper-1", file=SPEECH_FILE, response_format="text"
    )
    assert answer == f"You said:  [audio/wav, {len(WAV)} bytes]\n"


def test_audio_translation_is_sent_to_its_own_path(client, server):
    assert client.audio.translations.create(model="one/whisper-1", file=SPEECH_FILE).text.startswith("You said")
    assert server.lab.requests[0].path == "/one/v1/audio/translations"


def test_audio_file_is_sent_again_to_the_next_candidate(client, server):
    server.lab.play({"one": [503]})
    raw = client.audio.transcriptions.with_raw_response.create(model="task:chain", file=SPEECH_FILE)
    assert raw.headers["x-routing-provider"] == "two"
    assert [received.heard.media[0].data for received in server.lab.requests] == [WAV, WAV]


@pytest.mark.parametrize("prefix", ["", "file-", "artifact:"])
def test_form_may_refer_to_a_stored_file(client, server, prefix):
    ref = client.files.create(file=SPEECH_FILE, purpose="user_data").id.removeprefix("artifact:")
    headers = {"authorization": f"Bearer {server.key}"}
    fields = {"model": (None, "one/whisper-1"), "file": (None, prefix + ref)}
    answer = httpx.post(f"{server.url}/v1/audio/transcriptions", files=fields, headers=headers, verify=NO_CERTIFICATES)
    assert answer.status_code == 200, answer.text
    (received,) = server.lab.requests
    assert (received.heard.media[0].data, received.heard.data["file"]) == (WAV, ["talk.wav"])


def test_large_file_is_passed_on_unchanged(client, server):
    data = WAV + bytes(range(256)) * 40_000
    client.audio.transcriptions.create(model="one/whisper-1", file=("long.wav", data, "audio/wav"))
    assert server.lab.requests[0].heard.media[0].data == data


def test_transcript_is_streamed_as_events(client, server):
    stream = client.audio.transcriptions.create(model="one/gpt-4o-transcribe", file=SPEECH_FILE, stream=True)
    events = list(stream)
    text = "".join(event.delta for event in events if event.type == "transcript.text.delta")
    assert (events[-1].type, events[-1].text) == ("transcript.text.done", text)
    row = server.timeline(stream.response.headers["x-request-id"])
    assert (row["stream"], row["outcome"], row["usage"]["promptTokens"]) == (True, "ok", 14)


def test_speech_is_returned_unchanged_and_stored(client, server):
    raw = client.audio.speech.with_raw_response.create(model="one/tts-1", voice="alloy", input="Hello")
    assert raw.content == SOUND
    assert raw.headers["content-type"] == "audio/mpeg"
    assert stored(server, raw) == [SOUND]
    row = server.timeline(raw.headers["x-request-id"])
    (audio,) = row["answer"]["media"]
    assert (audio["kind"], audio["size"], row["surface"]) == ("audio", len(SOUND), "v1/speech")


def test_streamed_speech_is_stored_as_one_artifact(client, server):
    with client.audio.speech.with_streaming_response.create(
        model="one/tts-1", voice="alloy", input="Hello", stream_format="sse"
    ) as raw:
        events = [json.loads(line[6:]) for line in raw.iter_lines() if line.startswith("data: ")]
    sound = b"".join(base64.b64decode(event["audio"]) for event in events if event["type"] == "speech.audio.delta")
    assert (sound, events[-1]["type"]) == (SOUND, "speech.audio.done")
    row = server.timeline(raw.headers["x-request-id"])
    assert [item["size"] for item in row["answer"]["media"]] == [len(SOUND)]
    assert row["usage"]["completionTokens"] == 30


def test_generated_image_is_returned_and_stored(client, server):
    raw = client.images.with_raw_response.generate(model="one/gpt-image-1", prompt="a cat", n=2)
    answer = raw.parse()
    assert [base64.b64decode(image.b64_json) for image in answer.data] == [PICTURE, PICTURE]
    assert set(stored(server, raw)) == {PICTURE}
    row = server.timeline(raw.headers["x-request-id"])
    assert (row["surface"], row["usage"]["completionTokens"]) == ("v1/images", 40)
    assert [(item["kind"], item["mimeType"]) for item in row["answer"]["media"]] == [("image", "image/png")] * 2


def test_url_of_a_generated_image_is_passed_on_unchanged(client, server):
    raw = client.images.with_raw_response.generate(model="one/dall-e-3", prompt="a cat", response_format="url")
    assert raw.parse().data[0].url == "https://images.example/1.png?signature=s"
    assert "x-routing-artifacts" not in raw.headers
    row = server.timeline(raw.headers["x-request-id"])
    assert row["answer"]["media"][0]["elsewhere"] is True
    assert "signature" not in json.dumps(row)


def test_image_edit_sends_all_images_and_the_mask(client, server):
    files = [("a.png", PICTURE, "image/png"), ("b.png", PICTURE + b"b", "image/png")]
    answer = client.images.edit(model="one/gpt-image-1", image=files, mask=("m.png", PICTURE), prompt="bluer")
    assert base64.b64decode(answer.data[0].b64_json) == PICTURE
    request = server.lab.requests[0].heard
    assert sorted((media.slot, len(media.data)) for media in request.media) == [
        ("image[]", len(PICTURE)),
        ("image[]", len(PICTURE) + 1),
        ("mask", len(PICTURE)),
    ]


def test_image_variation_is_returned(client, server):
    answer = client.images.create_variation(model="one/dall-e-2", image=("a.png", PICTURE))
    assert base64.b64decode(answer.data[0].b64_json) == PICTURE
    assert server.lab.requests[0].path == "/one/v1/images/variations"


@pytest.mark.parametrize("count", [1, 2])
def test_partial_images_are_passed_on_but_not_stored(client, server, count):
    stream = client.images.generate(model="one/gpt-image-1", prompt="a cat", stream=True, partial_images=1, n=count)
    assert [event.type for event in stream] == [
        "image_generation.partial_image",
        *["image_generation.completed"] * count,
    ]
    row = server.timeline(stream.response.headers["x-request-id"])
    assert [item["size"] for item in row["answer"]["media"]] == [len(PICTURE)] * count


def test_unstreamed_answer_to_a_streamed_call_becomes_one_event(client, server):
    """A provider that does not stream, such as `whisper-1`, may answer a streamed call with a complete response."""
    server.lab.play({"one": ["unstreamed"]})
    stream = client.audio.transcriptions.create(model="one/whisper-1", file=SPEECH_FILE, stream=True)
    (event,) = list(stream)
    assert (event.type, event.text[:8]) == ("transcript.text.done", "You said")


def test_broken_transcript_stream_raises_an_error_in_the_client(client, server):
    server.lab.play({"one": ["reset_mid_body"]})
    stream = client.audio.transcriptions.create(model="one/gpt-4o-transcribe", file=SPEECH_FILE, stream=True)
    with pytest.raises(openai.APIError, match="broke off"):
        list(stream)
    row = server.timeline(stream.response.headers["x-request-id"])
    assert row["attempts"][-1]["outcome"] == "stream_broken"
