"""Exchanges in the form that client programs send, with our own texts: a folder per program, a file per content.

They follow recordings of the program that `request.json` names: of the whole program, or for LibreChat and Dify of the
package with which it calls models.

`request.json` has what every request of the program contains. A content's file has the turns of one conversation: the
messages added, and what is expected of the answer and of the request the provider received. `$call:0` is replaced by
the id of the answer's first call.
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
"""The contents that each program sends to a model."""


def load(program: str, name: str) -> dict[str, Any]:
    """Load a program's `request` or one of its exchanges."""
    value: dict[str, Any] = json.loads((HERE / program / f"{name}.json").read_text("utf-8"))
    return value
