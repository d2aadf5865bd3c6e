"""Request bodies are not recorded by default. A recorded body contains text, but neither keys nor file contents."""

from __future__ import annotations

import base64
import json

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.actors import SYSTEM
from capabilities.core.delivery.adaptation import PartDelivery
from capabilities.core.delivery.decision import Delivery, Outcome
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.core.delivery.obstacles import ReasonCode, make_reason
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart, ToolCall
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Media, UpstreamRequest
from routing_admin.console.settings import actions as installation
from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.recorded_bodies import BODY_BYTES, clean_body, read_question, record_body
from routing_admin.request_log.sent_files import MAX_FILES
from tests.gateway.plane import PNG, chat_body, image, logged, post

SECRET = "sk-" + "abcdefgh12345678"


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@pytest.mark.parametrize("stream", [False, True])
def test_message_text_is_logged_only_while_body_recording_is_enabled(key, stream):
    chat = chat_body({"type": "text", "text": f"Meet at noon, {SECRET}"}, image(), model="auto", stream=stream)
    send = lambda: logged(_drained(post(key, chat)).headers["x-request-id"])  # noqa: E731
    assert send().body is None
    installation.record_bodies(SYSTEM, True)
    body = send().body
    recorded_text = json.dumps(body)
    assert "Meet at noon" in recorded_text
    assert "Meet at noon" in body["answer"]["text"]
    assert SECRET not in recorded_text
    assert base64.b64encode(PNG).decode() not in recorded_text
    installation.record_bodies(SYSTEM, False)
    assert send().body is None
    assert RequestLog.objects.exclude(body=None).count() == 1


def _drained(response):
    if response.streaming:
        b"".join(response)
    return response


@pytest.mark.django_db(databases=["default", "logs"])
def test_log_row_lists_only_the_first_of_100_000_files(admin: Client) -> None:
    file = FilePart(Kind.IMAGE, "image/png", url="https://a.example/dot.png")
    reason = make_reason(ReasonCode.NO_CAPABILITY, capability="vision")
    delivery = Delivery(Outcome.DESCRIBED, reason)
    deliveries = tuple(PartDelivery(0, part, file, delivery, "a picture") for part in range(100_000))
    prepared = Prepared(UpstreamRequest("https://one.example", {}), ChatRequest(()), deliveries)
    attempt = Attempt(
        "one", "m", "ok", dropped_params=tuple(f"messages[{number}].cache_control" for number in range(100_000))
    )
    write([build_entry(RequestFacts("many", timezone.now(), "v1"), (attempt,), {0: prepared})])
    row = AttemptLog.objects.get(request_id="many")
    assert (len(row.deliveries), row.deliveries[-1]["more"]) == (MAX_FILES, 100_000 - MAX_FILES)
    assert row.dropped_params[-1] == f"… (+{100_000 - len(row.dropped_params) + 1})"
    page = admin.get("/requests/many/").content
    assert b"and 99900 more files" in page
    assert len(page) < 300_000


def test_file_is_recorded_by_metadata_and_reference_only():
    file = FilePart(Kind.IMAGE, "image/png", "dot.png", 70, "abc")
    data = "see data:image/png;base64," + base64.b64encode(bytes(900)).decode()
    calls = (ToolCall("1", "look", '{"at": "noon"}'),)
    chat = ChatRequest(
        (Message(Role.USER, (TextPart(data), file)), Message(Role.ASSISTANT, tool_calls=calls)), max_tokens=5
    )
    body = clean_body(record_body(chat, Answer("fine")))
    facts = {"type": "file", "kind": "image", "mimeType": "image/png", "filename": "dot.png", "size": 70}
    assert body["messages"][0]["content"][1] == {**facts, "artifactRef": "artifact:abc"}
    assert body["messages"][0]["content"][0]["text"] == "see data:image/png;base64,<1200 characters>"
    assert body["messages"][1]["toolCalls"] == [{"id": "1", "name": "look", "arguments": '{"at": "noon"}'}]
    assert (body["maxTokens"], body["answer"]) == (5, {"text": "fine"})
    assert read_question(body) == ("see data:image/png;base64,<1200 characters>", ["abc"])


def test_generated_media_are_recorded_by_metadata_and_reference_only():
    data = base64.b64encode(bytes(90)).decode()
    sound = Media(Kind.AUDIO, "audio/wav", data, transcript=f"Good day, {SECRET}", artifact_id="abc")
    body = clean_body(record_body(ChatRequest(()), Answer("", media=(sound, Media(Kind.IMAGE, "image/png", data)))))
    assert data not in json.dumps(body)
    audio_facts, image_facts = body["answer"]["media"]
    assert audio_facts.items() >= {"kind": "audio", "mimeType": "audio/wav", "artifactRef": "artifact:abc"}.items()
    assert audio_facts["transcript"].startswith("Good day, ")
    assert SECRET not in audio_facts["transcript"]
    assert image_facts == {"kind": "image", "mimeType": "image/png"}


def test_long_body_loses_its_oldest_messages_first():
    """The limit is in bytes, regardless of the text's script. The newest messages and the answer are kept."""
    long = tuple(Message(Role.USER, (TextPart(f"{number} " + "字 " * 4000),)) for number in range(60))
    body = clean_body(record_body(ChatRequest((*long, Message(Role.USER, (TextPart("last"),)))), Answer("answer")))
    assert len(json.dumps(body, ensure_ascii=False).encode()) <= BODY_BYTES
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "last"}]
    assert body["answer"]["text"] == "answer"
    assert "earlier messages were left out" in body["note"]


@pytest.mark.parametrize("body", [None, {}, [], {"messages": []}, {"messages": [{"role": "assistant"}]}])
def test_body_of_unexpected_shape_has_no_question(body):
    assert read_question(body) == ("", [])
