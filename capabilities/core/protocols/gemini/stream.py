"""Decode streamed responses of Gemini's generateContent, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from capabilities.core.protocols.answer_fields import Ending, map_ending, non_empty_text, vendor_reason
from capabilities.core.protocols.errors import parse_inner_failure
from capabilities.core.protocols.gemini.replies import (
    ENDINGS,
    blocked_prompt,
    failed_generation,
    list_parts,
    own_kind,
    own_parts,
    parse_call,
    parse_metadata,
    parse_usage,
    signatures_in,
    text_in,
    with_calls,
)
from capabilities.core.protocols.gemini.supplements import SOURCES, parse_annotations, parse_media
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import MalformedEventError, json_event
from capabilities.core.translatable import translatable
from capabilities.core.wire import (
    NO_DETAILS,
    Annotation,
    AnswerDetails,
    Delta,
    Failure,
    Finish,
    Supplement,
    ToolCallDelta,
    Usage,
)


class PartReader:
    """Reads streamed chunks.

    Each chunk contains the current usage. The chunk with a finish reason is the last one with content.
    """

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._usage: dict[str, Any] = {}
        self._ending: Ending | None = None
        self._details = NO_DETAILS
        self._calls = 0
        self._offset = 0
        self._texts: list[str] = []
        self._cited: list[Annotation] = []

    @property
    def usage(self) -> Usage:
        return parse_usage(self._usage)

    def read(self, event: SseEvent) -> list[Delta | Supplement | Failure]:
        value = json_event(event)
        if value.get("error"):
            return [parse_inner_failure(value)]
        if usage := value.get("usageMetadata"):
            self._count(usage)
        if blocked := blocked_prompt(value):
            return [blocked]
        candidates = value.get("candidates")
        if candidates is not None and not isinstance(candidates, list):
            raise MalformedEventError(translatable("%(name)s is not a list", name="candidates"))
        candidate = candidates[0] if candidates and isinstance(candidates[0], dict) else {}
        if failed := failed_generation(candidate):
            return [failed]
        parts = list_parts(candidate)
        events: list[Delta | Supplement | Failure] = [delta for delta in self._deltas(parts, value) if any(delta)]
        if metadata := parse_metadata(candidate):
            events.append(Delta(vendor=metadata))
        if not SOURCES.isdisjoint(candidate) or not all("text" in part for part in parts):
            supplement = Supplement(parse_media(parts), self._annotations(candidate))
            events += [supplement] if any(supplement) else []
        self._settle(candidate.get("finishReason"), value)
        return events

    def _annotations(self, candidate: Mapping[str, Any]) -> tuple[Annotation, ...]:
        # Later chunks may repeat a citation, so return only the new ones.
        annotations = [
            annotation
            for annotation in parse_annotations(candidate, "".join(self._texts))
            if annotation not in self._cited
        ]
        self._cited += annotations
        return tuple(annotations)

    def _deltas(self, parts: list[dict[str, Any]], value: Mapping[str, Any]) -> Iterator[Delta]:
        # Keep the parts in order. Parts of Gemini's own tools are separate from text and calls.
        for is_own, group in groupby(parts, lambda part: own_kind(part) is not None):
            run = list(group)
            if is_own:
                yield Delta(vendor=tuple(own_parts(run, self._offset, self._calls)))
                continue
            delta = self._delta(run, value)
            if delta.text:
                self._texts.append(delta.text)
            yield delta

    def _delta(self, parts: list[dict[str, Any]], value: Mapping[str, Any]) -> Delta:
        calls = []
        for part in with_calls(parts):
            call = parse_call(part, self._calls, value)
            calls.append(ToolCallDelta(self._calls, call.id, call.name, call.arguments, call.signature))
            self._calls += 1
        signed, self._offset = signatures_in(parts, self._offset, self._calls - len(calls))
        return Delta(text_in(parts, thought=False), text_in(parts, thought=True), "", tuple(calls), signed)

    def _settle(self, reason: Any, value: Mapping[str, Any]) -> None:
        if reason:
            self._ending = map_ending(ENDINGS, reason, has_calls=bool(self._calls))
            self._details = AnswerDetails(vendor_reason(reason, self._ending))
        if self._ending is not None:
            finish_reason, explained = self._ending
            model, identity = non_empty_text(value.get("modelVersion")), non_empty_text(value.get("responseId"))
            self.finish = Finish(finish_reason, parse_usage(self._usage), model, identity, self._details, explained)
            # A chunk after the finish reason may still contain the usage.
            self.finished = "usageMetadata" in value

    def _count(self, usage: Any) -> None:
        # The counts in each chunk are cumulative. A count that is omitted stays unchanged.
        if isinstance(usage, Mapping):
            self._usage |= {name: number for name, number in usage.items() if number is not None}
