"""Storing, deleting and restoring artifacts, and the command that imports a directory."""

from __future__ import annotations

import base64
import os
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from api_samples import BINARY, pdf, png
from django.core.handlers.asgi import ASGIRequest
from django.core.management import CommandError, call_command
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from artifacts import library as actions
from artifacts.core.errors import StorageFullError, TooLargeError
from artifacts.models import Artifact
from artifacts.storage.content import RowStore, build_file_part, byte_store, open_artifact
from artifacts.storage.uploads import StoringUploadHandler, UploadFailedError, received_files
from capabilities.actors import SYSTEM
from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.model_endpoint import prepare
from capabilities.errors import InvalidError
from capabilities.models import Service
from routing_admin.configuration import snapshot
from routing_admin.console.services.actions import save_service
from routing_admin.dispatch.model_endpoints import default_language, list_endpoints, list_readers
from routing_admin.dispatch.preview import lead_by_default, preview, request_for
from routing_admin.models import AuditEvent, Installation

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


def test_resent_media_reuse_the_existing_artifact(demo: None) -> None:
    """Artifacts that are deleted or belong to another owner are never reused."""
    first = actions.store_bytes(SYSTEM, png(), once=True, owner="text-agent", filename="a.png")
    repeated = actions.store_bytes(SYSTEM, png(), once=True, owner="text-agent", filename="b.png")
    of_other_owner = actions.store_bytes(SYSTEM, png(), once=True, owner="vision-agent")
    assert first.pk == repeated.pk != of_other_owner.pk
    actions.delete_artifacts(SYSTEM, [first.pk])
    assert actions.store_bytes(SYSTEM, png(), once=True, owner="text-agent").pk != first.pk


def test_deletion_can_be_undone_and_both_are_audited(demo: None) -> None:
    row = actions.store_text(SYSTEM, "words", owner="text-agent", filename="a.md")
    assert actions.delete_artifacts(SYSTEM, [row.pk, "nothing"]) == [row.pk]
    assert actions.delete_artifacts(SYSTEM, [row.pk]) == []
    assert RowStore("text-agent").get_artifact(row.ref) is None
    assert actions.restore_artifacts(SYSTEM, [row.pk]) == [row.pk]
    artifact = RowStore("text-agent").get_artifact(row.ref)
    assert artifact is not None
    assert artifact.content is not None
    text = artifact.content.text()
    assert text is not None
    assert text.text == "words"
    acts = list(AuditEvent.objects.filter(object_kind="artifact").values_list("action", flat=True))
    assert acts == ["artifact.restore", "artifact.delete", "artifact.store"]


def test_quota_and_expiry_of_artifacts_follow_the_installations_settings(demo: None) -> None:
    Installation.objects.update_or_create(id=1, defaults={"quota_bytes": 100, "artifact_days": 3})
    row = actions.store_bytes(SYSTEM, b"x" * 80)
    assert row.expires_at is not None
    assert (row.expires_at - row.created_at).days in (2, 3)
    with pytest.raises(StorageFullError):
        actions.store_bytes(SYSTEM, b"y" * 30)
    assert Artifact.objects.count() == 1


@pytest.mark.parametrize(
    "fields", [{"visibility": "all"}, {"expires_in": 0}, {"expires_in": float("nan")}, {"type": "x" * 101}]
)
def test_invalid_field_is_rejected_before_anything_is_stored(fields: Any, demo: None) -> None:
    with pytest.raises(InvalidError):
        actions.store_bytes(SYSTEM, b"words", **fields)
    assert not Artifact.objects.exists()


def test_stream_over_the_limit_is_rejected_while_it_is_read(demo: None) -> None:
    with pytest.raises(TooLargeError):
        actions.store_blocks(SYSTEM, (b"x" * 10 for _ in range(11)), max_bytes=100)
    assert not Artifact.objects.exists()


def test_pixel_size_of_images_and_page_count_of_documents_are_measured(demo: None) -> None:
    """A document's pages are counted in the separate extraction process."""
    image = build_file_part(actions.store_bytes(SYSTEM, png(30, 20), declared="image/png"))
    document = build_file_part(actions.store_bytes(SYSTEM, pdf(), declared="application/pdf"))
    assert (image.width, image.height) == (30, 20)
    assert document.pages == 1


@pytest.mark.requirement("ABR-6.1", "ABR-6.2")
@pytest.mark.parametrize(
    "data", [png(), pdf(), BINARY, b"plain words", b""], ids=["png", "pdf", "bin", "text", "empty"]
)
def test_preview_equals_the_prepared_request(data: bytes, demo: None) -> None:
    row = actions.store_bytes(SYSTEM, data, filename="file")
    deliveries = {delivery.service_id: delivery for delivery in preview(row).deliveries}
    chat = lead_by_default(snapshot.current(), request_for(open_artifact(row)), None)
    encoded = base64.b64encode(data).decode()
    for endpoint in list_endpoints(snapshot.current()).values():
        prepared = prepare(
            chat, endpoint, text_style_for(chat, default_language(), partial(list_readers, snapshot.current()))
        )
        assert not isinstance(prepared, CannotRead)
        row_shown = deliveries[endpoint.name]
        assert row_shown.payload == prepared.request.elide()
        assert row_shown.bytes == prepared.request.content_length
        assert row_shown.outcome == prepared.deliveries[0].delivery.outcome
        if len(data) >= 16:
            assert encoded[:22] not in str(row_shown.as_json())


def test_preview_of_a_skipped_service_has_the_reason(demo: None) -> None:
    row = Service.objects.get(service_id="text-model")
    row.content = {"policy": "native_only"}
    save_service(SYSTEM, row)
    deliveries = {delivery.service_id: delivery for delivery in preview(actions.store_bytes(SYSTEM, png())).deliveries}
    refused = deliveries["text-model"]
    assert (refused.outcome, refused.payload, refused.bytes, refused.estimate) == (Outcome.REFUSED, None, 0, None)
    assert "vision" in refused.reason.sentence()
    assert deliveries["vision-model"].payload is not None


PAGE = b"<!doctype html><html><head><title>Sum</title></head><body><p>42</p><script>hide()</script></body></html>"


def test_web_page_is_extracted_only_under_the_extract_policy(demo: None) -> None:
    for service, policy in (("text-model", "extract"), ("vision-model", "describe")):
        row = Service.objects.get(service_id=service)
        row.content = {"policy": policy}
        save_service(SYSTEM, row)
    page = actions.store_bytes(SYSTEM, PAGE, filename="page.html", declared="text/html")
    deliveries = {delivery.service_id: delivery for delivery in preview(page).deliveries}
    extracted, source = deliveries["text-model"], deliveries["vision-model"]
    assert (extracted.outcome, source.outcome) == (Outcome.EXTRACTED, Outcome.INLINED)
    assert (extracted.text or "").splitlines()[-2:] == ["Sum", "42"]
    assert "hide()" in (source.text or "")
    endpoint = list_endpoints(snapshot.current()).get("text-model")
    assert endpoint is not None
    chat = lead_by_default(snapshot.current(), request_for(open_artifact(page)), None)
    prepared = prepare(
        chat, endpoint, text_style_for(chat, default_language(), partial(list_readers, snapshot.current()))
    )
    assert not isinstance(prepared, CannotRead)
    assert extracted.payload == prepared.request.elide()


class TestAnyText(TestCase):
    """Properties of any text. Each Hypothesis example has its own transaction."""

    databases = {"default", "logs"}

    def setUp(self) -> None:
        snapshot.refresh()

    @pytest.mark.requirement("ABR-P1", "ABR-INV2")
    @given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
    def test_any_stored_text_is_read_back_unchanged(self, text: str) -> None:
        row = actions.store_text(SYSTEM, text, filename="any.bin")
        content = open_artifact(row).content
        assert content is not None
        decoded = content.text()
        assert decoded is not None
        assert (row.kind, row.is_binary, decoded.text) == ("text", False, text)


def test_chunked_upload_of_unknown_length_is_stored_completely(demo: None) -> None:
    """With `Transfer-Encoding: chunked`, no Content-Length is needed if the server can measure the body."""
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\nwords\r\n--edge--\r\n"
    )
    headers = [(b"content-type", b"multipart/form-data; boundary=edge"), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    request = ASGIRequest(scope, BytesIO(form))
    request.upload_handlers = [StoringUploadHandler(request)]
    (file,) = received_files(request)
    row = actions.store_upload(SYSTEM, file)
    assert (row.filename, row.size) == ("a.txt", 5)
    unmeasured = RequestFactory().post("/", HTTP_TRANSFER_ENCODING="chunked", CONTENT_LENGTH="")
    with pytest.raises(UploadFailedError, match="Content-Length"):
        received_files(unmeasured)


def test_file_with_a_name_that_is_not_valid_utf_8_is_imported(demo: None, tmp_path: Path) -> None:
    for name in (b"\xff\xfe.txt", b".hidden", b"line\nbreak.txt", b"empty"):
        (tmp_path / os.fsdecode(name)).write_bytes(b"" if name == b"empty" else b"words of " + name.hex().encode())
    lines = imported(str(tmp_path))
    assert Artifact.objects.count() == 4
    assert len(lines) == 4
    "\n".join(lines).encode()
    assert imported(str(tmp_path)) == []


def imported(*arguments: str) -> list[str]:
    output = StringIO()
    call_command("import_artifacts", *arguments, stdout=output)
    return output.getvalue().splitlines()


def test_second_import_of_a_directory_adds_only_changed_files(demo: None, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "photo.png").write_bytes(png())
    (tmp_path / "deep" / "报告.txt").write_text("收入增长")
    (tmp_path / "link.txt").symlink_to(__file__)
    first = imported(str(tmp_path), "--owner", "text-agent")
    assert len(first) == 2
    assert first[0].startswith("artifact:")
    assert imported(str(tmp_path), "--owner", "text-agent") == []
    assert set(Artifact.objects.values_list("owner", "filename", "kind")) == {
        ("text-agent", "photo.png", "image"),
        ("text-agent", "报告.txt", "text"),
    }
    (tmp_path / "deep" / "报告.txt").write_text("收入下降")
    assert len(imported(str(tmp_path), "--owner", "text-agent")) == 1


def test_file_that_cannot_be_stored_is_named_and_the_others_are_stored(demo: None, tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(b"x" * 200)
    (tmp_path / "small.txt").write_text("words")
    with override_settings(MAX_UPLOAD_BYTES=100), pytest.raises(CommandError, match=r"^big.bin: .*100 bytes"):
        imported(str(tmp_path))
    assert [row.filename for row in Artifact.objects.all()] == ["small.txt"]
    with pytest.raises(CommandError, match="is not a directory"):
        imported(str(tmp_path / "nowhere"))
    with pytest.raises(CommandError, match="no agent unknown"):
        imported(str(tmp_path), "--owner", "unknown")


def test_byte_store_is_shared_per_directory() -> None:
    """Sharing matters because the store object remembers which files have been verified."""
    assert byte_store() is byte_store()
