"""Check whether a document can be opened.

Providers reject the entire request if a document in it needs a password or is damaged. Because the check must open the
file, files are checked only if they would be sent natively or no text was found in them.
"""

from __future__ import annotations

from capabilities.core.delivery.decision import ARCHIVES, PAGED
from capabilities.core.delivery.obstacles import Reason, ReasonCode, make_reason
from capabilities.core.message import FilePart, Inspectable
from capabilities.core.vocabulary import Kind


def may_have_flaw(file: FilePart) -> bool:
    """Return whether the file must be opened to find out if it is locked or damaged."""
    if file.mime_type in PAGED and file.pages is not None:
        # The document's pages have already been counted, so it can be opened.
        return False
    return isinstance(file.content, Inspectable) and (file.kind is Kind.DOCUMENT or file.mime_type in ARCHIVES)


def find_flaw(file: FilePart) -> Reason | None:
    """Return why the file cannot be opened (locked or damaged), or None if it can.

    Raise `UnreadableError` if its bytes are unavailable.
    """
    content = file.content
    if not may_have_flaw(file) or not isinstance(content, Inspectable):
        return None
    found = content.inspect()
    if found.locked:
        return make_reason(ReasonCode.LOCKED)
    return make_reason(ReasonCode.DAMAGED) if found.damaged else None
