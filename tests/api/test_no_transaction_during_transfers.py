"""No database transaction is open while bytes are transferred to or from the artifact store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from api_samples import png
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from artifacts.models import Artifact
from artifacts.storage.bucket_client import BucketClient
from artifacts.storage.content import byte_store
from tests.engines.s3 import s3_server
from tests.stored_bytes import age

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)


@pytest.fixture
def calls(settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record, for each call to the bucket, whether the calling thread was in a transaction."""
    settings.ARTIFACTS_BUCKET, settings.DATA_DIR = s3_server().new_prefix(), tmp_path
    in_transaction, call = list[bool](), BucketClient.translate_errors

    @contextmanager
    def noted(self: BucketClient) -> Iterator[None]:
        in_transaction.append(
            any(open_connection.in_atomic_block for open_connection in connections.all(initialized_only=True))
        )
        with call(self):
            yield

    monkeypatch.setattr(BucketClient, "translate_errors", noted)
    return in_transaction


def test_no_database_transaction_is_open_during_a_store_transfer(
    calls: list[bool], admin: Client, text_agent: Any
) -> None:
    """Transfers are started by both APIs, by the pages, and by `prune`, which deletes artifacts and orphaned bytes."""
    agent, headers = text_agent.client, text_agent.headers
    row = Artifact.objects.get(pk=text_agent.upload("a.png", png()).json()["id"])
    text_agent.upload("large.bin", b"x" * 11_000_000)
    words = {"text": "words", "filename": "b.txt"}
    assert agent.post("/api/v1/artifacts", words, "application/json", headers=headers).status_code == 201
    file = {"file": SimpleUploadedFile("b.txt", b"file"), "purpose": "user_data"}
    assert agent.post("/v1/files", file, headers=headers).status_code == 200
    for address in ("/raw", "", "/preview"):
        answer = agent.get(f"/api/v1/artifacts/{row.ref}{address}", headers=headers)
        assert answer.status_code == 200
        b"".join(answer) if answer.streaming else answer.content
    content = [{"type": "file", "file": {"file_id": row.ref}}]
    body = json.dumps({"model": "echo-vision", "messages": [{"role": "user", "content": content}]})
    assert agent.post("/v1/chat/completions", body, "application/json", headers=headers).status_code == 200
    correction = {"mimeType": "text/plain"}
    path = f"/api/v1/artifacts/{row.ref}"
    assert agent.patch(path, correction, "application/json", headers=headers).status_code == 200
    assert admin.get(reverse("artifact", args=[row.pk])).status_code == 200
    upload = {"file": SimpleUploadedFile("c.txt", b"page")}
    assert admin.post(reverse("artifact_upload"), upload).status_code in (200, 302)
    Artifact.objects.filter(pk=row.pk).update(deleted_at=timezone.now() - timedelta(days=2))
    forgotten = byte_store().put([b"forgotten"])
    age(byte_store(), forgotten.sha256, 7200)
    call_command("prune")
    assert not byte_store().exists(row.sha256)
    assert not byte_store().exists(forgotten.sha256)
    assert calls
    assert not any(calls)
