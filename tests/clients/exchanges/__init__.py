"""Exchanges shaped as programs have them, in our own words: a folder a program, a file a content.

They follow what was recorded from the program that `request.json` names: from the whole program, or for LibreChat and
Dify from the package with which it calls models.

`request.json` is what every request of the program says; a content's file has the turns of one conversation: what is
sent beside what came before, and what is expected of the answer and of what the provider heard. `$call:0` stands for
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
"""What each program sends to a model."""


def load(program: str, name: str) -> dict[str, Any]:
    """A file of a program: what all its requests say, or an exchange."""
    value: dict[str, Any] = json.loads((HERE / program / f"{name}.json").read_text("utf-8"))
    return value
