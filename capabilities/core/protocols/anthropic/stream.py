"""Decode streamed responses of Anthropic's Messages API, block by block."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.answer_fields import map_ending, non_empty_text
from capabilities.core.protocols.anthropic.replies import (
    ENDINGS,
    MESSAGE_FIELDS,
    STANDARD_BLOCKS,
    block_text,
    build_details,
    parse_caller,
    parse_citations,
    parse_thought,
    parse_usage,
    refusal_text,
    vendor_item,
)
from capabilities.core.protocols.errors import parse_inner_failure
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import MalformedEventError, json_event
from capabilities.core.translatable import translatable
from capabilities.core.wire import Delta, Failure, Finish, Supplement, ToolCallDelta, Usage

THOUGHTS = ("thinking", "redacted_thinking")
# Maps each delta type of a reasoning block to the block's field that the delta extends.
THOUGHT_PIECES = {"thinking_delta": "thinking", "signature_delta": "signature"}

END_OF_BLOCK = {"type": "content_block_stop"}


class BlockReader:
    """Reads stream events up to `message_stop`."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._usage: dict[str, Any] = {}
        self._id: str | None = None
        self._model: str | None = None
        self._calls: dict[int, int] = {}
        self._inputs: dict[int, str] = {}
        self._thoughts: dict[int | None, dict[str, Any]] = {}
        self._offset = 0
        self._block_start = 0
        self._citations: list[Any] = []
        self._vendor: dict[str, Any] | None = None
        self._last_kind: str | None = None

    @property
    def usage(self) -> Usage:
        return parse_usage(self._usage)

    def read(self, event: SseEvent) -> list[Delta | Supplement | Failure]:
        value = json_event(event)
        kind = value.get("type") or event.event
        if kind == "error" or (value.get("error") and kind != "message_start"):
            return [parse_inner_failure(value)]
        event_out: Delta | Supplement | None = None
        if kind == "message_start":
            self._start(_part(value, "message"))
        elif kind == "content_block_start":
            event_out = self._open(value, _part(value, "content_block"))
        elif kind == "content_block_delta":
            event_out = self._delta(value, _part(value, "delta"))
        elif kind == "content_block_stop":
            event_out = self._close(value)
        elif kind == "message_delta":
            event_out = self._ending(value, _part(value, "delta"))
        elif kind == "message_stop":
            self.finished = True
        return [event_out] if event_out is not None and any(event_out) else []

    def _start(self, message: Mapping[str, Any]) -> None:
        self._count(message.get("usage"))
        self._id, self._model = non_empty_text(message.get("id")), non_empty_text(message.get("model"))

    def _open(self, value: Mapping[str, Any], block: Mapping[str, Any]) -> Delta | None:
        kind, previous_kind = non_empty_text(block.get("type")), self._last_kind
        self._last_kind, self._vendor = kind, None if kind is None or kind in STANDARD_BLOCKS else dict(block)
        if self._vendor is not None:
            return self._pass(value)
        if kind in THOUGHTS:
            self._thoughts[_block_index(value)] = dict(block)
        if kind != "tool_use":
            citations = block.get("citations")
            self._block_start, self._citations = self._offset, list(citations) if isinstance(citations, list) else []
            delta = self._text_delta(block_text(block, "text", "text"), block_text(block, "thinking", "thinking"))
            # Between two text blocks, which can have different citations, send the event that ends the first block to
            # clients of Anthropic's API.
            return delta._replace(vendor=(vendor_item({}, END_OF_BLOCK),)) if kind == previous_kind == "text" else delta
        index = self._calls.setdefault(_index(value), len(self._calls))
        whole = block.get("input")
        self._inputs[index] = json.dumps(whole, ensure_ascii=False) if whole else "{}"
        identity = non_empty_text(block.get("id")) or f"call_{index}"
        name = non_empty_text(block.get("name")) or ""
        return Delta(tool_calls=(ToolCallDelta(index, identity, name, caller=parse_caller(block)),))

    def _delta(self, value: Mapping[str, Any], delta: Mapping[str, Any]) -> Delta | None:
        kind = non_empty_text(delta.get("type"))
        if kind == "text_delta":  # Check this fast path first, because nearly all deltas are text.
            return self._text_delta(block_text(delta, "text_delta", "text"), "")
        if self._vendor is not None:
            return self._pass(value)
        if kind == "citations_delta":
            self._citations.append(delta.get("citation"))
            return Delta(vendor=(vendor_item({}, value),))
        if kind == "input_json_delta" and _index(value) in self._calls:
            index, piece = self._calls[_index(value)], str(delta.get("partial_json") or "")
            if not piece:
                return None
            self._inputs.pop(index, None)
            return Delta(tool_calls=(ToolCallDelta(index, arguments=piece),))
        thought = self._thoughts.get(_block_index(value)) if kind in THOUGHT_PIECES else None
        if thought is not None:
            name = THOUGHT_PIECES[str(kind)]
            thought[name] = str(thought.get(name) or "") + str(delta.get(name) or "")
        return self._text_delta("", block_text(delta, "thinking_delta", "thinking"))

    def _pass(self, value: Mapping[str, Any]) -> Delta:
        return Delta(vendor=(vendor_item(self._vendor or {}, value),))

    def _text_delta(self, text: str, thinking: str) -> Delta:
        self._offset += len(text)
        return Delta(text, thinking)

    def _close(self, value: Mapping[str, Any]) -> Delta | Supplement | None:
        if self._vendor is not None:
            return self._pass(value)
        block = self._thoughts.pop(_block_index(value), None)
        # At the end of its block, the reasoning and its signature are complete.
        if block is not None:
            thought = parse_thought(block, self._offset, len(self._calls))
            return Delta(thoughts=(thought,)) if thought else None
        if self._citations:
            citations, self._citations = self._citations, []
            return Supplement(annotations=parse_citations(citations, self._block_start, self._offset))
        # If no arguments were streamed, they were in the first event of the tool call.
        index = self._calls.get(_index(value))
        whole = self._inputs.pop(index, None) if index is not None else None
        return Delta(tool_calls=(ToolCallDelta(index, arguments=whole),)) if index is not None and whole else None

    def _ending(self, value: Mapping[str, Any], delta: Mapping[str, Any]) -> Delta | None:
        self._count(value.get("usage"))
        reason = delta.get("stop_reason")
        if not reason:
            return None
        ending = map_ending(ENDINGS, reason, has_calls=bool(self._calls))
        vendor_fields = {name: value[name] for name in MESSAGE_FIELDS if value.get(name)}
        details = build_details({**delta, **vendor_fields}, self._usage, ending)
        usage = parse_usage(self._usage)
        self.finish = Finish(ending.finish_reason, usage, self._model, self._id, details, ending.explains_silence)
        # The explanation of a refusal is part of the answer.
        return Delta(refusal=refusal_text(details) or "")

    def _count(self, usage: Any) -> None:
        # A later count replaces an earlier one. A count that is omitted stays unchanged.
        if isinstance(usage, Mapping):
            self._usage |= {name: number for name, number in usage.items() if number is not None}


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    if not isinstance(part, Mapping):
        raise MalformedEventError(translatable("%(name)s is not an object", name=name))
    return part


def _block_index(value: Mapping[str, Any]) -> int | None:
    index = value.get("index")
    return index if isinstance(index, int) else None


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    if not isinstance(index, int):
        raise MalformedEventError(translatable("a block has no index"))
    return index
