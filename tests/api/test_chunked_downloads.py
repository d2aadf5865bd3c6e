"""Responses that contain a file are streamed unchanged; the whole file is never held in memory."""

from __future__ import annotations

import base64
import json
import tracemalloc
from typing import Any

import orjson
import pytest
from api_samples import mp3, png
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from artifacts.core.delivery.content_router import ArtifactContentRouter
from artifacts.storage.content import RowStore, byte_store
from capabilities.core.message import Blob, make_blob
from capabilities.core.wire import open_media, split_payload
from routing_admin.configuration import snapshot
from routing_admin.dispatch.model_endpoints import build_registry

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]

# A PNG header followed by ten megabytes.
LARGE = png()[:33] + bytes(n * 7 % 251 for n in range(1000)) * 10_000
# Sizes near a boundary between base64 groups or between blocks of the artifact store.
SIZES = [len(png()), len(png()) + 1, len(png()) + 2, 256 * 1024 - 1, 256 * 1024, 3 * 256 * 1024 + 1]


def fetch_bytes(agent: Any, ref: str, service: str) -> Any:
    """Return the response with its body still unread."""
    return agent.client.get(f"/api/v1/artifacts/{ref}?serviceId={service}", headers=agent.headers)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "kind", "service"), [("a.png", "image/png", "vision-model"), ('ü".mp3', "", "")])
def test_streamed_response_equals_the_unstreamed_response(
    size: int, name: str, kind: str, service: str, text_agent: Any
) -> None:
    data = (png() if kind else mp3()).ljust(size, b"\0")[: max(size, 60)]
    created, target = text_agent.stored(name, data, kind or "audio/mpeg"), service or "multimodal-model"
    answer = fetch_bytes(text_agent, created["ref"], target)
    body = b"".join(answer.streaming_content)
    artifact = RowStore("text-agent").get_artifact(created["ref"])
    assert artifact is not None
    expected = ArtifactContentRouter(build_registry(snapshot.current())).route_content(artifact, target).as_json()
    assert body == orjson.dumps(expected)
    assert (answer["Content-Type"], answer["Content-Length"]) == ("application/json; charset=utf-8", str(len(body)))


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
async def test_asynchronous_handler_streams_the_file_unchanged(text_agent: Any) -> None:
    created = await sync_to_async(text_agent.stored)("large.png", LARGE, "image/png")
    address = f"/api/v1/artifacts/{created['ref']}?serviceId=vision-model"
    answer = await AsyncClient().get(address, headers=text_agent.headers)
    pieces = [piece async for piece in answer.streaming_content]
    url = json.loads(b"".join(pieces))["imageUrl"]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/png;base64,")) == LARGE
    assert max(map(len, pieces)) < 512 * 1024


@pytest.mark.files_only
def test_download_of_ten_megabytes_is_never_held_in_memory_completely(text_agent: Any) -> None:
    ref = text_agent.stored("large.png", LARGE, "image/png")["ref"]
    b"".join(fetch_bytes(text_agent, ref, "vision-model").streaming_content)
    tracemalloc.start()
    answer = fetch_bytes(text_agent, ref, "vision-model")
    length = sum(len(piece) for piece in answer.streaming_content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (length == int(answer["Content-Length"]), length > len(LARGE) * 4 // 3) == (True, True)
    assert peak < len(LARGE) // 3


def test_routed_message_with_files_is_streamed_with_escaped_types(text_agent: Any) -> None:
    refs = [text_agent.stored(f"{n}.png", png(n, n), "image/png")["ref"] for n in (1, 2)]
    attachments = [{"type": "image", "artifactRef": ref, "mimeType": 'image/x"y\\'} for ref in refs]
    body = {"message": {"text": "look", "attachments": attachments}, "serviceId": "vision-model"}
    answer = text_agent.client.post(
        "/api/v1/messages/route", json.dumps(body), "application/json", headers=text_agent.headers
    )
    content = b"".join(answer.streaming_content)
    urls = [part["image_url"]["url"] for part in json.loads(content)["processedContent"][1:]]
    assert [base64.b64decode(url.partition(",")[2]) for url in urls] == [png(1, 1), png(2, 2)]
    assert int(answer["Content-Length"]) == len(content)


def test_missing_bytes_are_reported_before_streaming_begins(text_agent: Any) -> None:
    created = text_agent.stored("a.png", png(), "image/png")
    byte_store().delete(created["sha256"])
    answer = fetch_bytes(text_agent, created["ref"], "vision-model")
    assert (answer.streaming, answer.json()["warnings"]) == (False, ["artifact_missing"])


def test_unreadable_file_is_reported_before_streaming_begins() -> None:
    with pytest.raises(ZeroDivisionError):
        open_media(Blob(1, lambda: iter([1 // 0])))
    before, piece, after = split_payload({"url": open_media(make_blob(b"abc"), 'data:a"b;base64,')})
    assert (before, after) == (b'{"url":"data:a\\"b;base64,', b'"}')
    assert b"".join(piece.blob.blocks()) == b"abc"  # type: ignore[union-attr]
