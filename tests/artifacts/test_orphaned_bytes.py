"""Bytes and thumbnails are deleted only if no artifact uses them, and bytes only after an hour."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from django.core.management import call_command
from samples import draw_picture, pdf

from artifacts.extract.process import Result
from artifacts.library import delete_artifacts, store_bytes
from artifacts.storage.content import byte_store, stored_pages
from artifacts.storage.files import FileStore
from artifacts.storage.thumbnails import find_thumbnail
from artifacts.storage.uploads import GRACE_SECONDS, sweep_bytes, sweep_thumbnails
from capabilities.actors import SYSTEM
from routing_admin.models import AuditEvent
from tests.stored_bytes import age

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]
ORPHAN = b"bytes that have no row"


@pytest.fixture(autouse=True)
def _own_directory(settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def store_aged(seconds: float, data: bytes = ORPHAN) -> str:
    stored = byte_store().put([data])
    age(byte_store(), stored.sha256, seconds)
    return stored.sha256


def test_bytes_without_an_artifact_are_deleted_after_an_hour() -> None:
    """An upload writes its database row after its bytes, and a deleted artifact can be restored."""
    old, young = store_aged(GRACE_SECONDS + 60), store_aged(GRACE_SECONDS - 60, b"young")
    living, deleted = store_bytes(SYSTEM, b"living"), store_bytes(SYSTEM, b"deleted")
    delete_artifacts(SYSTEM, [deleted.pk])
    for row in (living, deleted):
        store_aged(GRACE_SECONDS + 60, b"living" if row is living else b"deleted")
    assert sweep_bytes(time.time()) == (1, len(ORPHAN))
    exists = {sha256: byte_store().exists(sha256) for sha256 in (old, young, living.sha256, deleted.sha256)}
    assert exists == {old: False, young: True, living.sha256: True, deleted.sha256: True}
    assert sweep_bytes(time.time()) == (0, 0)


def test_storing_equal_bytes_again_resets_their_age() -> None:
    """An upload of equal bytes writes its database row after the bytes, which a cleanup must not delete until then."""
    sha256 = store_aged(GRACE_SECONDS + 60)
    byte_store().put([ORPHAN])
    assert sweep_bytes(time.time()) == (0, 0)
    byte_store().verify(sha256)


def test_bytes_stored_again_need_no_second_verification(tmp_path: Path) -> None:
    """Storing bytes also updates the cache of verified files."""
    store = FileStore(tmp_path / "own")
    sha256 = store.put([ORPHAN]).sha256
    store.put([ORPHAN])
    assert store.is_remembered(sha256)


def test_thumbnail_is_removed_with_its_bytes(tmp_path: Path) -> None:
    row, other_row = (
        store_bytes(SYSTEM, draw_picture("PNG"), filename="a.png", declared="image/png") for _ in range(2)
    )
    assert find_thumbnail(row)
    assert find_thumbnail(other_row)
    byte_store().delete(row.sha256)
    assert sweep_thumbnails() == 1
    thumbnails = (tmp_path / "thumbnails").glob("??/*.png")
    assert [path.stem for path in thumbnails] == [other_row.sha256]


def test_rendered_pages_are_removed_with_their_bytes() -> None:
    row = store_bytes(SYSTEM, pdf("a"), filename="a.pdf", declared="application/pdf")
    key = (row.sha256, "pages", "{}")
    stored_pages().keep(key, Result({"bytes": 1}, b"x"))
    assert sweep_thumbnails() == 0
    assert stored_pages().find(key) is not None
    byte_store().delete(row.sha256)
    assert sweep_thumbnails() == 1
    assert stored_pages().find(key) is None


def test_prune_removes_orphans_and_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    store_aged(GRACE_SECONDS + 60)
    call_command("prune")
    assert "1 orphaned file" in capsys.readouterr().out
    details = AuditEvent.objects.get(action="installation.prune").details
    assert (details["forgotten"], details["bytes"]) == (1, len(ORPHAN))
