"""PDF pages are rendered once per size. Images of stored files are cached on disk, up to a limit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from samples import pdf

from artifacts.extract import drawing, extract_text
from artifacts.extract.drawing import draw_pages
from artifacts.extract.process import Result
from artifacts.extract.stored_results import StoredResults
from artifacts.storage.content import stored_pages
from capabilities.core.message import ConvertTo, PageImages
from capabilities.runtime import renew

SHA256 = "7" * 64
JPEG = ConvertTo(("image/jpeg",))
KEY = (SHA256, "pages", "{}")


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    renew()
    path = tmp_path / "scan.pdf"
    path.write_bytes(pdf("a", "b", "c"))
    return path


def pictures(pages: PageImages | None) -> list[bytes]:
    assert pages is not None
    return [b"".join(image.blob.blocks()) for image in pages.images.values()]


def test_pages_of_a_stored_file_are_cached_across_restarts(scan: Path, settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"
    renew()
    drawn = pictures(draw_pages(scan, JPEG, cache_key=SHA256, stored=stored_pages()))
    scan.unlink()
    renew()
    assert pictures(draw_pages(scan, JPEG, cache_key=SHA256, stored=stored_pages())) == drawn


def test_missing_text_of_a_scan_is_cached_across_restarts(tmp_path: Path) -> None:
    path, stored = tmp_path / "scan.pdf", StoredResults(tmp_path / "pages")
    path.write_bytes(pdf("", ""))
    assert extract_text(path, "application/pdf", cache_key=SHA256, stored=stored) is None
    path.write_bytes(pdf("words that the file had before"))
    renew()
    assert extract_text(path, "application/pdf", cache_key=SHA256, stored=stored) is None
    assert extract_text(path, "application/pdf", cache_key="8" * 64, stored=stored) is not None


def test_extracted_text_is_not_cached_on_disk(scan: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    assert extract_text(scan, "application/pdf", cache_key=SHA256, stored=StoredResults(folder)) is not None
    assert not folder.exists()


@pytest.mark.parametrize("is_stored", [True, False])
def test_targets_share_rendered_pages_below_their_size_limits(scan: Path, tmp_path: Path, is_stored: bool) -> None:
    """All models that accept pages of 556 pixels get the same image."""
    stored = StoredResults(tmp_path / "pages") if is_stored else None
    drawn = pictures(draw_pages(scan, JPEG, cache_key=SHA256, stored=stored))
    small = draw_pages(scan, ConvertTo(("image/jpeg",), None, 300), cache_key=SHA256, stored=stored)
    scan.unlink()
    for target in (
        ConvertTo(("image/png", "image/jpeg", "image/webp"), 20_000_000, 5500),
        ConvertTo(("image/jpeg",), None, 600),
    ):
        assert pictures(draw_pages(scan, target, cache_key=SHA256, stored=stored)) == drawn
    assert small is not None
    assert {max(image.width or 0, image.height or 0) for image in small.images.values()} == {300}
    assert draw_pages(scan, ConvertTo(("image/jpeg",), None, 200), cache_key=SHA256, stored=stored) is None


def test_pages_rendered_in_batches_equal_pages_rendered_at_once(scan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw_pages(scan, JPEG)
    monkeypatch.setattr(drawing, "PAGES_AT_ONCE", 2)
    parts = draw_pages(scan, JPEG)
    assert whole is not None
    assert parts is not None
    assert pictures(parts) == pictures(whole)
    assert (list(parts.images), parts.total) == ([1, 2, 3], 3)


def test_pages_over_the_total_image_size_are_omitted(scan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = (len(picture) for picture in pictures(draw_pages(scan, JPEG)))
    monkeypatch.setattr(drawing, "PAGES_AT_ONCE", 1)
    monkeypatch.setattr(drawing, "MAX_IMAGE_BYTES", first + second)
    pages = draw_pages(scan, JPEG)
    assert pages is not None
    assert (list(pages.images), pages.total) == ([1, 2], 3)


def test_least_recently_used_results_are_deleted_first(tmp_path: Path) -> None:
    stored = StoredResults(tmp_path, max_bytes=2500)
    for age, name in ((30, "a"), (20, "b"), (10, "c")):
        stored.keep((name * 64, "pages"), Result({"bytes": 1000}, b"x" * 1000))
        for path in tmp_path.glob(f"??/{name}*"):
            os.utime(path, (path.stat().st_mtime - age,) * 2)
    results = {name: stored.find((name * 64, "pages")) for name in "abc"}
    assert [name for name, result in results.items() if result] == ["b", "c"]


def test_damaged_cached_image_is_not_used(tmp_path: Path) -> None:
    """A crash or a full disk may truncate a cached image."""
    stored = StoredResults(tmp_path)
    stored.keep(KEY, Result({"bytes": 3}, b"abc"))
    assert stored.find(KEY) == Result({"bytes": 3}, b"abc")
    (path,) = tmp_path.glob("??/*.pages")
    path.write_bytes(path.read_bytes()[:-1])
    assert stored.find(KEY) is None


def test_result_is_not_cached_in_an_unwritable_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    stored = StoredResults(tmp_path / "file")
    stored.keep(KEY, Result({"bytes": 3}, b"abc"))
    assert stored.find(KEY) is None


def test_cached_pages_are_stored_with_the_thumbnails(settings, tmp_path: Path) -> None:
    """Cached pages are therefore deleted with their file, omitted from backups, and removed when the disk is full."""
    settings.DATA_DIR = tmp_path
    renew()
    stored_pages().keep(KEY, Result({"bytes": 3}, b"abc"))
    assert [path.parent for path in tmp_path.rglob("*.pages")] == [tmp_path / "thumbnails" / "77"]
