"""Generated images, generated audio and citations in each vendor's answers, complete and streamed."""

from __future__ import annotations

import base64

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Delta, Failure, Finish, Supplement
from tests.lab import Lab
from tests.lab.recordings import FILE, PAGE, PICTURE, SOUND, URL_CITATION
from tests.protocols.exchange import exchange

CHAT = ChatRequest((Message(Role.USER, (TextPart("hi"),)),))
WHOLE_AND_STREAMED = pytest.mark.parametrize("stream", [False, True])
MAKERS = pytest.mark.parametrize("protocol", ["openai", "gemini"])


def answer(lab: Lab, protocol: str, name: str, *, stream: bool) -> Answer:
    outcome = exchange(protocol, lab.url(protocol), f"fault:recorded:name={name}", CHAT, stream=stream)
    assert isinstance(outcome, Answer), outcome
    return outcome


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "gemini"])
def test_image_without_text_counts_as_an_answer(lab: Lab, protocol: str, stream: bool) -> None:
    """OpenRouter sends generated images as `images`, and Gemini sends them as `inlineData`."""
    reply = answer(lab, protocol, "image", stream=stream)
    (image,) = reply.media
    assert (reply.text, reply.finish_reason) == ("", "stop")
    assert (image.kind, image.mime_type, base64.b64decode(image.data)) == (Kind.IMAGE, "image/png", PICTURE)


@WHOLE_AND_STREAMED
@MAKERS
def test_audio_without_text_counts_as_an_answer(lab: Lab, protocol: str, stream: bool) -> None:
    """Audio is streamed in chunks. OpenAI also sends a transcript."""
    reply = answer(lab, protocol, "speech", stream=stream)
    assert b"".join(base64.b64decode(media.data) for media in reply.media) == SOUND
    assert {media.kind for media in reply.media} == {Kind.AUDIO}
    assert {media.mime_type.partition(";")[0] for media in reply.media} == {"audio/L16"}
    if protocol == "openai":
        assert "".join(media.transcript for media in reply.media) == "Good day."
        assert ({media.id for media in reply.media}, reply.media[-1].expires_at) == ({"audio_lab"}, 1_790_003_600)


def test_repr_of_generated_media_contains_no_base64(lab: Lab) -> None:
    """The `repr` of media shows no base64, so that no log or error message can contain it."""
    reply = answer(lab, "openai", "image", stream=False)
    assert reply.media[0].data not in repr(reply)


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini"])
def test_citations_are_translated_to_openai_annotations(lab: Lab, protocol: str, stream: bool) -> None:
    """Citations have OpenAI's format. Gemini's byte offsets are converted to character offsets."""
    reply = answer(lab, protocol, "cited", stream=stream)
    assert reply.text == "So: Wien, schön."
    cited = reply.annotations[0]
    assert cited["type"] == "url_citation"
    assert cited["url_citation"].items() >= {**PAGE, "start_index": 4, "end_index": 16}.items()
    assert len(reply.annotations) == (2 if protocol == "anthropic" else 1)


@WHOLE_AND_STREAMED
def test_citation_of_a_file_keeps_all_its_fields(lab: Lab, stream: bool) -> None:
    """A cited file has no URL and is not treated as a citation of a web page."""
    cited = answer(lab, "anthropic", "cited", stream=stream).annotations[1]
    assert cited["type"] == "file_citation"
    assert cited["file_citation"].items() >= FILE.items()
    assert (cited["file_citation"]["title"], cited["file_citation"]["start_index"]) == ("notes.txt", 4)


def test_openai_annotations_are_passed_on_unchanged(lab: Lab) -> None:
    assert answer(lab, "openai", "cited", stream=False).annotations == (URL_CITATION,)


@pytest.mark.parametrize(
    ("protocol", "body", "count"),
    [
        ("openai", '{"images": [{"image_url": "https://example.org/a.png"}, {"image_url": {"url": "ftp://x"}}, 7]}', 1),
        ("openai", '{"content": [{"type": "image_url", "image_url": {"url": "data:image/webp;base64,AA=="}}]}', 1),
        ("openai", '{"content": "x", "images": "no", "audio": [], "annotations": {}}', 0),
        ("openai", '{"content": "x", "images": [{"image_url": {"url": "data:image/png,plain"}}]}', 0),
        ("gemini", '[{"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/v"}}]', 1),
        ("gemini", '[{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thought": true}]', 0),
        ("gemini", '[{"text": "x"}, {"inlineData": "no"}, {"inlineData": {"data": 7}}]', 0),
    ],
)
def test_invalid_generated_media_is_skipped(protocol: str, body: str, count: int) -> None:
    part = {"openai": '{"choices":[{"finish_reason":"stop","message":%s}]}'}.get(protocol)
    response_body = part or '{"candidates":[{"finishReason":"STOP","content":{"parts":%s}}]}'
    reply = PROTOCOLS[protocol].decode(200, {}, response_body.replace("%s", body).encode())
    assert isinstance(reply, Answer)
    assert len(reply.media) == count


def test_complete_image_response_to_a_stream_request_is_read_as_one_image() -> None:
    body = '{"choices":[{"finish_reason":"stop","message":{"images":[{"image_url":"data:image/png;base64,AA=="}]}}]}'
    decoder = PROTOCOLS["openai"].decoder()
    events = [*decoder.feed(body.encode()), *decoder.close()]
    assert [type(event) for event in events] == [Supplement, Finish]


def test_error_after_a_streamed_image_is_a_broken_stream() -> None:
    """Once an image has been sent, no other candidate may be called, so an error ends the stream."""
    chunk = '{"choices":[{"index":0,"delta":{"images":[{"image_url":"data:image/png;base64,AA=="}]}}]}'
    decoder = PROTOCOLS["openai"].decoder()
    events = decoder.feed(f'data: {chunk}\n\ndata: {{"error":{{"message":"boom","code":503}}}}\n\n'.encode())
    assert not any(isinstance(event, Delta) for event in events)
    assert isinstance(events[-1], Failure)
    assert events[-1].fault == "stream_broken"
