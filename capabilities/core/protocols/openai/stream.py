"""What OpenAI and its like answer chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.call_pieces import CallPieces
from capabilities.core.protocols.errors import failure_inside
from capabilities.core.protocols.fields import count, filled, merge_usage
from capabilities.core.protocols.openai.finish import BROKEN, finish_of
from capabilities.core.protocols.openai.replies import broken_off, is_error, reasoning_of, text_and_thoughts, usage_of
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import MalformedEventError, json_event
from capabilities.core.wire import Delta, Failure, Finish, Usage
from capabilities.core.worded import worded


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
        """What a chunk adds. Raises `MalformedEventError` when its choices are no list."""
        if event.data.strip() == "[DONE]":
            self.finished = True
            return []
        chunk = json_event(event)
        if event.event == "error" or is_error(chunk):
            return [failure_inside(chunk)]
        choices = chunk.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise MalformedEventError(worded("%(name)s is no list", name="choices"))
        self._envelope(chunk)
        choice = next((item for item in choices or [] if isinstance(item, dict) and item.get("index", 0) == 0), None)
        found = self._choice(choice) if choice is not None else []
        self._settle(counted=count(chunk, "usage", "completion_tokens") is not None)
        return found

    def _envelope(self, chunk: Mapping[str, Any]) -> None:
        self._usage = merge_usage(self._usage, usage_of(chunk.get("usage")))
        self._id = self._id or filled(chunk.get("id"))
        self._model = self._model or filled(chunk.get("model"))

    def _choice(self, choice: Mapping[str, Any]) -> list[Delta | Failure]:
        reason = choice.get("finish_reason")
        if reason in BROKEN:
            return [broken_off(choice, reason)]
        delta = choice.get("delta", choice.get("message"))  # some send a whole message as one event
        if delta is not None and not isinstance(delta, dict):
            raise MalformedEventError(worded("%(name)s is no object", name="delta"))
        found = self._delta(delta or {})
        if reason:
            self.finish = Finish(finish_of(reason, has_calls=self._calls.any))
        return [found] if found != Delta() else []

    def _delta(self, delta: Mapping[str, Any]) -> Delta:
        text, thought = text_and_thoughts(delta.get("content"))
        refusal = delta.get("refusal")
        calls = tuple(self._calls.read(item) for item in delta.get("tool_calls") or [] if isinstance(item, dict))
        return Delta(text, reasoning_of(delta) or thought, refusal if isinstance(refusal, str) else "", calls)

    def _settle(self, *, counted: bool) -> None:
        if self.finish is None:
            return
        self.finish = Finish(self.finish.finish_reason, self._usage, self._model, self._id)
        self.finished = self.finished or counted
