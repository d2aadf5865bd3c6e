"""What Anthropic answers: whole messages and streamed blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from capabilities.core.message import ToolCall
from capabilities.core.protocols.errors import bad_shape, failure_inside, object_of
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import (
    EXPLAINS_SILENCE,
    MalformedEventError,
    count,
    filled,
    json_event,
    merged_usage,
    total_of,
)
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, ToolCallDelta, Usage

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
SIGNED = "anthropic:"
"""Marks a signature as this protocol's, so that no other one takes it for its own."""


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    """The outcome of a whole response."""
    value = object_of(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if value.get("type") == "error" or (value.get("error") and "content" not in value):
        return failure_inside(value)
    content = value.get("content")
    if not isinstance(content, list):
        return bad_shape("the answer has no content blocks")
    return _answer(value, [block for block in content if isinstance(block, dict)])


def _answer(value: dict[str, Any], blocks: list[dict[str, Any]]) -> Answer | Failure:
    text = "".join(_words(block, "text", "text") for block in blocks)
    thoughts = "".join(_words(block, "thinking", "thinking") for block in blocks)
    calls = _calls(blocks, _signature(blocks))
    finish = FINISHES.get(str(value.get("stop_reason")), "stop")
    if finish not in EXPLAINS_SILENCE and not (text or thoughts or calls):
        return Failure(Fault.EMPTY_CONTENT, "the model said nothing", 200)
    finish = "tool_calls" if calls and finish == "stop" else finish
    usage = usage_of(value.get("usage"))
    model, identity = value.get("model"), value.get("id")
    return Answer(text, calls, thoughts or None, None, finish, usage, filled(model), filled(identity))


def _words(block: Mapping[str, Any], kind: str, name: str) -> str:
    words = block.get(name)
    return words if block.get("type") == kind and isinstance(words, str) else ""


def _signature(blocks: list[dict[str, Any]]) -> str | None:
    """The proof of the thoughts, where there is one block of them: joined ones could not be shown again."""
    signed = [block for block in blocks if block.get("type") == "thinking" and block.get("signature")]
    return SIGNED + str(signed[0]["signature"]) if len(signed) == 1 else None


def _calls(blocks: list[dict[str, Any]], signature: str | None) -> tuple[ToolCall, ...]:
    """The tool calls; the first one carries the proof of the thoughts before it."""
    calls: list[ToolCall] = []
    for block in blocks:
        if block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
            identity = filled(block.get("id")) or f"call_{len(calls)}"
            calls.append(ToolCall(identity, block["name"], arguments, None if calls else signature))
    return tuple(calls)


def usage_of(value: Any) -> Usage:
    """The token counts: what was cached is counted apart there, and is part of the prompt here."""
    read = count(value, "cache_read_input_tokens")
    prompt = count(value, "input_tokens")
    if prompt is not None:
        prompt = total_of(prompt, count(value, "cache_creation_input_tokens"), read)
    completion = count(value, "output_tokens")
    total = total_of(prompt, completion) if prompt is not None and completion is not None else None
    return Usage(prompt, completion, total, read, count(value, "output_tokens_details", "thinking_tokens"))


class BlockReader:
    """Reads events of blocks; the end is due at `message_stop`."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._usage = Usage()
        self._id: str | None = None
        self._model: str | None = None
        self._calls: dict[int, int] = {}
        self._signature: str | None = None
        self._inputs: dict[int, str] = {}

    def read(self, event: SseEvent) -> list[Delta | Failure]:
        """What an event adds; unknown ones add nothing."""
        value = json_event(event)
        kind = value.get("type") or event.event
        if kind == "error" or (value.get("error") and kind != "message_start"):
            return [failure_inside(value)]
        found: Delta | None = None
        if kind == "message_start":
            self._start(_part(value, "message"))
        elif kind == "content_block_start":
            found = self._open(value, _part(value, "content_block"))
        elif kind == "content_block_delta":
            found = self._delta(value, _part(value, "delta"))
        elif kind == "content_block_stop":
            found = self._close(value)
        elif kind == "message_delta":
            self._ending(value, _part(value, "delta"))
        elif kind == "message_stop":
            self.finished = True
        return [found] if found is not None and found != Delta() else []

    def _start(self, message: Mapping[str, Any]) -> None:
        self._usage = usage_of(message.get("usage"))
        self._id, self._model = filled(message.get("id")), filled(message.get("model"))

    def _open(self, value: Mapping[str, Any], block: Mapping[str, Any]) -> Delta | None:
        if block.get("type") != "tool_use":
            return Delta(text=_words(block, "text", "text"), reasoning=_words(block, "thinking", "thinking"))
        place = self._calls.setdefault(_index(value), len(self._calls))
        signature, self._signature = self._signature, None
        whole = block.get("input")
        self._inputs[place] = json.dumps(whole, ensure_ascii=False) if whole else "{}"
        identity = filled(block.get("id")) or f"call_{place}"
        call = ToolCallDelta(place, identity, filled(block.get("name")) or "", "", signature)
        return Delta(tool_calls=(call,))

    def _delta(self, value: Mapping[str, Any], delta: Mapping[str, Any]) -> Delta | None:
        kind = delta.get("type")
        if kind == "signature_delta":
            self._signature = SIGNED + str(delta.get("signature") or "")
        if kind == "input_json_delta" and _index(value) in self._calls:
            place, piece = self._calls[_index(value)], str(delta.get("partial_json") or "")
            if not piece:
                return None
            self._inputs.pop(place, None)
            return Delta(tool_calls=(ToolCallDelta(place, arguments=piece),))
        return Delta(_words(delta, "text_delta", "text"), _words(delta, "thinking_delta", "thinking"))

    def _close(self, value: Mapping[str, Any]) -> Delta | None:
        """A call whose arguments never came in pieces has those it was opened with."""
        place = self._calls.get(_index(value))
        whole = self._inputs.pop(place, None) if place is not None else None
        return Delta(tool_calls=(ToolCallDelta(place, arguments=whole),)) if place is not None and whole else None

    def _ending(self, value: Mapping[str, Any], delta: Mapping[str, Any]) -> None:
        usage = merged_usage(self._usage, usage_of(value.get("usage")))
        total = total_of(usage.prompt_tokens, usage.completion_tokens)
        self._usage = Usage(
            usage.prompt_tokens, usage.completion_tokens, total, usage.cached_tokens, usage.reasoning_tokens
        )
        reason = delta.get("stop_reason")
        if reason:
            word = FINISHES.get(str(reason), "stop")
            word = "tool_calls" if self._calls and word == "stop" else word
            self.finish = Finish(word, self._usage, self._model, self._id)


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    if not isinstance(part, Mapping):
        raise MalformedEventError(f"{name} is no object")
    return part


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    if not isinstance(index, int):
        raise MalformedEventError("a block without index")
    return index
