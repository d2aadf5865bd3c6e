"""The table in docs/files.md is up to date with the code."""

from __future__ import annotations

import pytest

from tests.artifacts.format_document import DOCUMENT, insert_table, table


def test_format_table_in_the_docs_is_up_to_date() -> None:
    """`python -m tests.artifacts.format_document` regenerates the table."""
    text = DOCUMENT.read_text("utf-8")
    assert insert_table(text) == text
    with pytest.raises(ValueError, match="no place"):
        insert_table("# Files\n")


@pytest.mark.parametrize(
    ("formats", "cells"),
    [
        ("images | gif | gemini", "– | – | – / image / image | – / image / image | skipped"),
        (
            "documents | pdf | all",
            "– / – / file | words / words / file | – / pages / file | words / words / file | skipped / skipped / file",
        ),
        ("text | html xhtml ipynb eml mht | all", "text | words | text | words | text"),
    ],
)
def test_format_table_contains_the_expected_row(formats: str, cells: str) -> None:
    """The expected rows of the table were written by hand."""
    assert f"| {formats} | {cells} |\n" in table()
