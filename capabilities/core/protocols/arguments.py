"""A tool call's arguments: JSON text on one side, an object on the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from capabilities.core.halves import mend
from capabilities.core.json_scan import is_bounded
from capabilities.core.message import ToolCall


def object_of(arguments: str) -> dict[str, Any]:
    """The arguments as an object; what is none, or has too many values, is kept under `_raw`."""
    if not arguments.strip():
        return {}
    try:
        value = mend(json.loads(arguments)) if is_bounded(arguments) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"_raw": arguments}


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object; the free text of a custom tool stands under `input`."""
    return {"input": call.arguments} if call.custom else object_of(call.arguments)


def called_in(item: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any, bool]:
    """What OpenAI's tool call names, its arguments or free text, and whether it is a custom tool's."""
    called = item.get("function")
    if isinstance(called, dict):
        return called, called.get("arguments"), False
    called = item.get("custom")
    return (called, called.get("input"), True) if isinstance(called, dict) else ({}, None, False)


def text_of(arguments: Any) -> str:
    """The arguments as text; an object becomes the text it should have been, nothing stays empty."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if arguments is not None else ""
