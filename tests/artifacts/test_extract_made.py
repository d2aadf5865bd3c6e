"""Text is extracted from files written by LibreOffice and other programs."""

from __future__ import annotations

import pytest
from samples import SAMPLES

# Maps a file name to a word in the file's text.
WORDS = {
    "plain.doc": "你好",
    "letter.dot": "你好",
    "letter.docm": "你好",
    "letter.dotx": "你好",
    "letter.ott": "你好",
    "office.odt": "你好",
    "office.rtf": "你好",
    "letter.epub": "你好",
    "ebooklib.epub": "Hello",
    "office.xls": "banana",
    "sums.xlsm": "banana",
    "sums.xltx": "banana",
    "sums.ots": "banana",
    "xlwt.xls": "apple",
    "openpyxl.xlsx": "apple",
    "talk.otp": "你好",
    "talk.potx": "你好",
    "talk.ppsx": "你好",
    "ghostscript.pdf": "Hello",
    "files.tar.gz": "a.txt",
    "locked.zip": "a.txt",
}


@pytest.mark.parametrize("name", WORDS)
def test_text_of_a_file_written_by_another_program_is_extracted(name: str, read) -> None:
    sample = next(candidate for candidate in SAMPLES if candidate.name == name)
    extracted = read(sample.data, sample.mime)
    assert extracted is not None
    assert WORDS[name] in extracted.text
