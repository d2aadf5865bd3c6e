"""While the artifact store is unavailable, calls that need it return 503 with Retry-After. All other calls work."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from typing import Any

import pytest
from api_samples import png
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from artifacts.core.bucket import Bucket
from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM
from routing_admin.models import RequestLog, Revision
from routing_admin.platform.server.store_monitor import StoreMonitor
from routing_admin.request_log.journal import journal
from tests.engines.s3 import S3Server, s3_server

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture(autouse=True)
def s3() -> S3Server:
    """Start an S3 server and put its credentials into this process's environment."""
    return s3_server()


@pytest.fixture
def row(text_agent: Any) -> Artifact:
    return store_bytes(SYSTEM, png(), owner="text-agent", filename="a.png", declared="image/png")


@pytest.fixture
def silent_store(row: Artifact, settings: Any) -> str:
    """Move the artifact store to a bucket on a server that does not respond, and return its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings.ARTIFACTS_BUCKET = Bucket(name="files", endpoint=address, allows_http=True)
    return address


def is_store_unavailable(answer: Any, address: str) -> bool:
    answer_body = json.loads(answer.content)
    message = answer_body["error"]["message"] if isinstance(answer_body["error"], dict) else answer_body["message"]
    assert (answer.status_code, answer["Retry-After"]) == (503, "2"), answer.content
    assert "artifact store is not responding" in message
    return address not in answer.content.decode() and "files" not in message


def test_upload_is_rejected_on_both_apis_and_leaves_no_row(text_agent: Any, silent_store: str) -> None:
    before = Artifact.objects.count()
    assert is_store_unavailable(text_agent.upload("b.txt", b"words"), silent_store)
    upload = {"text": "words", "filename": "b.txt"}
    answer = text_agent.client.post(
        "/api/v1/artifacts", json.dumps(upload), "application/json", headers=text_agent.headers
    )
    assert is_store_unavailable(answer, silent_store)
    file = {"file": SimpleUploadedFile("b.txt", b"words"), "purpose": "user_data"}
    assert is_store_unavailable(text_agent.client.post("/v1/files", file, headers=text_agent.headers), silent_store)
    assert Artifact.objects.count() == before


@pytest.mark.parametrize("address", ["/api/v1/artifacts/{}/raw", "/api/v1/artifacts/{}", "/v1/files/{}/content"])
def test_file_in_an_unavailable_store_is_not_reported_as_missing(
    text_agent: Any, row: Artifact, silent_store: str, address: str
) -> None:
    """A response with status 410 would make programs discard their reference to the file."""
    answer = text_agent.client.get(address.format(row.ref), headers=text_agent.headers)
    assert is_store_unavailable(answer, silent_store)


def test_call_with_a_file_fails_and_is_logged_while_others_succeed(
    text_agent: Any, row: Artifact, silent_store: str
) -> None:
    content: list[dict[str, Any]] = [{"type": "file", "file": {"file_id": row.ref}}]
    body = {"model": "echo-vision", "messages": [{"role": "user", "content": content}]}
    options = {"content_type": "application/json", "headers": text_agent.headers}
    assert is_store_unavailable(
        text_agent.client.post("/v1/chat/completions", json.dumps(body), **options), silent_store
    )
    body["messages"] = [{"role": "user", "content": "words"}]
    assert text_agent.client.post("/v1/chat/completions", json.dumps(body), **options).status_code == 200
    journal().flush()
    assert sorted(RequestLog.objects.values_list("outcome", "status")) == [("ok", 200), ("unavailable", 503)]


def test_pages_that_need_the_store_return_503_and_the_library_works(
    admin: Client, row: Artifact, silent_store: str
) -> None:
    admin.raise_request_exception = False
    for name in ("artifact", "artifact_raw"):
        answer = admin.get(reverse(name, args=[row.pk]))
        text = answer.content.decode()
        assert (answer.status_code, answer["Retry-After"]) == (503, "2")
        assert "Artifact store unavailable" in text
        assert f"s3://files at {silent_store}" in text
    answer = admin.post(
        reverse("artifact_upload"), {"file": SimpleUploadedFile("b.txt", b"x")}, headers={"accept": "application/json"}
    )
    assert answer.status_code == 503
    assert f"s3://files at {silent_store} is not responding" in answer.json()["message"]
    assert admin.get(reverse("artifacts")).status_code == 200


def test_doctor_names_the_url_of_the_unavailable_store(
    row: Artifact, silent_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        call_command("doctor")
    output = capsys.readouterr()
    assert "bad  artifact store" in output.out
    assert f"artifacts are in: s3://files at {silent_store}" in output.out
    assert f"artifact store: The artifact store s3://files at {silent_store} is not responding." in output.err
    assert "artifacts: cannot be checked: the store is not responding" in output.err


def test_readiness_names_the_unavailable_store(row: Artifact, silent_store: str) -> None:
    """During an outage, requests without files are still served. `?full` reports the outage to monitoring."""
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["degraded"]) == (200, ["artifacts"])
    answer = Client().get("/readyz?full")
    assert (answer.status_code, answer.json()["checks"]["artifacts"]) == (503, "failed")


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
def test_first_start_without_its_store_fails_and_creates_nothing(
    settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.ARTIFACTS_BUCKET = Bucket(name="files", endpoint="http://127.0.0.1:9", allows_http=True)
    with pytest.raises(CommandError, match=r"artifact store s3://files at .* is not responding"):
        call_command("bootstrap")
    assert not Revision.objects.exists()
    # If the start failed only after creating this user, the password would be lost, as it is printed only once.
    assert not User.objects.exists()


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
def test_later_start_without_its_store_warns_and_continues(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests without files can still be answered."""
    call_command("bootstrap")
    settings.ARTIFACTS_BUCKET = Bucket(name="files", endpoint="http://127.0.0.1:9", allows_http=True)
    call_command("bootstrap")
    assert "artifact store s3://files at http://127.0.0.1:9 is not responding" in capsys.readouterr().err


def test_dashboard_shows_since_when_and_why_the_artifact_store_is_unavailable(
    admin: Client, row: Artifact, silent_store: str
) -> None:
    """Once an outage is known, later uses of the artifact store do not have to discover it again."""
    assert "cannot use the artifact store" not in admin.get("/").content.decode()
    StoreMonitor().look()
    page_text = admin.get("/").content.decode()
    assert "this process cannot use the artifact store." in page_text
    assert f"s3://files at {silent_store} is not responding" in page_text


def test_monitor_logs_the_start_and_end_of_an_outage_once(
    settings: Any, caplog: pytest.LogCaptureFixture, s3: S3Server
) -> None:
    """A bucket that is missing from the start counts as an outage."""
    settings.ARTIFACTS_BUCKET, watch = replace(s3.bucket, name="later"), StoreMonitor()
    watch.look()
    outage = byte_store().outage
    watch.look()
    assert outage is not None
    assert byte_store().outage == outage
    s3.make_bucket("later")
    watch.look()
    assert byte_store().outage is None
    first, second = [
        record.getMessage() for record in caplog.records if record.name == "routing_admin.platform.server.store_monitor"
    ]
    assert first.startswith("The bucket s3://later")
    assert second.startswith("the artifact store answers again")
