"""/v1/models, /v1/files, similar URLs, keys and scopes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import ModelInfo
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from artifacts.models import Artifact
from tests.cast import key_of
from tests.gateway.plane import PNG, post, said

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


def get(key: str, path: str, method: str = "get"):
    return getattr(Client(), method)(path, headers={"authorization": f"Bearer {key}"})


def upload(key: str, data: bytes = PNG, name: str = "dot.png", kind: str = "image/png"):
    body = {"purpose": "vision", "file": SimpleUploadedFile(name, data, kind)}
    return Client().post("/v1/files", body, headers={"authorization": f"Bearer {key}"})


def test_every_task_route_and_every_service_is_a_model(key):
    """Every listed name is found by itself, and so are other names that a call may use. An unknown one is a 404."""
    listed = {one["id"]: one for one in get(key, "/v1/models").json()["data"]}
    assert listed["vision-model"]["capabilities"]["input"] == ["text", "vision"]
    assert "task:planning" in listed
    assert "task:default" in listed
    for name in [*listed, "auto", "planning", "echo/anything", "task:unheard-of"]:
        assert get(key, f"/v1/models/{name}").json()["id"] == name
    missing = get(key, "/v1/models/gpt-99")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


def test_anthropics_clients_get_anthropics_list(key):
    """The list has Anthropic's types, and can be paged in both directions."""
    names = [one["id"] for one in get(key, "/v1/models").json()["data"]]

    def ask(path: str) -> dict[str, Any]:
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        page: dict[str, Any] = Client().get(path, headers=headers).json()
        return page

    whole = ask("/v1/models")
    for each in whole["data"]:
        assert set(each) <= set(ModelInfo.model_fields)
        ModelInfo.model_validate(each)
    assert [one["id"] for one in whole["data"]] == names
    assert (whole["has_more"], whole["first_id"], whole["last_id"]) == (False, names[0], names[-1])
    assert ask("/v1/models/auto")["display_name"] == "auto"
    seen, page = [], {"has_more": True, "last_id": ""}
    while page["has_more"]:
        page = ask(f"/v1/models?limit=2&after_id={page['last_id']}")
        seen += [one["id"] for one in page["data"]]
    assert seen == names
    page = ask(f"/v1/models?limit=2&before_id={names[3]}")
    assert ([one["id"] for one in page["data"]], page["has_more"]) == (names[1:3], True)


def test_a_file_goes_in_is_listed_comes_out_and_goes_away(key):
    """OpenAI's Files API stores artifacts; a file's id is the artifact's reference."""
    made = upload(key).json()
    assert made["object"] == "file"
    assert made["id"].startswith("artifact:")
    assert (made["bytes"], made["purpose"], made["kind"]) == (len(PNG), "vision", "image")
    assert [one["id"] for one in get(key, "/v1/files").json()["data"]] == [made["id"]]
    assert get(key, f"/v1/files/{made['id']}").json() == made
    response = get(key, f"/v1/files/{made['id']}/content")
    assert b"".join(response.streaming_content) == PNG
    assert response.headers["Content-Type"] == "image/png"
    assert get(key, f"/v1/files/{made['id']}", "delete").json()["deleted"] is True
    assert get(key, f"/v1/files/{made['id']}").status_code == 404


@pytest.mark.parametrize("charset", ["utf-8", "gbk", "nonsense"])
def test_a_text_file_that_names_its_encoding_is_text(key, charset):
    """A charset parameter does not change the type of a file."""
    text = "测试文件".encode("gbk" if charset == "gbk" else "utf-8")
    made = upload(key, text, "notes.txt", f"text/plain; charset={charset}").json()
    assert (made["kind"], made["mime_type"]) == ("text", "text/plain")


def test_a_file_of_another_agent_is_read_by_reference_and_deleted_by_its_owner_only(key):
    """A private file of another agent is not found."""
    made, other = upload(key).json(), key_of("vision-agent")
    assert get(other, f"/v1/files/{made['id']}").status_code == 200
    assert get(other, "/v1/files").json()["data"] == []
    assert get(other, f"/v1/files/{made['id']}", "delete").status_code == 404
    Artifact.objects.update(visibility="private")
    assert get(other, f"/v1/files/{made['id']}").status_code == 404
    part = {"type": "file", "file": {"file_id": made["id"]}}
    refused = post(other, said(part))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "messages[0].content[0].file.file_id")


def test_files_come_in_pages(key):
    """Pages with `after` contain every file exactly once."""
    made = {upload(key, PNG + bytes([number]), f"{number}.png").json()["id"] for number in range(5)}
    seen, after = [], ""
    while True:
        page = get(key, f"/v1/files?limit=2{after}").json()
        seen += [one["id"] for one in page["data"]]
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert (len(seen), set(seen)) == (5, made)
    assert get(key, "/v1/files?limit=0").status_code == 400


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/completions", "POST /v1/completions"),
        ("/messages", "/v1/messages"),
        ("/embeddings", "POST /v1/embeddings"),
        ("/v1/audio/voices", "/v1/audio/speech"),
        ("/v1/images/upscales", "/v1/images/edits"),
        ("/v1/vector_stores", "/v1/moderations"),
        ("/v1/responses/compact", "/v1/responses with the whole conversation"),
        ("/v1/messages/batches", "/v1/messages"),
        ("/v1beta/models/gemini-pro:embedContent", "POST /v1/embeddings"),
        ("/v1beta/models/task:coding:batchGenerateContent", ":streamGenerateContent or :countTokens"),
        ("/v1/models/gemini-pro:predict", ":streamGenerateContent or :countTokens"),
        ("/upload/v1beta/files", "POST /v1/files"),
        ("/v1beta/cachedContents", "POST /v1beta/models/{name}:generateContent"),
    ],
)
def test_a_near_miss_is_told_the_right_address(key, path, word):
    """A URL similar to a known one is a 404 that names the right URL, in the shape of its API."""
    response = post(key, said("hello"), path)
    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/json"
    assert word in response.json()["error"]["message"]
    assert (response.json().get("type") == "error") == ("/messages" in path)


def test_keys_and_scopes_are_checked_and_a_browsers_session_means_nothing(key, admin):
    """A missing or wrong key is a 401, a missing scope a 403, and a session cookie is ignored."""
    reader = key_of("text-agent", scopes=["registry:read"])
    for given, status in (("", 401), ("ra_wrong", 401), (reader, 403)):
        for response in (post(given, said("hello")), get(given, "/v1/models"), upload(given)):
            assert response.status_code == status
            assert response.json()["error"]["request_id"] == response.headers["x-request-id"]
    assert admin.get("/v1/models").status_code == 401
    assert Client().get("/v1/models", headers={"x-api-key": key}).status_code == 200


def test_another_method_is_refused_in_openais_shape(key):
    response = get(key, "/v1/chat/completions")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


def test_no_body_that_makes_no_sense_leads_to_a_page(key):
    """An upload without a file or without multipart is a 400 that names `file`."""
    for body, kind in ((b"x", "text/plain"), (json.dumps({}), "application/json")):
        sent = Client().post("/v1/files", body, content_type=kind, headers={"authorization": f"Bearer {key}"})
        assert (sent.status_code, sent.json()["error"]["param"]) == (400, "file")
    sent = Client().post("/v1/files", {"purpose": "vision"}, headers={"authorization": f"Bearer {key}"})
    assert (sent.status_code, sent.json()["error"]["param"]) == (400, "file")
