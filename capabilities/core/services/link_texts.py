"""What a link to an agent's own page holds behind its address: `rap_`, a public part, a secret, a checksum."""

from __future__ import annotations

import re

LINK_KIND = "rap"
"""How its text begins; whatever looks for leaked secrets knows it by that."""
LINK = re.compile(r"rap_([0-9a-f]{8})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")


def public_part_in(text: str) -> str:
    """The part that may be told; empty for a text that is no link's."""
    match = LINK.fullmatch(text)
    return match[1] if match else ""


def secret_in(text: str) -> str:
    """The part that may not; empty for a text that is no link's."""
    match = LINK.fullmatch(text)
    return match[2] if match else ""
