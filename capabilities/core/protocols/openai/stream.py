"""Decode streamed responses of Chat Completions, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.protocols.answer_fields import count_at, map_ending, non_empty_text, parse_logprobs
from capabilities.core.protocols.errors import parse_inner_failure
from capabilities.core.protocols.openai.replies import (
    BROKEN,
    ENDINGS,
    MEDIA_FIELDS,
    broken_off,
    build_details,
    is_error,
    parse_reasoning,
    parse_supplement,
    parse_usage,
    text_and_thoughts,
)
from capabilities.core.protocols.sse import EventTemplate, SseEvent
from capabilities.core.protocols.stream import MalformedEventError, json_event
from capabilities.core.protocols.thought_fields import DETAILS, message_thought, parse_thoughts
from capabilities.core.protocols.tool_calls import CallAssembler
from capabilities.core.translatable import translatable
from capabilities.core.wire import Delta, Failure, Finish, Supplement, Usage

# The fields of a delta that contains nothing but text.
WORDS = frozenset({"role", "content"})


class ChunkReader:
    """Reads streamed chunks. Once the finish reason has arrived, the usage or `[DONE]` ends the stream."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._usage: dict[str, Any] = {}
        self._id: str | None = None
        self._model: str | None = None
        self._calls = CallAssembler()
        self._thoughts: list[Any] = []
        self._frame = EventTemplate()

    @property
    def usage(self) -> Usage:
        return parse_usage(self._usage)

    def read(self, event: SseEvent) -> list[Delta | Supplement | Failure]:
        # Check this fast path first, because nearly all chunks differ from the previous one only in their text.
        if self.finish is None and not event.event and (text := self._frame.read_text(event.data)):
            return [Delta(text)]
        if event.data[:1] != "{" and event.data.strip() == "[DONE]":
            self.finished = True
            return []
        chunk = json_event(event)
        choices = chunk.get("choices")
        if event.event == "error" or ((not choices or "base_resp" in chunk) and is_error(chunk)):
            return [parse_inner_failure(chunk)]
        if choices is not None and not isinstance(choices, list):
            raise MalformedEventError(translatable("%(name)s is not a list", name="choices"))
        self._envelope(chunk)
        choice = _first_choice(choices) if choices else None
        pieces = self._choice(choice, chunk) if choice is not None else []
        if self.finish is not None:
            self._settle(counted=count_at(chunk, "usage", "completion_tokens") is not None)
        elif choice is not None and not (event.event or chunk.get("usage")):
            delta = _text_delta(choice)
            if delta is not None:
                self._frame.learn(event.data, chunk, delta, "content")
        return pieces

    def _envelope(self, chunk: Mapping[str, Any]) -> None:
        if usage := chunk.get("usage"):
            self._count(usage)
        if self._id is None:
            self._id = non_empty_text(chunk.get("id"))
        if self._model is None:
            self._model = non_empty_text(chunk.get("model"))

    def _choice(self, choice: Mapping[str, Any], chunk: Mapping[str, Any]) -> list[Delta | Supplement | Failure]:
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str) and reason in BROKEN:
            return [broken_off(choice, reason)]
        delta = choice.get("delta", choice.get("message"))  # Some hosts send a complete message in a single chunk.
        if delta is not None and not isinstance(delta, dict):
            raise MalformedEventError(translatable("%(name)s is not an object", name="delta"))
        pieces: list[Delta | Supplement | Failure] = self._pieces(delta) if delta else []
        if choice.get("logprobs"):
            pieces = _with_logprobs(pieces, choice["logprobs"])
        if reason:
            ending = map_ending(ENDINGS, reason, has_calls=self._calls.any)
            details = build_details(chunk, choice, ending)
            self.finish = Finish(ending.finish_reason, details=details, explains_silence=ending.explains_silence)
            if self._thoughts:
                pieces.append(Delta(thoughts=parse_thoughts(self._thoughts)))
        return pieces

    def _pieces(self, delta: Mapping[str, Any]) -> list[Delta | Supplement | Failure]:
        content = delta.get("content")
        # Check this fast path first, because nearly all deltas contain only text.
        if len(delta) == 1 and isinstance(content, str):
            return [Delta(content)] if content else []
        refusal, tool_calls, thoughts = delta.get("refusal"), delta.get("tool_calls"), delta.get(DETAILS)
        if isinstance(thoughts, list):  # Reasoning details arrive in pieces, which are joined at the end.
            self._thoughts += thoughts
        text, thought = (content, "") if isinstance(content, str) else text_and_thoughts(content)
        calls = (
            tuple(self._calls.read(item) for item in tool_calls if isinstance(item, dict))
            if isinstance(tool_calls, list)
            else ()
        )
        signed = message_thought(delta)
        piece = Delta(
            text, parse_reasoning(delta) or thought, refusal if isinstance(refusal, str) else "", calls, signed
        )
        events: list[Delta | Supplement | Failure] = [piece] if any(piece) else []
        if not MEDIA_FIELDS.isdisjoint(delta) or isinstance(content, list):
            supplement = parse_supplement(delta)
            events += [supplement] if any(supplement) else []
        return events

    def _count(self, usage: Any) -> None:
        # Some hosts send the current usage in every chunk. A count that a later chunk omits stays unchanged.
        if isinstance(usage, Mapping):
            self._usage |= {name: number for name, number in usage.items() if number is not None}

    def _settle(self, *, counted: bool) -> None:
        if self.finish is not None:
            self.finish = replace(self.finish, usage=parse_usage(self._usage), model=self._model, id=self._id)
            self.finished = self.finished or counted


def _text_delta(choice: Mapping[str, Any]) -> dict[str, Any] | None:
    delta = choice.get("delta")
    if choice.get("logprobs") or not isinstance(delta, dict) or not isinstance(delta.get("content"), str):
        return None
    return delta if all(name in WORDS or not value for name, value in delta.items()) else None


def _with_logprobs(pieces: list[Delta | Supplement | Failure], logprobs: Any) -> list[Delta | Supplement | Failure]:
    # Some hosts send the log probabilities in a separate chunk.
    token_logprobs = parse_logprobs(logprobs)
    if token_logprobs is None:
        return pieces
    first = pieces[0] if pieces else None
    piece, others = (first, pieces[1:]) if isinstance(first, Delta) else (Delta(), pieces)
    return [piece._replace(logprobs=token_logprobs), *others]


def _first_choice(choices: list[Any]) -> dict[str, Any] | None:
    for item in choices:
        # Only one choice was requested, so ignore all others.
        if isinstance(item, dict) and item.get("index", 0) == 0:
            return item
    return None
