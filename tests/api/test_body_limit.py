"""Request bodies are counted while they are received, before Django reads them."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import RequestFactory, override_settings

from artifacts.storage.content import byte_store
from artifacts.storage.uploads import IN_MEMORY, StoringUploadHandler, received_files
from capabilities.json_bodies import body_limit, received_limit
from routing_admin.platform.server.request_limit import limit_bodies

MIB = 1024 * 1024


async def treat_all_as_known(headers: Any) -> bool:
    """Treat every caller as known, since these tests are only about body sizes.

    See also tests/server/test_known_callers.py.
    """
    return True


async def send_chunks(
    path: str, blocks: list[bytes], headers: list[tuple[bytes, bytes]] | None = None
) -> tuple[Any, int, int]:
    """Return the response, how many bytes the application read, and how many chunks it received."""
    bytes_read, sent, chunks_taken = 0, [], 0

    async def client() -> AsyncIterator[dict[str, Any]]:
        for number, block in enumerate(blocks):
            yield {"type": "http.request", "body": block, "more_body": number < len(blocks) - 1}

    stream = client()

    async def receive() -> dict[str, Any]:
        nonlocal chunks_taken
        chunks_taken += 1
        return await anext(stream)

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal bytes_read
        has_more = True
        while has_more:
            message = await receive()
            bytes_read += len(message["body"])
            has_more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})

    await limit_bodies(app, treat_all_as_known)({"type": "http", "path": path, "headers": headers or []}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return (sent[0]["status"], body), bytes_read, chunks_taken


@override_settings(MAX_UPLOAD_BYTES=25 * MIB)
@pytest.mark.parametrize(
    ("path", "limit_mib", "received"),
    [
        ("/api/v1/artifacts", 26, 26),
        ("/v1/files", 26, 26),
        ("/v1/files/", 26, 26),
        ("/api/v1/artifacts/artifact:1/info", 32, 33),
        ("/api/v1/config/import", 32, 33),
        ("/v1/chat/completions", 75, 76),
        ("/mcp", 75, 76),
        ("/artifacts/", 251, 251),
        ("/v1x", 251, 251),
        ("/", 251, 251),
    ],
)
def test_server_accepts_slightly_larger_bodies_than_the_view_at_each_url(
    path: str, limit_mib: int, received: int
) -> None:
    """The view can therefore reject the body with its own message."""
    assert (body_limit(path), received_limit(path)) == (limit_mib * MIB, received * MIB)


@override_settings(MAX_UPLOAD_BYTES=MIB)
def test_chat_request_may_have_64_mib_even_if_the_upload_limit_is_lower() -> None:
    assert body_limit("/v1/chat/completions") == 64 * MIB


@override_settings(MAX_UPLOAD_BYTES=MIB)
async def test_body_that_exceeds_the_limit_is_rejected_while_it_arrives() -> None:
    (status, body), bytes_read, chunks_taken = await send_chunks("/api/v1/artifacts", [b"x" * MIB] * 50)
    assert status == 413
    assert json.loads(body)["error"] == "too_large"
    assert bytes_read <= received_limit("/api/v1/artifacts") == MIB + MIB
    # The third block exceeds the limit of 2 MiB.
    assert chunks_taken == 3


@override_settings(MAX_UPLOAD_BYTES=MIB)
async def test_announced_length_over_the_limit_is_rejected_without_reading() -> None:
    (status, body), _, chunks_taken = await send_chunks("/v1/files", [b""], [(b"content-length", b"999999999")])
    assert (status, chunks_taken) == (413, 0)
    assert json.loads(body)["error"]["code"] == "too_large"


async def test_body_within_the_limit_reaches_the_application_unchanged() -> None:
    (status, body), bytes_read, _ = await send_chunks(
        "/artifacts/", [b"x" * 1000] * 3, [(b"content-length", b"nonsense")]
    )
    assert (status, body, bytes_read) == (200, b"fine", 3000)


def test_upload_of_25_mib_uses_only_a_few_mib_of_memory() -> None:
    handler = StoringUploadHandler(RequestFactory().post("/"))
    block = b"x" * 65536
    tracemalloc.start()
    handler.new_file("file", "a.bin", "application/octet-stream", None, None, None)
    for number in range(settings.MAX_UPLOAD_BYTES // len(block)):
        handler.receive_data_chunk(block, number * len(block))
    file = handler.file_complete(settings.MAX_UPLOAD_BYTES)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * IN_MEMORY
    assert file.size == settings.MAX_UPLOAD_BYTES
    with pytest.raises(ValueError, match="larger than"):
        file.open()
    file.close()
    assert not list(byte_store().tmp.iterdir())


def test_small_file_in_a_form_can_be_read_repeatedly() -> None:
    request = RequestFactory().post("/", {"file": SimpleUploadedFile("llm-routing.json", b"words")})
    (file,) = received_files(request)
    assert file.read() == b"words"
    assert file.open().read() == b"words"
    assert list(file.chunks()) == [b"words"]
    request.close()
