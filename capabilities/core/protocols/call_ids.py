"""Ids of tool calls where a host takes only its own kind of them; the same for a call and its result."""

from __future__ import annotations

import base64
import hashlib
import re

_SHORT = re.compile(r"[A-Za-z0-9]{9}")


def short_call_id(call_id: str) -> str:
    """Nine letters and digits, as Mistral demands: the id itself, or what always stands for it."""
    if _SHORT.fullmatch(call_id):
        return call_id
    return base64.b32encode(hashlib.sha256(call_id.encode()).digest())[:9].decode()
