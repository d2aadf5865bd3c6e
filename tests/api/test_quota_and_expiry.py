"""If the artifact store is full, an upload returns 507 and says what to do. No call can use an expired artifact."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from api_samples import png
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from routing_admin.models import Installation

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


@pytest.fixture
def quota(demo: None) -> int:
    Installation.objects.update_or_create(id=1, defaults={"quota_bytes": 100})
    return 100


def call_openai(agent: Any, method: str, path: str, **options: Any) -> Any:
    return getattr(Client(), method)(f"/v1/files{path}", headers=agent.headers, **options)


def test_upload_over_the_quota_returns_507_with_a_remedy(quota: int, text_agent: Any) -> None:
    text_agent.stored("first.txt", b"x" * 80, "text/plain")
    file = SimpleUploadedFile("third.txt", b"z" * 30)
    answers = {
        "file": text_agent.upload("second.txt", b"y" * 30, "text/plain").json(),
        "words": text_agent.post("/artifacts", {"text": "w" * 30, "filename": "a.txt"}).json(),
        "openai": call_openai(text_agent, "post", "", data={"purpose": "user_data", "file": file}).json()["error"],
    }
    for answer in answers.values():
        assert "storage_full" in (answer.get("code"), answer.get("error"))
        for text in ("80 bytes of the quota of 100", "Raise the quota", "delete artifacts", "prune"):
            assert text in answer["message"]
    assert text_agent.upload("second.txt", b"y" * 30, "text/plain").status_code == 507
    assert text_agent.upload("second.txt", b"y" * 20, "text/plain").status_code == 201
    assert Artifact.objects.count() == 2


def test_full_store_accepts_a_file_that_is_already_stored(quota: int, text_agent: Any) -> None:
    text_agent.stored("first.txt", b"x" * 100, "text/plain")
    assert text_agent.upload("again.txt", b"x" * 100, "text/plain").status_code == 201
    assert text_agent.upload("other.txt", b"y", "text/plain").status_code == 507


def test_rejected_upload_leaves_no_bytes(quota: int, text_agent: Any) -> None:
    before = set(byte_store().digests())
    text_agent.upload("large.txt", b"never kept before " * 10, "text/plain")
    assert set(byte_store().digests()) == before


def test_expired_artifact_is_missing_in_every_call(text_agent: Any, vision_agent: Any) -> None:
    created = text_agent.stored("a.png", png(), "image/png", expiresInSeconds="60")
    ref = created["ref"]
    Artifact.objects.filter(pk=created["id"]).update(expires_at=timezone.now() - timedelta(milliseconds=1))
    for agent in (text_agent, vision_agent):
        for path in ("", "/raw", "/info", "/preview"):
            response = agent.get(f"/artifacts/{ref}{path}")
            assert (path, response.status_code, response.json()["error"]) == (path, 404, "artifact_not_found")
        assert agent.call("DELETE", f"/artifacts/{ref}").status_code == 404
        assert agent.get("/artifacts").json()["artifacts"] == []
        assert agent.get("/artifacts", q=created["id"]).json()["artifacts"] == []
        for method, path in (("get", f"/{ref}"), ("get", f"/{ref}/content"), ("delete", f"/{ref}")):
            assert call_openai(agent, method, path).status_code == 404
        assert call_openai(agent, "get", "").json()["data"] == []
    message = {"text": "", "attachments": [{"type": "image", "artifactRef": ref}]}
    answer = vision_agent.post("/messages/route", {"message": message}).json()
    assert "base64" not in str(answer["processedContent"])
    parts = [{"type": "image_url", "image_url": {"url": ref}}]
    body = {"model": "auto", "messages": [{"role": "user", "content": parts}]}
    response = Client().post(
        "/v1/chat/completions", body, content_type="application/json", headers=vision_agent.headers
    )
    assert response.status_code == 200
    assert "[文件处理失败: a.png]" in response.json()["choices"][0]["message"]["content"]
