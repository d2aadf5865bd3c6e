"""`Idempotency-Key` in the APIs other than chat, with the official client: forms, audio and images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from routing_admin.gateway.application import CHAT_APIS
from tests.gateway.serving import Server, served

pytestmark = pytest.mark.usefixtures("reset_lab")

SOUND = ("talk.wav", b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0", "audio/wav")
PICTURE = ("a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 32, "image/png")
CallWithKey = Callable[[openai.OpenAI, str], Any]


def with_key(key: str) -> dict[str, Any]:
    return {"extra_headers": {"Idempotency-Key": key}}


def rerank(client: openai.OpenAI, key: str) -> Any:
    body = {"model": "one/rank", "query": "q", "documents": ["a", "b"]}
    return client.post("/rerank", cast_to=httpx.Response, body=body, options={"headers": {"Idempotency-Key": key}})


CALLS: dict[str, CallWithKey] = {
    "/v1/embeddings": lambda client, word: client.embeddings.with_raw_response.create(
        model="one/embed", input="hello", **with_key(word)
    ),
    "/v1/completions": lambda client, word: client.completions.with_raw_response.create(
        model="one/instruct", prompt="Once", **with_key(word)
    ),
    "/v1/moderations": lambda client, word: client.moderations.with_raw_response.create(
        model="one/moderation", input="hello", **with_key(word)
    ),
    "/v1/rerank": rerank,
    "/v1/audio/transcriptions": lambda client, word: client.audio.transcriptions.with_raw_response.create(
        model="one/hear", file=SOUND, **with_key(word)
    ),
    "/v1/audio/translations": lambda client, word: client.audio.translations.with_raw_response.create(
        model="one/hear", file=SOUND, **with_key(word)
    ),
    "/v1/audio/speech": lambda client, word: client.audio.speech.with_raw_response.create(
        model="one/speak", voice="alloy", input="hello", **with_key(word)
    ),
    "/v1/images/generations": lambda client, word: client.images.with_raw_response.generate(
        model="one/draw", prompt="a cat", **with_key(word)
    ),
    "/v1/images/edits": lambda client, word: client.images.with_raw_response.edit(
        model="one/draw", image=PICTURE, prompt="a dog", **with_key(word)
    ),
    "/v1/images/variations": lambda client, word: client.images.with_raw_response.create_variation(
        model="one/draw", image=PICTURE, **with_key(word)
    ),
}
"""One call to each API. For forms, the client generates a new boundary for every call."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("idempotency")) as server:
        yield server


def test_module_tests_every_api_other_than_chat() -> None:
    assert set(CALLS) == set(CHAT_APIS) - {"/v1/chat/completions", "/v1/messages", "/v1/responses"}


@pytest.mark.parametrize("path", CALLS)
def test_repeated_call_makes_one_upstream_request(client: openai.OpenAI, server: Server, path: str) -> None:
    answers = [CALLS[path](client, path) for _ in range(3)]
    first, *replays = [getattr(answer, "http_response", answer) for answer in answers]
    assert len(server.lab.requests) == 1
    for replay in replays:
        assert (replay.status_code, replay.content) == (200, first.content)
        assert replay.headers["content-type"] == first.headers["content-type"]
        assert replay.headers.get("x-routing-artifacts") == first.headers.get("x-routing-artifacts")
        assert replay.headers["x-routing-original-request-id"] == first.headers["x-request-id"]
    row = server.timeline(replays[0].headers["x-request-id"])
    assert (row["surface"], row["answer"]) == (CHAT_APIS[path].surface, {"replayOf": first.headers["x-request-id"]})


def test_another_file_with_the_same_key_is_422(client: openai.OpenAI) -> None:
    CALLS["/v1/audio/transcriptions"](client, "file")
    with pytest.raises(openai.UnprocessableEntityError, match="was used for a different request"):
        client.audio.transcriptions.create(model="one/hear", file=("b.wav", SOUND[1]), **with_key("file"))


def test_event_stream_is_replayed(client: openai.OpenAI, server: Server) -> None:
    body: Any = {"model": "one/draw", "prompt": "x", "stream": True, **with_key("events")}
    streams = [[event.model_dump() for event in client.images.generate(**body)] for _ in range(2)]
    assert streams[0] == streams[1]
    assert streams[0]
    assert len(server.lab.requests) == 1
