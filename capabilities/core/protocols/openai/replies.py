"""What OpenAI and its like answer: whole answers and streamed chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.message import ToolCall
from capabilities.core.protocols.arguments import text_of
from capabilities.core.protocols.call_pieces import CallPieces
from capabilities.core.protocols.errors import bad_shape, failure_inside, object_of
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import (
    EXPLAINS_SILENCE,
    MalformedEventError,
    count,
    filled,
    json_event,
    merged_usage,
)
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, Usage

FINISHES = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "repetition_truncation": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
"""Reasons to stop in OpenAI's words; one that is not here counts as stop."""
BROKEN = {"error": 500, "network_error": 502, "insufficient_system_resource": 503}
"""Reasons to stop that mean that the provider failed, with the status they stand for."""


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    """The outcome of a whole response."""
    value = object_of(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if _is_error(value):
        return failure_inside(value)
    if "choices" not in value:
        return bad_shape("the answer has no choices")
    choices = value["choices"]
    if not choices:
        return Failure(Fault.EMPTY_CHOICES, "the answer has no candidate", 200)
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        return bad_shape("choices is not a list of objects")
    return _answer(value, choices[0])


def _is_error(value: Mapping[str, Any]) -> bool:
    """Whether a good status hides an error (OpenRouter by design, MiniMax in its own words)."""
    base = value.get("base_resp")
    if isinstance(base, Mapping) and base.get("status_code"):
        return True
    return not value.get("choices") and bool(value.get("error") or value.get("object") == "error")


def _answer(value: dict[str, Any], choice: dict[str, Any]) -> Answer | Failure:
    reason = choice.get("finish_reason")
    if reason in BROKEN:
        return _broken(choice, reason)
    message = choice.get("message")
    if not isinstance(message, dict):
        return bad_shape("the candidate has no message")
    calls = _calls(message.get("tool_calls"))
    text, thought = _text(message.get("content"))
    reasoning = _reasoning(message) or thought or None
    refusal = message.get("refusal") if isinstance(message.get("refusal"), str) else None
    finish = finish_of(reason, has_calls=bool(calls))
    if finish not in EXPLAINS_SILENCE and not (text or calls or reasoning or refusal):
        return Failure(Fault.EMPTY_CONTENT, "the model said nothing", 200)
    usage = usage_of(value.get("usage"))
    return Answer(text, calls, reasoning, refusal, finish, usage, filled(value.get("model")), filled(value.get("id")))


def _broken(choice: Mapping[str, Any], reason: str) -> Failure:
    if isinstance(choice.get("error"), Mapping):
        return failure_inside(choice)
    return failure_inside({"error": {"message": f"the model stopped with {reason}", "code": BROKEN[reason]}})


def finish_of(reason: Any, *, has_calls: bool) -> str:
    """The reason in OpenAI's words; tool calls are one whatever the provider calls it."""
    word = FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    return "tool_calls" if has_calls and word == "stop" else word


def usage_of(value: Any) -> Usage:
    """The token counts of a `usage` object."""
    return Usage(
        count(value, "prompt_tokens"),
        count(value, "completion_tokens"),
        count(value, "total_tokens"),
        _first(count(value, "prompt_tokens_details", "cached_tokens"), count(value, "prompt_cache_hit_tokens")),
        count(value, "completion_tokens_details", "reasoning_tokens"),
    )


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def _calls(value: Any) -> tuple[ToolCall, ...]:
    """The tool calls; arguments that came as an object become the text they should have been."""
    calls = []
    for index, item in enumerate(value if isinstance(value, list) else []):
        function = item.get("function") if isinstance(item, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            name = function["name"]
            calls.append(ToolCall(filled(item.get("id")) or f"call_{index}", name, text_of(function.get("arguments"))))
    return tuple(calls)


def _text(content: Any) -> tuple[str, str]:
    """Words and thoughts of a content that is a text or, at Mistral, a list of chunks."""
    if isinstance(content, str):
        return content, ""
    words, thoughts = "", ""
    for chunk in content if isinstance(content, list) else []:
        if not isinstance(chunk, dict):
            continue
        if isinstance(chunk.get("text"), str):
            words += chunk["text"]
        elif chunk.get("type") == "thinking":
            thoughts += _text(chunk.get("thinking"))[0]
    return words, thoughts


def _reasoning(message: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    return ""


class ChunkReader:
    """Reads chunks; the end is due when `[DONE]` or the count has come after the reason to stop."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._usage = Usage()
        self._id: str | None = None
        self._model: str | None = None
        self._calls = CallPieces()

    def read(self, event: SseEvent) -> list[Delta | Failure]:
        """What a chunk adds."""
        if event.data.strip() == "[DONE]":
            self.finished = True
            return []
        chunk = json_event(event)
        if event.event == "error" or _is_error(chunk):
            return [failure_inside(chunk)]
        choices = chunk.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise MalformedEventError("choices is no list")
        self._envelope(chunk)
        choice = next((item for item in choices or [] if isinstance(item, dict) and item.get("index", 0) == 0), None)
        found = self._choice(choice) if choice is not None else []
        self._settle(counted=count(chunk, "usage", "completion_tokens") is not None)
        return found

    def _envelope(self, chunk: Mapping[str, Any]) -> None:
        self._usage = merged_usage(self._usage, usage_of(chunk.get("usage")))
        self._id = self._id or filled(chunk.get("id"))
        self._model = self._model or filled(chunk.get("model"))

    def _choice(self, choice: Mapping[str, Any]) -> list[Delta | Failure]:
        reason = choice.get("finish_reason")
        if reason in BROKEN:
            return [_broken(choice, reason)]
        delta = choice.get("delta", choice.get("message"))  # some send a whole message as one event
        if delta is not None and not isinstance(delta, dict):
            raise MalformedEventError("delta is no object")
        found = self._delta(delta or {})
        if reason:
            self.finish = Finish(finish_of(reason, has_calls=self._calls.any))
        return [found] if found != Delta() else []

    def _delta(self, delta: Mapping[str, Any]) -> Delta:
        text, thought = _text(delta.get("content"))
        refusal = delta.get("refusal")
        calls = tuple(self._calls.read(item) for item in delta.get("tool_calls") or [] if isinstance(item, dict))
        return Delta(text, _reasoning(delta) or thought, refusal if isinstance(refusal, str) else "", calls)

    def _settle(self, *, counted: bool) -> None:
        if self.finish is None:
            return
        self.finish = Finish(self.finish.finish_reason, self._usage, self._model, self._id)
        self.finished = self.finished or counted
