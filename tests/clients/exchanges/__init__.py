"""Exchanges as client programs send them, but with our own texts: one folder per program, one file per kind of content.

They follow recordings of the program that `request.json` names. For LibreChat and Dify, only the package that calls the
models was recorded.

`request.json` has what all the program's requests have in common. A content file has the turns of a conversation: the
added messages, the expected answer, and the request that the provider is expected to receive. `$call:0` is replaced by
the id of the answer's first tool call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONTENTS = {
    "codex": ("text", "image", "screenshot", "document", "tool", "parallel", "thinking", "structured", "error"),
    "claude_code": ("text", "image", "screenshot", "document", "tool", "parallel", "thinking", "structured", "error"),
    "open_webui": ("text", "image", "screenshot", "tool", "parallel", "thinking", "error"),
    "librechat": ("text", "image", "screenshot", "document", "tool", "parallel", "thinking", "error"),
    "dify": ("text", "image", "audio", "document", "tool", "parallel", "thinking", "structured", "error"),
}
"""The kinds of content that each program sends to a model."""


def load(program: str, name: str) -> dict[str, Any]:
    """Load a program's `request` or one of its exchanges."""
    value: dict[str, Any] = json.loads((HERE / program / f"{name}.json").read_text("utf-8"))
    return value
