"""Three hundred hostile uploads: each is stored or rejected with a message, and every stored file can be read."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from itertools import cycle
from typing import Any

import pytest
from hostile_files import FAMILIES, HostileFile
from hostile_forms import BOUNDARY, HOSTILE_NAMES, ODD_TYPES, faulty_forms, multipart_form

from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from artifacts.storage.thumbnails import find_thumbnail
from capabilities.actors import SYSTEM
from capabilities.models import Service
from routing_admin.configuration.revisions import ledger
from routing_admin.console.services.actions import save_service
from tests.preloaded import start_reader
from tests.stored_bytes import list_unfinished

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

# Matches a long run of base64 characters. No error message may contain one.
LONG_BASE64 = re.compile(r"[A-Za-z0-9+/=]{400}")
FORMS = dict(faulty_forms())
SERVICES = ("text-model", "vision-model", "multimodal-model")


def error_text(answer: Any) -> str:
    """Return the message of a rejected request.

    Fail if the response is a server error, or if the message contains base64, a traceback or a path.
    """
    text = answer.content.decode()
    assert 400 <= answer.status_code < 500, text[:300]
    assert len(text) < 4000
    assert not LONG_BASE64.search(text)
    assert "Traceback" not in text
    assert "/artifacts/" not in text
    return text


class Uploader:
    """An agent that uploads files and checks what happens to them."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.services = cycle(SERVICES)
        self.downloaded_types: set[str] = set()

    def send(self, body: bytes, path: str = "/api/v1/artifacts") -> Any:
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        return self.agent.client.generic("POST", path, body, kind, headers=self.agent.headers)

    def check_stored_or_refused(self, answer: Any) -> bool:
        """Return whether the file was stored.

        Fail unless the upload was rejected with a message, or `get_artifact` and the preview work. One file of each
        detected type is downloaded, because a download's headers depend only on the file's type and name.
        """
        if answer.status_code != 201:
            return not error_text(answer)
        ref = answer.json()["ref"]
        # Check each file with only one service, in rotation, because the preview creates the content for every service.
        routed = self.agent.artifact(ref, serviceId=next(self.services))
        assert sum(key in routed for key in ("content", "imageUrl", "file")) == 1
        self.check_preview(ref)
        row = Artifact.objects.get(pk=answer.json()["id"])
        find_thumbnail(row)
        if row.mime_type not in self.downloaded_types:
            self.downloaded_types.add(row.mime_type)
            self.check_download(ref)
        return True

    def check_preview(self, ref: str) -> None:
        previewed = self.agent.get(f"/artifacts/{ref}/preview")
        assert previewed.status_code == 200
        assert len(previewed.json()["deliveries"]) >= len(SERVICES)

    def check_download(self, ref: str) -> None:
        raw = self.agent.get(f"/artifacts/{ref}/raw")
        assert (raw.status_code, raw["X-Content-Type-Options"]) == (200, "nosniff")
        assert raw["Content-Disposition"].startswith("attachment")

    def chat_with(self, part: dict[str, Any]) -> None:
        """Send a chat request with the file inline. Fail unless it is answered or rejected with a message."""
        body = {"model": "echo-vision", "messages": [{"role": "user", "content": [part]}]}
        answer = self.agent.client.post(
            "/v1/chat/completions", json.dumps(body), "application/json", headers=self.agent.headers
        )
        if answer.status_code != 200:
            error_text(answer)


@pytest.fixture
def uploader(text_agent: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterable[Uploader]:
    """Return an uploader that uses the demo's content policies, which are enough to test uploads.

    Extraction processes are forked, because starting five hundred of them would take most of the time.
    """
    monkeypatch.setattr("artifacts.extract.process.start_reader", start_reader)
    yield Uploader(text_agent)
    assert list_unfinished(byte_store()) == []
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.fixture
def upload(uploader: Uploader) -> Uploader:
    """Return an uploader whose services extract text from every supported document and convert every image."""
    with ledger.exclusive():  # Load the new configuration now, before the tests use it.
        for row in Service.objects.filter(service_id__in=SERVICES):
            row.policy = "convert+extract"
            save_service(SYSTEM, row)
    return uploader


def inline_part(file: HostileFile, data: bytes) -> dict[str, Any]:
    url = f"data:{file.mime or 'application/octet-stream'};base64,{base64.b64encode(data).decode()}"
    if file.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": file.filename, "file_data": url}}


@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_file_can_be_routed_previewed_and_downloaded(family: str, upload: Uploader) -> None:
    for number, file in enumerate(FAMILIES[family]):
        data = file.make()
        assert upload.check_stored_or_refused(upload.send(multipart_form(file.filename, file.mime, data))), file
        if number % 9 == 0:
            repeated = upload.send(multipart_form(file.filename, file.mime, data), "/v1/files")
            assert repeated.status_code == 200, file
        if number % 4 == 0:
            upload.chat_with(inline_part(file, data))


# Corrections that a file's owner may send, most of them invalid.
CORRECTIONS = (
    *({"mimeType": "text/plain"}, {"mimeType": "image/png"}, {"mimeType": "application/pdf"}, {"encoding": "utf-16"}),
    *({"mimeType": "text/html", "encoding": "gb18030"}, {"mimeType": "application/zip"}, {"mimeType": "video/mp4"}),
    *({"mimeType": "image/jpeg"}, {"encoding": "iso2022_jp"}, {"mimeType": "audio/wav"}, {"mimeType": "image/webp"}),
)


def test_corrected_hostile_file_can_be_read(upload: Uploader) -> None:
    """Only every ninth hostile file is tested."""
    files = [file for family in FAMILIES.values() for file in family][::9]
    for number, file in enumerate(files):
        answer = upload.send(multipart_form(file.filename, file.mime, file.make()))
        body = CORRECTIONS[number % len(CORRECTIONS)]
        fixed = upload.agent.call("PATCH", f"/artifacts/{answer.json()['ref']}", body)
        assert fixed.status_code == 200, file
        assert (fixed.json()["sha256"], upload.check_stored_or_refused(answer)) == (answer.json()["sha256"], True)


def test_hostile_name_is_cleaned_and_never_used_as_a_path(uploader: Uploader) -> None:
    for name in HOSTILE_NAMES:
        answer = uploader.send(multipart_form(name))
        if answer.status_code != 201:
            error_text(answer)
            continue
        uploader.check_preview(answer.json()["ref"])
        uploader.check_download(answer.json()["ref"])
        assert not re.search(r"[/\\\0\r\n]", answer.json()["filename"]), name


def test_file_with_an_invalid_declared_type_is_stored(upload: Uploader) -> None:
    """A form part is rejected if its header exceeds Django's limit."""
    for kind in ODD_TYPES:
        answer = upload.send(multipart_form(kind=kind))
        assert upload.check_stored_or_refused(answer) or len(kind) > 1024, kind[:50]


@pytest.mark.parametrize("fault", FORMS)
@pytest.mark.parametrize("path", ["/api/v1/artifacts", "/v1/files"])
def test_malformed_form_never_causes_a_server_error(fault: str, path: str, uploader: Uploader) -> None:
    answer = uploader.send(FORMS[fault], path)
    if answer.status_code not in (200, 201):
        error_text(answer)


def test_hostile_files_are_all_different() -> None:
    files = {(file.filename, file.mime, file.trick) for family in FAMILIES.values() for file in family}
    assert len(files) >= 250
    assert len({*HOSTILE_NAMES}) + len({*ODD_TYPES}) + len({*FORMS.values()}) >= 100
