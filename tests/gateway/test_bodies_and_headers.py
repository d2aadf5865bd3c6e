"""Variants of requests that some clients send: compressed bodies, byte order marks, other key headers, `file-` ids."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from capabilities.json_bodies import body_limit
from tests.gateway.plane import PNG, answer_text, chat_body, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

PATH = "/v1/chat/completions"
QUESTION = json.dumps(chat_body("hello 你好")).encode()


def status_and_code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
)
def test_compressed_body_is_decompressed(key: str, encoding: str, pack: Any) -> None:
    assert "你好" in answer_text(post(key, pack(QUESTION), **{"content-encoding": encoding}))


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/responses/input_tokens"]
)
def test_every_chat_api_accepts_a_compressed_body(key: str, path: str) -> None:
    body = {"model": "task:planning", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
    packed = gzip.compress(json.dumps(body).encode())
    assert post(key, packed, path, **{"content-encoding": "gzip"}).status_code == 200


def test_gzip_body_of_two_members_is_decompressed_completely(key: str) -> None:
    """Some programs compress each part that they append, so a gzip body may have several members."""
    packed = gzip.compress(QUESTION[:20]) + gzip.compress(QUESTION[20:])
    assert "你好" in answer_text(post(key, packed, **{"content-encoding": "gzip"}))


def test_body_that_expands_beyond_the_limit_is_refused(key: str) -> None:
    bomb = gzip.compress(b" " * (body_limit(PATH) + 1), 1)
    assert len(bomb) < body_limit(PATH) // 100
    refused = post(key, bomb, **{"content-encoding": "gzip"})
    assert status_and_code(refused) == (413, "body_too_large")
    assert logged(refused.headers["x-request-id"]).outcome == "body_too_large"


@pytest.mark.parametrize(
    ("encoding", "body", "status", "code"),
    [
        ("br", QUESTION, 415, "unsupported_encoding"),
        ("gzip, gzip", QUESTION, 415, "unsupported_encoding"),
        ("gzip", QUESTION, 400, "invalid_encoding"),
        ("gzip", gzip.compress(QUESTION)[:-1], 400, "invalid_encoding"),
        ("gzip", gzip.compress(QUESTION) + b"more", 400, "invalid_encoding"),
    ],
    ids=["unknown", "twice", "not-packed", "cut-off", "more-behind"],
)
def test_wrongly_declared_encoding_is_refused(key: str, encoding: str, body: bytes, status: int, code: str) -> None:
    assert status_and_code(post(key, body, **{"content-encoding": encoding})) == (status, code)


def test_byte_order_mark_before_a_body_is_ignored(key: str) -> None:
    """Some editors and languages write a byte order mark before every text."""
    assert "你好" in answer_text(post(key, b"\xef\xbb\xbf" + QUESTION))


@pytest.mark.parametrize("path", ["/v1/models", "/v1/files", "/api/v1/services"])
def test_key_is_read_from_the_api_key_header_of_azure_clients(key: str, path: str) -> None:
    for headers in ({"api-key": key}, {"api-key": key, "x-api-key": ""}, {"api-key": key, "authorization": "Basic x"}):
        assert Client().get(path, headers=headers).status_code == 200
    assert Client().get(path, headers={"api-key": key, "authorization": "Bearer ra_wrong"}).status_code == 401


def test_file_is_found_by_its_id_with_openais_file_prefix(key: str) -> None:
    """Some programs prefix every file id with `file-`. The gateway does not know the ids of files stored at OpenAI."""
    client, sent = Client(), {"authorization": f"Bearer {key}"}
    fields = {"purpose": "vision", "file": SimpleUploadedFile("a.png", PNG, "image/png")}
    ref = client.post("/v1/files", fields, headers=sent).json()["id"]
    bare = ref.removeprefix("artifact:")
    for file_id in (ref, bare, f"file-{bare}"):
        assert client.get(f"/v1/files/{file_id}", headers=sent).json()["id"] == ref
        part = {"type": "file", "file": {"file_id": file_id}}
        assert post(key, chat_body(part, {"type": "text", "text": "what?"})).status_code == 200
    assert client.get("/v1/files", {"after": f"file-{bare}"}, headers=sent).json()["data"] == []
    assert status_and_code(post(key, chat_body({"type": "file", "file": {"file_id": "file-6F2ksmvXxt4"}}))) == (
        400,
        "artifact_not_found",
    )
    assert client.delete(f"/v1/files/file-{bare}", headers=sent).json()["deleted"] is True
    assert client.get(f"/v1/files/{ref}", headers=sent).status_code == 404
