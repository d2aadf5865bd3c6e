"""File names from clients are cleaned when they are stored, and are returned as RFC 6266 requires."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.core.filenames import BIDI, DOTFILES, MAX_BYTES, clean_filename, content_disposition

HOSTILE_NAMES = st.text(st.one_of(st.characters(), st.sampled_from('./\\ \0\r\n"%;é' + BIDI)), max_size=300)


@given(HOSTILE_NAMES)
def test_cleaned_filename_is_safe_and_cleaning_is_idempotent(raw: str) -> None:
    """Only known dotfiles may keep their leading dot."""
    name = clean_filename(raw)
    assert clean_filename(name) == name
    assert not set(name) & set("/\\" + BIDI)
    assert all(unicodedata.category(char) not in ("Cc", "Cs") for char in name)
    assert name == name.strip() == name.rstrip(".")
    assert not name.startswith(".") or name[1:].split(".")[0].lower() in DOTFILES
    assert len(name.encode()) <= MAX_BYTES
    assert unicodedata.is_normalized("NFC", name)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\报告.pdf", "报告.pdf"),
        ("...hidden. ", "hidden"),
        (".env", ".env"),
        ("src/.gitignore", ".gitignore"),
        ("..env", "env"),
        (". env", "env"),
        (".env.local", ".env.local"),
        (".hidden", "hidden"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("console.txt", "console.txt"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("a\r\nSet-Cookie: x", "aSet-Cookie: x"),
        ("e\u0301.txt", "é.txt"),
        ("/", ""),
        (None, ""),
    ],
)
def test_filename_is_cleaned(raw: str | None, name: str) -> None:
    assert clean_filename(raw) == name


def test_long_filename_is_truncated_between_characters_and_keeps_its_extension() -> None:
    name = clean_filename("报" * 200 + ".pdf")
    assert name.endswith("报.pdf")
    assert len(name.encode()) in (253, 254, 255)
    assert clean_filename("", "artifact") == "artifact"


@given(HOSTILE_NAMES, st.sampled_from(["attachment", "inline"]))
def test_filename_cannot_break_or_forge_a_content_disposition_header(raw: str, disposition: str) -> None:
    name, header = clean_filename(raw), content_disposition(raw, disposition)
    assert header.isascii()
    assert header.isprintable()
    plain = re.search(r'filename="([^"\\]*)"', header)
    extended = re.search(r"filename\*=UTF-8''(\S+)$", header)
    assert header.startswith(disposition)
    if name:
        assert plain
        assert (unquote(extended[1]) if extended else plain[1]) == name
    else:
        assert header == disposition


def test_ascii_filename_has_no_extended_form_in_the_header() -> None:
    """A name with other characters has an extended form in the header, and a simplified form for old clients."""
    assert content_disposition("a b.txt") == 'attachment; filename="a b.txt"'
    assert content_disposition("é.txt") == "attachment; filename=\"e_.txt\"; filename*=UTF-8''%C3%A9.txt"
