"""/v1/models, /v1/files, URLs that resemble API URLs, and key scopes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import ModelInfo
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from artifacts.models import Artifact
from routing_admin.gateway.messages.models import write_page
from tests.cast import create_key
from tests.gateway.plane import PNG, chat_body, post

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


def get(key: str, path: str, method: str = "get"):
    return getattr(Client(), method)(path, headers={"authorization": f"Bearer {key}"})


def upload(key: str, data: bytes = PNG, name: str = "dot.png", kind: str = "image/png"):
    body = {"purpose": "vision", "file": SimpleUploadedFile(name, data, kind)}
    return Client().post("/v1/files", body, headers={"authorization": f"Bearer {key}"})


def test_model_list_contains_every_task_route_and_service(key):
    listed = {model["id"]: model for model in get(key, "/v1/models").json()["data"]}
    assert listed["vision-model"]["capabilities"]["input"] == ["text", "vision"]
    assert "task:planning" in listed
    assert "task:default" in listed
    for name in [*listed, "auto", "planning", "echo/anything", "task:unheard-of"]:
        assert get(key, f"/v1/models/{name}").json()["id"] == name
    missing = get(key, "/v1/models/gpt-99")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


def test_model_list_has_anthropics_format_for_anthropics_clients(key):
    names = [model["id"] for model in get(key, "/v1/models").json()["data"]]

    def ask(path: str) -> dict[str, Any]:
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        page: dict[str, Any] = Client().get(path, headers=headers).json()
        return page

    whole = ask("/v1/models")
    for model in whole["data"]:
        assert set(model) <= set(ModelInfo.model_fields)
        ModelInfo.model_validate(model)
    assert [model["id"] for model in whole["data"]] == names
    assert (whole["has_more"], whole["first_id"], whole["last_id"]) == (False, names[0], names[-1])
    assert ask("/v1/models/auto")["display_name"] == "auto"
    paged_names, page = [], {"has_more": True, "last_id": ""}
    while page["has_more"]:
        page = ask(f"/v1/models?limit=2&after_id={page['last_id']}")
        paged_names += [model["id"] for model in page["data"]]
    assert paged_names == names
    page = ask(f"/v1/models?limit=2&before_id={names[3]}")
    assert ([model["id"] for model in page["data"]], page["has_more"]) == (names[1:3], True)


@pytest.mark.parametrize(
    ("query", "names", "has_more"),
    [
        ({}, "abcde", False),
        ({"limit": "2"}, "ab", True),
        ({"limit": "2", "after_id": "b"}, "cd", True),
        ({"limit": "2", "after_id": "c"}, "de", False),
        ({"limit": "2", "after_id": "unknown"}, "ab", True),
        ({"limit": "2", "before_id": "d"}, "bc", True),
        ({"limit": "3", "before_id": "d"}, "abc", False),
        ({"limit": "2", "after_id": "e"}, "", False),
        ({"limit": "-2"}, "abcde", False),
    ],
)
def test_model_list_is_paged_by_after_id_and_before_id(query: dict[str, str], names: str, has_more: bool):
    page = write_page([{"id": name} for name in "abcde"], query)
    assert ("".join(model["id"] for model in page["data"]), page["has_more"]) == (names, has_more)


def test_file_is_uploaded_listed_downloaded_and_deleted(key):
    file = upload(key).json()
    assert file["object"] == "file"
    assert file["id"].startswith("artifact:")
    assert (file["bytes"], file["purpose"], file["kind"]) == (len(PNG), "vision", "image")
    assert [entry["id"] for entry in get(key, "/v1/files").json()["data"]] == [file["id"]]
    assert get(key, f"/v1/files/{file['id']}").json() == file
    response = get(key, f"/v1/files/{file['id']}/content")
    assert b"".join(response.streaming_content) == PNG
    assert response.headers["Content-Type"] == "image/png"
    assert get(key, f"/v1/files/{file['id']}", "delete").json()["deleted"] is True
    assert get(key, f"/v1/files/{file['id']}").status_code == 404


@pytest.mark.parametrize("charset", ["utf-8", "gbk", "nonsense"])
def test_charset_parameter_does_not_change_the_type_of_a_file(key, charset):
    text = "测试文件".encode("gbk" if charset == "gbk" else "utf-8")
    file = upload(key, text, "notes.txt", f"text/plain; charset={charset}").json()
    assert (file["kind"], file["mime_type"]) == ("text", "text/plain")


def test_shared_file_is_readable_by_other_agents_but_deletable_only_by_its_owner(key):
    file, other_key = upload(key).json(), create_key("vision-agent")
    assert get(other_key, f"/v1/files/{file['id']}").status_code == 200
    assert get(other_key, "/v1/files").json()["data"] == []
    assert get(other_key, f"/v1/files/{file['id']}", "delete").status_code == 404
    Artifact.objects.update(visibility="private")
    assert get(other_key, f"/v1/files/{file['id']}").status_code == 404
    part = {"type": "file", "file": {"file_id": file["id"]}}
    refused = post(other_key, chat_body(part))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "messages[0].content[0].file.file_id")


def test_files_are_listed_in_pages(key):
    uploaded = {upload(key, PNG + bytes([number]), f"{number}.png").json()["id"] for number in range(5)}
    listed, after = [], ""
    while True:
        page = get(key, f"/v1/files?limit=2{after}").json()
        listed += [file["id"] for file in page["data"]]
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert (len(listed), set(listed)) == (5, uploaded)
    assert get(key, "/v1/files?limit=0").status_code == 400


@pytest.mark.parametrize(
    ("path", "suggestion"),
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
def test_similar_url_is_404_and_suggests_the_right_url(key, path, suggestion):
    response = post(key, chat_body("hello"), path)
    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/json"
    assert suggestion in response.json()["error"]["message"]
    assert (response.json().get("type") == "error") == ("/messages" in path)


def test_keys_and_scopes_are_checked_and_session_cookies_are_ignored(key, admin):
    reader = create_key("text-agent", scopes=["registry:read"])
    for sent_key, status in (("", 401), ("ra_wrong", 401), (reader, 403)):
        for response in (post(sent_key, chat_body("hello")), get(sent_key, "/v1/models"), upload(sent_key)):
            assert response.status_code == status
            assert response.json()["error"]["request_id"] == response.headers["x-request-id"]
    assert admin.get("/v1/models").status_code == 401
    assert Client().get("/v1/models", headers={"x-api-key": key}).status_code == 200


def test_wrong_method_is_405_in_openais_error_format(key):
    response = get(key, "/v1/chat/completions")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


def test_upload_without_a_file_is_400(key):
    for body, kind in ((b"x", "text/plain"), (json.dumps({}), "application/json")):
        response = Client().post("/v1/files", body, content_type=kind, headers={"authorization": f"Bearer {key}"})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "file")
    response = Client().post("/v1/files", {"purpose": "vision"}, headers={"authorization": f"Bearer {key}"})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "file")
