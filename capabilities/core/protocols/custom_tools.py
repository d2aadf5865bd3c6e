"""Convert custom tools with free-text input to functions with one argument, for vendors without custom tools.

In a stream, the text is passed on while the JSON that contains it is still arriving, so that a client can display a
patch as the model writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from capabilities.core.message import Tool
from capabilities.core.surrogates import repair_text
from capabilities.core.wire import Answer, Delta, StreamEvent, Supplement, ToolCallDelta

# Protocols that do not support custom tools.
AS_FUNCTIONS = frozenset({"anthropic", "gemini"})
INPUT_DESCRIPTION = "The whole text goes into `input`, as it is, without quotes or a code block around it."
GRAMMAR = "It must follow this %s grammar:\n%s"
_OPENING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# Matches the complete characters in the rest of a JSON string. The first half of a surrogate pair does not match until
# its second half has arrived.
_CHARACTERS = re.compile(
    r'(?:[^"\\]|\\(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\]|\\[^u]))|'
    r"u(?![dD][89abAB])[0-9a-fA-F]{4}|[^u]))*"
)


def as_function(tool: Tool) -> Tool:
    """Return a custom tool as a function, or a function unchanged."""
    if tool.custom is None:
        return tool
    shape = tool.custom.get("grammar") or {}
    rule = GRAMMAR % (shape.get("syntax", ""), shape["definition"]) if shape.get("definition") else ""
    description = "\n\n".join(filter(None, (tool.description, INPUT_DESCRIPTION, rule)))
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return replace(tool, description=description, parameters=schema, custom=None)


def parse_free_text(arguments: str) -> str:
    """Return the free text in a call's arguments, or the arguments unchanged if they do not have the expected form."""
    try:
        value = json.loads(arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return arguments
    text = value.get("input") if isinstance(value, dict) else None
    return repair_text(text) if isinstance(text, str) else arguments


def restore_custom(answer: Answer, names: Collection[str]) -> Answer:
    """Return the answer with calls to the named functions converted back to custom tool calls."""
    calls = tuple(
        replace(call, arguments=parse_free_text(call.arguments), custom=True) if call.name in names else call
        for call in answer.tool_calls
    )
    return replace(answer, tool_calls=calls)


@dataclass(slots=True)
class _Text:
    """Extracts the free text of a call while the call's arguments arrive."""

    waiting: str = ""
    is_open: bool = False
    is_closed: bool = False

    def add(self, piece: str) -> str:
        self.waiting += piece
        if not self.is_open:
            opening = _OPENING.match(self.waiting)
            if opening is None:
                return ""
            self.is_open, self.waiting = True, self.waiting[opening.end() :]
        if self.is_closed:
            return ""
        match = _CHARACTERS.match(self.waiting)
        end = match.end() if match else 0
        text, self.waiting = self.waiting[:end], self.waiting[end:]
        self.is_closed = self.waiting.startswith('"')
        return repair_text(json.loads(f'"{text}"', strict=False)) if text else ""

    def rest(self) -> str:
        # If the arguments never had the expected form, nothing has been sent yet.
        return "" if self.is_open else parse_free_text(self.waiting)


@dataclass(slots=True)
class CustomCalls:
    """Converts calls to the named functions in a stream back to custom tool calls."""

    names: Collection[str]
    texts: dict[int, _Text] = field(default_factory=dict)

    def restore(self, events: Iterable[StreamEvent]) -> list[StreamEvent]:
        """Return the events with calls to the named functions converted back to custom tool calls."""
        out: list[StreamEvent] = []
        for event in events:
            if isinstance(event, Delta):
                out.append(event._replace(tool_calls=tuple(map(self._restore, event.tool_calls))))
                continue
            # At the end of the stream, arguments without the expected form are sent as the text.
            rests = (
                {} if isinstance(event, Supplement) else {at: call_text.rest() for at, call_text in self.texts.items()}
            )
            calls = tuple(ToolCallDelta(at, arguments=text, custom=True) for at, text in rests.items() if text)
            out += [Delta(tool_calls=calls), event] if calls else [event]
        return out

    def _restore(self, piece: ToolCallDelta) -> ToolCallDelta:
        if piece.name in self.names:
            self.texts.setdefault(piece.index, _Text())
        text = self.texts.get(piece.index)
        return piece if text is None else replace(piece, arguments=text.add(piece.arguments), custom=True)
