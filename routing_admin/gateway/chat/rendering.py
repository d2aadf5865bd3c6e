"""Answers in OpenAI's shapes: a completion, and the chunks of a streamed one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from capabilities.core.message import ToolCall
from capabilities.core.wire import Answer, Delta, Finish, ToolCallDelta, Usage
from routing_admin.server.ids import new_id

DONE = b"data: [DONE]\n\n"


def completion_id() -> str:
    """An id for one completion."""
    return new_id("chatcmpl-")


def usage_json(usage: Usage) -> dict[str, Any] | None:
    """The provider's count; None where it gave none."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None and completion is None and usage.total_tokens is None:
        return None
    total = usage.total_tokens if usage.total_tokens is not None else (prompt or 0) + (completion or 0)
    fields: dict[str, Any] = {"prompt_tokens": prompt or 0, "completion_tokens": completion or 0, "total_tokens": total}
    if usage.cached_tokens is not None:
        fields["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        fields["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return fields


def completion_json(answer: Answer, model: str) -> dict[str, Any]:
    """A whole answer by that model; the provider's own name for it stays with us, as in a stream."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text or (None if answer.tool_calls or answer.refusal else ""),
        "refusal": answer.refusal,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [_call_json(call) for call in answer.tool_calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
    fields: dict[str, Any] = {
        "id": completion_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
    }
    usage = usage_json(answer.usage)
    return fields | {"usage": usage} if usage else fields


def _call_json(call: ToolCall) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    return fields | _signature_json(call.signature)


def _signature_json(signature: str | None) -> dict[str, Any]:
    """Where Gemini's own OpenAI-compatible answers keep the proof that wants to come back with the history."""
    return {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}


@dataclass(slots=True)
class Chunks:
    """The events of one streamed completion as server-sent events."""

    model: str
    include_usage: bool = False
    id: str = field(default_factory=completion_id)
    created: int = field(default_factory=lambda: int(time.time()))
    begun: bool = False
    _before: bytes = field(init=False)
    _after: bytes = field(init=False)

    def __post_init__(self) -> None:
        """What stands before and after the delta of every chunk is written once."""
        self._before, self._after = self._write_chunk({"": 0}).split(b'{"":0}')

    def write_delta(self, delta: Delta) -> bytes:
        """A piece of the answer; the first one says who speaks. Empty for an event that carries nothing."""
        text, reasoning, refusal, calls = delta
        if self.begun and text and not (reasoning or refusal or calls):
            return self._before + b'{"content":' + orjson.dumps(text) + b"}" + self._after
        fields: dict[str, Any] = {}
        if text:
            fields["content"] = text
        if reasoning:
            fields["reasoning_content"] = reasoning
        if refusal:
            fields["refusal"] = refusal
        if calls:
            fields["tool_calls"] = [_call_piece_json(call) for call in calls]
        return self._write_chunk(self._begin() | fields) if fields else b""

    def write_finish(self, finish: Finish) -> bytes:
        """The reason to stop, the count where it was asked for, and the end."""
        last = self._write_chunk(self._begin(), finish.finish_reason)
        if not self.include_usage:
            return last + DONE
        count: dict[str, Any] = {"choices": [], "usage": usage_json(finish.usage)}
        return last + write_event(self._head_json() | count) + DONE

    def _begin(self) -> dict[str, Any]:
        if self.begun:
            return {}
        self.begun = True
        return {"role": "assistant", "content": ""}

    def _write_chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self.include_usage else {}
        return write_event(self._head_json() | {"choices": [choice]} | usage)

    def _head_json(self) -> dict[str, Any]:
        return {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}


def _call_piece_json(call: ToolCallDelta) -> dict[str, Any]:
    function = {"arguments": call.arguments} | ({"name": call.name} if call.name is not None else {})
    identity = {"id": call.id, "type": "function"} if call.id is not None else {}
    return {"index": call.index, **identity, "function": function, **_signature_json(call.signature)}


def write_event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(value) + b"\n\n"
