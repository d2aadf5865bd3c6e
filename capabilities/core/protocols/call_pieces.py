"""Tool calls out of the pieces that OpenAI and its like stream them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.protocols.arguments import called_in, text_of
from capabilities.core.protocols.fields import filled
from capabilities.core.protocols.thought_fields import signature_of
from capabilities.core.wire import ToolCallDelta


class CallPieces:
    """Puts pieces of tool calls in their places, whatever a host makes of `index`.

    Some leave it out, and a piece without id and name goes on with the call before it; some give every call the index
    0, and a name with another id begins a new one.
    """

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._ids: list[str] = []
        self._named: list[bool] = []

    @property
    def any(self) -> bool:
        """Whether there is a call at all."""
        return bool(self._ids)

    def read(self, item: Mapping[str, Any]) -> ToolCallDelta:
        """The piece; id and name only once for each call."""
        called, text, custom = called_in(item)
        identity, name = filled(item.get("id")), filled(called.get("name"))
        index = item.get("index")
        place = self._place(index if isinstance(index, int) else None, identity, name)
        if place is None:
            begun = self._begin(index, identity, name, text_of(text), custom=custom)
            signature = signature_of(item)
            return replace(begun, signature=signature) if signature else begun
        late = name if name and not self._named[place] else None
        self._named[place] = self._named[place] or late is not None
        return ToolCallDelta(place, None, late, text_of(text), signature_of(item), custom)

    def _place(self, index: int | None, identity: str | None, name: str | None) -> int | None:
        """Where the piece goes on; None when it begins a call."""
        if index is None:
            return len(self._ids) - 1 if self._ids and not (identity or name) else None
        place = self._places.get(index)
        other = place is not None and identity is not None and name is not None and identity != self._ids[place]
        return None if other and place is not None and self._named[place] else place

    def _begin(
        self, index: Any, identity: str | None, name: str | None, arguments: str, *, custom: bool
    ) -> ToolCallDelta:
        place = len(self._ids)
        if isinstance(index, int):
            self._places[index] = place
        self._ids.append(identity or f"call_{place}")
        self._named.append(name is not None)
        return ToolCallDelta(place, self._ids[place], name or "", arguments, custom=custom)
