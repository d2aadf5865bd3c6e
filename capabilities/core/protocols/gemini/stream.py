"""What Gemini answers chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.errors import failure_inside
from capabilities.core.protocols.fields import filled, merge_usage
from capabilities.core.protocols.gemini.finish import BROKEN_CALLS, finish_of
from capabilities.core.protocols.gemini.replies import (
    blocked_prompt,
    broken_call,
    call_of,
    parts_of,
    usage_of,
    with_calls,
    words_of,
)
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import MalformedEventError, json_event
from capabilities.core.wire import Delta, Failure, Finish, ToolCallDelta, Usage
from capabilities.core.worded import worded


class PartReader:
    """Reads chunks; each one repeats the count so far, and the one with a reason to stop is the last."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._usage = Usage()
        self._calls = 0

    def read(self, event: SseEvent) -> list[Delta | Failure]:
        """What a chunk adds. Raises `MalformedEventError` when its candidates are no list."""
        value = json_event(event)
        if value.get("error"):
            return [failure_inside(value)]
        if blocked := blocked_prompt(value):
            return [blocked]
        candidates = value.get("candidates")
        if candidates is not None and not isinstance(candidates, list):
            raise MalformedEventError(worded("%(name)s is no list", name="candidates"))
        self._usage = merge_usage(self._usage, usage_of(value.get("usageMetadata")))
        candidate = candidates[0] if candidates and isinstance(candidates[0], dict) else {}
        if candidate.get("finishReason") in BROKEN_CALLS:
            return [broken_call(candidate)]
        delta = self._delta(parts_of(candidate), value)
        self._settle(candidate.get("finishReason"), value)
        return [delta] if delta != Delta() else []

    def _delta(self, parts: list[dict[str, Any]], value: Mapping[str, Any]) -> Delta:
        calls = []
        for part in with_calls(parts):
            call = call_of(part, self._calls, value)
            calls.append(ToolCallDelta(self._calls, call.id, call.name, call.arguments, call.signature))
            self._calls += 1
        return Delta(words_of(parts, thought=False), words_of(parts, thought=True), "", tuple(calls))

    def _settle(self, reason: Any, value: Mapping[str, Any]) -> None:
        if reason:
            word = finish_of(reason, has_calls=bool(self._calls))
            model, identity = filled(value.get("modelVersion")), filled(value.get("responseId"))
            self.finish = Finish(word, self._usage, model, identity)
            self.finished = "usageMetadata" in value
