"""An archive's text is a list of names, sizes and dates. Nothing is unpacked."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import build_tar, build_zip

from artifacts.extract import extract_text
from artifacts.extract.documents import answer
from artifacts.extract.reading import RefusedError
from capabilities.core.message import Text

ZIP, TAR, GZIP = "application/zip", "application/x-tar", "application/gzip"


@pytest.fixture
def read(tmp_path: Path):
    def read(data: bytes, mime: str, **options: int) -> Text | None:
        path = tmp_path / "file"
        path.write_bytes(data)
        return extract_text(path, mime, **options)

    return read


def test_zip_is_listed_by_names_sizes_and_dates(read) -> None:
    lines = "- a/计划.txt (5 bytes, 1980-01-01)\n- b.bin (9 bytes, 1980-01-01)"
    assert read(build_zip({"a/计划.txt": b"hello", "b.bin": bytes(9)}), ZIP) == Text(
        f"[archive: 2 entries, 14 bytes unpacked]\n{lines}", "zip"
    )


def test_gbk_names_in_a_zip_are_recognized(read) -> None:
    """Chinese versions of Windows write file names in GBK without a flag."""
    data = build_zip({"AAAA季度工作计划与总结报告.txt".replace("季度工作计划与总结报告", "B" * 22): b""})
    data = data.replace(b"B" * 22, "季度工作计划与总结报告".encode("gbk"))
    assert "- AAAA季度工作计划与总结报告.txt (0 bytes, " in read(data, ZIP).text


def test_tar_is_listed_with_or_without_compression(read) -> None:
    tar = build_tar("notes/a.txt", b"hello")
    listing = "[archive]\n- notes/a.txt (5 bytes, 1970-01-01)"
    assert read(tar, TAR) == Text(listing, "tar")
    assert read(gzip.compress(tar), GZIP) == Text(listing, "tar")
    assert read(gzip.compress(b"hello" * 999), GZIP) is None


def many_entries() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for number in range(6_000):
            package.writestr(f"{number}", b"")
    return buffer.getvalue()


def test_archive_listing_is_truncated_with_a_note_after_5000_names(read) -> None:
    extracted = read(many_entries(), ZIP)
    assert extracted.text.startswith("[archive: 6000 entries,")
    assert extracted.text.endswith("(the first 5000 of more)")


def gzip_bomb() -> bytes:
    head = tarfile.TarInfo("a")
    head.size = 600 << 20
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as packed:
        packed.write(head.tobuf())
        for _ in range(600):
            packed.write(bytes(1 << 20))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "mime"),
    [(gzip_bomb, GZIP), (b"PK\x05\x06" + b"\xff" * 18, ZIP), (b"\xff" * 5000, TAR), (b"\x1f\x8b\x08", GZIP)],
    ids=["bomb", "wild directory", "no tar", "cut"],
)
def test_bomb_or_damaged_archive_yields_none(read, data: bytes | Callable[[], bytes], mime: str) -> None:
    assert read(data if isinstance(data, bytes) else data(), mime) is None


class CountingFile(io.BytesIO):
    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def test_tar_entry_with_a_huge_declared_size_causes_few_reads() -> None:
    """An archive of a few kilobytes may declare that one of its entries is a terabyte long."""
    head = tarfile.TarInfo("a")
    head.size = 1 << 40
    source = CountingFile(head.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(RefusedError, match="no_text"):
        answer(source, {"reader": "tar", "max_chars": 1000})
    assert source.reads < 50
