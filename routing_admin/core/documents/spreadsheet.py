"""Cells of a CSV file as spreadsheets read them."""

from __future__ import annotations

DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would take for a formula."""


def safe_cell(text: str) -> str:
    """The text, which no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(DANGEROUS) else text
