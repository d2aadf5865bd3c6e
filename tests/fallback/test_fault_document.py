"""docs/faults.md matches the fault table in the code."""

from __future__ import annotations

from pathlib import Path

from capabilities.core.wire import Fault
from routing_admin.core.fallback.document import document

PATH = Path(__file__).parents[2] / "docs" / "faults.md"


def test_fault_document_matches_the_table():
    """To update the document, run `python -m routing_admin.core.fallback.document > docs/faults.md`."""
    assert PATH.read_text(encoding="utf-8") == document()


def test_every_fault_is_in_the_document():
    text = document()
    assert all(f"| `{fault}` |" in text for fault in Fault)
