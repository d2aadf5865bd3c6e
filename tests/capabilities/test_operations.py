"""Requests and responses of the APIs other than chat: URLs, bodies, valid responses, media and usage."""

from __future__ import annotations

import base64
import json
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import pytest
from openai.types import completion_usage, create_embedding_response, image_gen_completed_event, images_response
from openai.types.audio import transcription, transcription_text_done_event
from pydantic import BaseModel

from capabilities.core.message import ChatRequest, make_blob
from capabilities.core.operations import replies
from capabilities.core.operations.passthrough import PassthroughCall
from capabilities.core.operations.replies import PassthroughAnswer, parse_usage
from capabilities.core.operations.stream import format_frame, join_frames
from capabilities.core.operations.table import OPERATIONS, BodyShape, FormFile, FormRequest
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.wire import Failure, Fault, Finish, Target, UpstreamRequest

OPERATION = {operation.name: operation for operation in OPERATIONS}


def encode(name: str, fields: dict[str, Any], shape: BodyShape = BodyShape.JSON, **target: Any) -> UpstreamRequest:
    address = Target(**{"provider": "p", "endpoint": "https://llm.example/v1", "model": "m", "api_key": "k", **target})
    return PassthroughCall(operation=OPERATION[name], shape=shape).encode(
        ChatRequest((), extra=fields), address, stream=False
    )


def decode(name: str, body: bytes, kind: str = "application/json", **call: Any) -> PassthroughAnswer | Failure:
    outcome = PassthroughCall(operation=OPERATION[name], **call).decode(200, {"Content-Type": kind}, body)
    assert isinstance(outcome, PassthroughAnswer | Failure)
    return outcome


def fault(name: str, body: bytes, kind: str = "application/json", **call: Any) -> Fault:
    outcome = decode(name, body, kind, **call)
    assert isinstance(outcome, Failure)
    return outcome.fault


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("https://llm.example/v1", "https://llm.example/v1/embeddings"),
        ("https://llm.example/v1/", "https://llm.example/v1/embeddings"),
        ("https://llm.example/v1/chat/completions", "https://llm.example/v1/embeddings"),
        ("https://llm.example/v1/embeddings", "https://llm.example/v1/embeddings"),
        ("https://llm.example/x/chat/completions?api-version=3", "https://llm.example/x/embeddings?api-version=3"),
    ],
)
def test_passthrough_url_is_derived_from_base_url_or_chat_url(endpoint: str, url: str) -> None:
    assert encode("embeddings", {}, endpoint=endpoint).url == url


def test_extra_body_of_the_provider_is_merged_last() -> None:
    extra = {"input_type": "query", "deep": {"a": 1}}
    assert encode("embeddings", {"input": "a", "deep": {"b": 2}}, extra_body=extra).payload == {
        "input": "a",
        "deep": {"b": 2, "a": 1},
        "model": "m",
        "input_type": "query",
    }
    form = encode("transcriptions", {"language": ("de",)}, BodyShape.FORM, extra_body=extra)
    assert form.payload == {"language": ("de",), "model": ("m",), "input_type": ("query",), "deep": ('{"a": 1}',)}


def test_multipart_form_escapes_quotes_and_line_ends() -> None:
    """Names and values in a multipart form are escaped. Its length is known before its files are read."""
    fields = {'a"b\r\nc': ("one", "zwei 你好"), "file": (FormFile('x"\n.wav', "audio/wav", make_blob(b"\x00--\r\n")),)}
    request = encode("transcriptions", fields, BodyShape.FORM)
    assert isinstance(request, FormRequest)
    pieces = [piece if isinstance(piece, bytes) else b"".join(piece.blocks()) for piece in request.pieces()]  # type: ignore[union-attr]
    body = b"".join(pieces)
    assert request.content_length == len(body)
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    parts = list(BytesParser(policy=HTTP).parsebytes(head + body).iter_parts())
    read_fields = [
        (part.get_param("name", header="content-disposition"), part.get_payload(decode=True)) for part in parts
    ]
    assert read_fields == [
        ("a%22b%0D%0Ac", b"one"),
        ("a%22b%0D%0Ac", "zwei 你好".encode()),
        ("file", b"\x00--\r\n"),
        ("model", b"m"),
    ]
    assert parts[2].get_filename() == "x%22%0A.wav"
    assert request.elide()["file"] == ["<5 bytes>"]


@pytest.mark.parametrize(
    ("name", "body", "kind", "expected"),
    [
        ("embeddings", b'{"data": []}', "application/json", Fault.EMPTY_CHOICES),
        ("embeddings", b'{"data": "x"}', "application/json", Fault.BAD_SHAPE),
        ("embeddings", b'{"error": {"code": 429, "message": "slow down"}}', "application/json", Fault.HTTP_429),
        ("transcriptions", b'{"words": []}', "application/json", Fault.BAD_SHAPE),
        ("speech", b"", "audio/mpeg", Fault.EMPTY_CONTENT),
        ("speech", b"{}", "application/json", Fault.BAD_SHAPE),
        ("speech", b"<html>", "text/html", Fault.BAD_CONTENT_TYPE),
    ],
)
def test_invalid_passthrough_response_is_a_fault(name: str, body: bytes, kind: str, expected: Fault) -> None:
    """After an invalid response, the next candidate is called."""
    assert fault(name, body, kind) is expected


def test_plain_transcript_may_be_any_text_except_html() -> None:
    outcome = decode("transcriptions", b"<noise>", "text/plain", answer_format="srt")
    assert isinstance(outcome, PassthroughAnswer)
    assert (outcome.body, outcome.text, outcome.content_type) == (b"<noise>", "<noise>", "text/plain")
    assert isinstance(decode("transcriptions", b"", "", answer_format="text"), PassthroughAnswer)
    assert fault("transcriptions", b"<html>", "text/html", answer_format="text") is Fault.BAD_CONTENT_TYPE


def test_browser_executable_content_type_of_a_response_is_replaced() -> None:
    sound = decode("speech", b"<svg>", "image/svg+xml")
    transcript = decode("transcriptions", b"a", "text/xml", answer_format="text")
    assert isinstance(sound, PassthroughAnswer)
    assert isinstance(transcript, PassthroughAnswer)
    assert (sound.content_type, transcript.content_type) == ("application/octet-stream", "text/plain; charset=utf-8")


def test_reranking_without_results_is_valid() -> None:
    """A relevance threshold may exclude all results. Voyage calls the list of results `data`."""
    for body in (b'{"results": []}', b'{"data": [{"index": 0}]}'):
        assert isinstance(decode("rerank", body), PassthroughAnswer)


def test_only_the_model_name_is_changed_in_a_passthrough_response() -> None:
    raw = b'{"data":[{"embedding":[1.0e-05]}],  "model":"m-2"}'
    outcome = decode("embeddings", raw)
    assert isinstance(outcome, PassthroughAnswer)
    assert outcome.body_for("m-2") == raw
    assert json.loads(outcome.body_for("mine")) == {**json.loads(raw), "model": "mine"}
    images = decode("images", b'{"data": [{"url": "https://x.example/a.png"}]}')
    assert isinstance(images, PassthroughAnswer)
    assert images.body_for("mine") == images.body


def test_complete_response_to_a_stream_request_is_converted_to_events() -> None:
    images = json.dumps({"data": [{"b64_json": "AA=="}, {"b64_json": "AQ=="}], "output_format": "webp"}).encode()
    outcome = decode("images", images, stream=True)
    assert isinstance(outcome, PassthroughAnswer)
    events = [json.loads(line[6:]) for line in outcome.text.splitlines() if line.startswith("data: ")]
    assert [(event["type"], event["b64_json"]) for event in events] == [
        ("image_generation.completed", "AA=="),
        ("image_generation.completed", "AQ=="),
    ]
    assert [media.mime_type for media in outcome.media] == ["image/webp"] * 2
    sound = decode("speech", b"\x01", "audio/wav", stream=True)
    assert isinstance(sound, PassthroughAnswer)
    assert base64.b64encode(b"\x01").decode() in sound.text
    assert "speech.audio.done" in sound.text


def test_transcription_stream_without_its_last_event_is_truncated() -> None:
    first, last = (
        b'data: {"type": "transcript.text.delta", "delta": "a"}\n\n',
        b'data: {"type": "transcript.text.done"}\n\n',
    )
    cut, complete = (PassthroughCall(operation=OPERATION["transcriptions"], stream=True).decoder() for _ in range(2))
    assert [*cut.feed(first), *cut.close()][-1].fault is Fault.STREAM_TRUNCATED  # type: ignore[union-attr]
    assert isinstance([*complete.feed(first + last), *complete.close()][-1], Finish)


def test_completion_stream_ends_with_its_last_choice_or_done() -> None:
    end = b'data: {"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}\n\n'
    count = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}\n\n'
    goodbye = b"data: [DONE]\n\n"

    def last(expected: int, *events: bytes) -> Any:
        decoder = PassthroughCall(operation=OPERATION["completions"], stream=True, count=expected).decoder()
        return [*decoder.feed(b"".join(events)), *decoder.close()][-1]

    assert last(1, end) == Finish("", explains_silence=True)
    assert last(2, end, end, count, goodbye).usage.completion_tokens == 4
    assert isinstance(last(2, end, goodbye), Finish)
    assert last(2, end).fault is Fault.STREAM_TRUNCATED
    assert last(1, end.replace(b'"stop"', b"null"), goodbye).fault is Fault.STREAM_TRUNCATED
    assert last(1, goodbye).fault is Fault.STREAM_TRUNCATED


def test_text_of_a_streamed_completion_is_joined_for_counting_tokens() -> None:
    frames = [format_frame(SseEvent(json.dumps({"choices": [{"text": text}]}))) for text in ('data: "', "你好\n")]
    assert join_frames([*frames, "data: [DONE]\n\n"]) == 'data: "你好\n'


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ({"usage": {"prompt_tokens": 9, "total_tokens": 9}}, (9, None)),
        # Jina and Voyage report only the total token count.
        ({"usage": {"total_tokens": 21}}, (21, None)),
        # Cohere and SiliconFlow report both input and output tokens.
        ({"meta": {"tokens": {"input_tokens": 30, "output_tokens": 2}}}, (30, 2)),
        ({"usage": {"type": "duration", "seconds": 9}}, (None, None)),
        ({"usage": 7, "meta": []}, (None, None)),
    ],
)
def test_usage_is_read_from_the_fields_of_every_host(value: dict[str, Any], counts: tuple[Any, Any]) -> None:
    """If a host reports only the total, it counts as input tokens."""
    counted = parse_usage(value)
    assert (counted.prompt_tokens, counted.completion_tokens) == counts


@pytest.mark.parametrize(
    "model",
    [
        completion_usage.CompletionUsage,
        create_embedding_response.Usage,
        images_response.Usage,
        image_gen_completed_event.Usage,
        transcription.UsageTokens,
        transcription.UsageDuration,
        transcription_text_done_event.Usage,
    ],
)
def test_every_usage_field_of_the_sdks_is_in_the_usage_tables(model: type[BaseModel]) -> None:
    assert set(model.model_fields) <= {*replies.TOTALS, *replies.DETAILS, *replies.IGNORED_COUNTS}


@pytest.mark.parametrize(
    "model",
    [
        completion_usage.CompletionTokensDetails,
        completion_usage.PromptTokensDetails,
        images_response.UsageInputTokensDetails,
        images_response.UsageOutputTokensDetails,
        transcription.UsageTokensInputTokenDetails,
    ],
)
def test_every_token_detail_of_the_sdks_is_in_the_usage_tables(model: type[BaseModel]) -> None:
    assert set(model.model_fields) <= {*replies.INPUT, *replies.OUTPUT, *replies.IGNORED_COUNTS}


def test_plain_transcript_for_a_stream_request_becomes_the_done_event() -> None:
    answer = decode("transcriptions", b"Good morning", "text/plain", stream=True, answer_format="text")
    assert isinstance(answer, PassthroughAnswer)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events == [{"type": "transcript.text.done", "text": "Good morning"}]
