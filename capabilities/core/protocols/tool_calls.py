"""Assemble the streamed tool calls of OpenAI and compatible hosts, and parse arguments and ids."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.json_codec import is_bounded
from capabilities.core.message import ToolCall
from capabilities.core.protocols.answer_fields import non_empty_text
from capabilities.core.protocols.thought_fields import parse_signature
from capabilities.core.surrogates import repair
from capabilities.core.wire import ToolCallDelta


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Return a tool call's arguments as an object. In OpenAI's protocols, they are a JSON string.

    Arguments that are not an object, or that are an object with too many values, are returned under `_raw`.
    """
    if not arguments.strip():
        return {}
    try:
        value = repair(json.loads(arguments)) if is_bounded(arguments) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"_raw": arguments}


def call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object, with a custom tool's free text under `input`."""
    return {"input": call.arguments} if call.custom else parse_arguments(call.arguments)


def parse_call_item(item: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any, bool]:
    """Return the object that contains the tool's name, the arguments or free text, and whether the tool is custom."""
    call = item.get("function")
    if isinstance(call, dict):
        return call, call.get("arguments"), False
    call = item.get("custom")
    return (call, call.get("input"), True) if isinstance(call, dict) else ({}, None, False)


def arguments_text(arguments: Any) -> str:
    """Return the arguments of a tool call as a JSON string. An object is converted to JSON."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if arguments is not None else ""


class CallAssembler:
    """Assigns streamed fragments to tool calls, even if a host uses `index` incorrectly."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._ids: list[str] = []
        self._named: list[bool] = []

    @property
    def any(self) -> bool:
        return bool(self._ids)

    def read(self, piece: Mapping[str, Any]) -> ToolCallDelta:
        """Return the fragment as a delta, with the call's id and name only in the first fragment of the call."""
        call, text, custom = parse_call_item(piece)
        identity, name = non_empty_text(piece.get("id")), non_empty_text(call.get("name"))
        index = piece.get("index")
        position = self._find_position(index if isinstance(index, int) else None, identity, name)
        if position is None:
            delta = self._begin(index, identity, name, arguments_text(text), custom=custom)
            signature = parse_signature(piece)
            return replace(delta, signature=signature) if signature else delta
        late = name if name and not self._named[position] else None
        self._named[position] = self._named[position] or late is not None
        return ToolCallDelta(position, None, late, arguments_text(text), parse_signature(piece), custom)

    def _find_position(self, index: int | None, identity: str | None, name: str | None) -> int | None:
        # If a host sends no index, a fragment without id and name continues the latest call.
        if index is None:
            return len(self._ids) - 1 if self._ids and not (identity or name) else None
        position = self._places.get(index)
        # Some hosts send the index 0 with every call. If a fragment has a name and a different id, it begins a new
        # call.
        is_other_call = (
            position is not None and identity is not None and name is not None and identity != self._ids[position]
        )
        return None if is_other_call and position is not None and self._named[position] else position

    def _begin(
        self, index: Any, identity: str | None, name: str | None, arguments: str, *, custom: bool
    ) -> ToolCallDelta:
        position = len(self._ids)
        if isinstance(index, int):
            self._places[index] = position
        self._ids.append(identity or f"call_{position}")
        self._named.append(name is not None)
        return ToolCallDelta(position, self._ids[position], name or "", arguments, custom=custom)


# The code below shortens tool call ids for hosts that accept only ids in their own format. A call and its result must
# have the same id.

_SHORT = re.compile(r"[A-Za-z0-9]{9}")


def short_call_id(call_id: str) -> str:
    """Return an id of nine letters and digits, as Mistral requires: the given id if possible, or part of its hash."""
    if _SHORT.fullmatch(call_id):
        return call_id
    return base64.b32encode(hashlib.sha256(call_id.encode()).digest())[:9].decode()
