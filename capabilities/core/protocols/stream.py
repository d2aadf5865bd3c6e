"""Decode the streams of all protocols, and detect where content begins, how a stream ends, and what interrupts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from capabilities.core.json_codec import MAX_ANSWER_VALUES, TooManyValuesError, read_json
from capabilities.core.message import METADATA
from capabilities.core.protocols.sse import EventTooLargeError, SseEvent, SseParser, looks_like_sse
from capabilities.core.providers.redaction import summarize
from capabilities.core.surrogates import SurrogateJoiner, may_have_surrogate, repair
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Delta, Failure, Fault, Finish, StreamEvent, Supplement, ToolCallDelta, Usage

# A stream fails after this number of malformed events. Until then, they are skipped.
BAD_EVENTS = 3
# A delta's text fields. The next delta may continue their text.
WORDS = ("text", "reasoning", "refusal")
# Maximum size in bytes of a body that is not an event stream.
BODY_BYTES = 64 * 1024 * 1024


class MalformedEventError(Exception):
    """An event is not JSON, or not in the format of its protocol. `reason` describes the problem."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EventReader(Protocol):
    """Interface for reading the events of one protocol.

    `finish` is set once the provider has stated why the model stopped. `finished` is set when no more events are
    expected, because the usage or the closing event has arrived.
    """

    finish: Finish | None
    finished: bool

    @property
    def usage(self) -> Usage: ...

    def read(self, event: SseEvent) -> list[Delta | Supplement | Failure]:
        """Return the content of an event. Raise `MalformedEventError` if the event cannot be parsed."""


class EventStream:
    """The `StreamDecoder` for all protocols that stream server-sent events.

    A stream that is cut off after the provider has stated why the model stopped counts as complete. Callers must
    therefore call `close` however the stream ends, even after a reset or a stall, and use the `Finish` that it may
    return. `bad_events` is the number of malformed events.
    """

    def __init__(self, reader: EventReader, whole: Callable[[bytes], Answer | Failure]) -> None:
        self.bad_events = 0
        self._reader = reader
        self._whole = whole
        self._parser = SseParser()
        self._raw = bytearray()
        self._first = b""
        self._has_content = False
        self._spoke = False
        self._over = False
        self._halves: SurrogateJoiner | None = None

    @property
    def due(self) -> bool:
        """Return whether the provider has stated why the model stopped."""
        return self._reader.finish is not None

    def feed(self, block: bytes) -> list[StreamEvent]:
        if self._over:
            return []
        try:
            events = self._parser.feed(block)
        except EventTooLargeError:
            return self._end(Failure(Fault.TOO_LARGE, translatable("a stream event is too large"), 200))
        if not self._parser.started:
            return self._collect(block)
        self._raw.clear()
        return self._take(events)

    def close(self) -> list[StreamEvent]:
        if self._over:
            return []
        last = self._parser.close()
        if not self._parser.started and not looks_like_sse(bytes(self._raw)):
            self._over = True
            return self._read_whole()
        out = self._take(last)
        return out if self._over else [*out, *self._end()]

    def _take(self, events: list[SseEvent]) -> list[StreamEvent]:
        out: list[StreamEvent] = []
        for event in events:
            try:
                pieces = self._reader.read(event)
            except MalformedEventError as error:
                self.bad_events += 1
                if self.bad_events < BAD_EVENTS:
                    continue
                return [*out, *self._end(_malformed(self.bad_events, error.reason))]
            if self._halves is not None or ("\\u" in event.data and may_have_surrogate(event.data)):
                pieces = self._join(pieces)
            for piece in pieces:
                if isinstance(piece, Failure):
                    return [*out, *self._end(self._break_off(piece) if self._has_content else piece)]
                if not self._has_content:
                    self._note(piece)
                out.append(piece)
            if self._reader.finished:
                return [*out, *self._end()]
        return out

    def _join(self, pieces: list[Delta | Supplement | Failure]) -> list[Delta | Supplement | Failure]:
        halves = self._halves = self._halves or SurrogateJoiner()
        whole_pieces: list[Delta | Supplement | Failure] = []
        for piece in pieces:
            if isinstance(piece, Delta):
                # If a delta ends with half of a surrogate pair, hold it back until the next delta.
                texts: dict[str, Any] = {name: halves.join(name, getattr(piece, name)) for name in WORDS}
                arguments = [halves.join(call.index, call.arguments) for call in piece.tool_calls]
                whole = repair(piece)._replace(**texts)
                calls = zip(whole.tool_calls, arguments, strict=True)
                piece = whole._replace(tool_calls=tuple(replace(call, arguments=text) for call, text in calls))
            else:
                piece = repair(piece)
            whole_pieces += [piece] if isinstance(piece, Failure) or any(piece) else []
        return whole_pieces

    def _rest(self) -> list[Delta]:
        # Send the first halves of surrogate pairs whose second half never arrived.
        rest = self._halves.rest() if self._halves is not None else {}
        texts: dict[str, Any] = {name: half for name, half in rest.items() if name in WORDS}
        calls = tuple(ToolCallDelta(index, arguments=half) for index, half in rest.items() if index not in WORDS)
        return [Delta(**texts, tool_calls=calls)] if rest else []

    def _note(self, piece: Delta | Supplement) -> None:
        self._has_content = self._has_content or is_content(piece)
        thought = isinstance(piece, Delta) and bool(piece.reasoning or piece.thoughts)
        self._spoke = self._spoke or self._has_content or thought

    def _ending(self) -> Finish | Failure:
        finish = self._reader.finish
        if finish is None and self._has_content:
            cut = translatable("the stream ended without marking the answer as complete")
            return Failure(Fault.STREAM_TRUNCATED, cut, 200)
        if finish is None:
            return Failure(Fault.STREAM_EMPTY, translatable("the stream ended before any content"), 200)
        if not (finish.explains_silence or self._spoke):
            reason = finish.details.stop_reason
            return Failure(Fault.EMPTY_CONTENT, translatable("the model returned nothing"), 200, reason)
        return finish

    def _break_off(self, failure: Failure) -> Failure:
        # Part of the answer has already been sent, so no other candidate model may continue it.
        return replace(failure, fault=Fault.STREAM_BROKEN)

    def _end(self, failure: Failure | None = None) -> list[StreamEvent]:
        self._over = True
        # First send what was held back, because it may be the only content.
        rest = self._rest()
        for piece in rest:
            self._note(piece)
        last = failure or self._ending()
        last = last.counted(self._reader.usage) if isinstance(last, Failure) else last
        return [*rest, repair(last) if self._halves is not None else last]

    def _read_whole(self) -> list[StreamEvent]:
        body = bytes(self._raw)
        outcome = repair_outcome(self._whole(body), body)
        return [outcome] if isinstance(outcome, Failure) else answer_events(outcome)

    def _collect(self, block: bytes) -> list[StreamEvent]:
        self._raw += block
        # The first character is enough to recognise a web page, so do not wait for more blocks.
        self._first = self._first or block.lstrip()[:1]
        if self._first == b"<" or len(self._raw) > BODY_BYTES:
            self._over = True
            large = Failure(Fault.TOO_LARGE, translatable("the body is too large"), 200)
            return [large] if len(self._raw) > BODY_BYTES else self._read_whole()
        return []


def repair_outcome(outcome: Answer | Failure, body: bytes) -> Answer | Failure:
    """Return the outcome that was read from a body, with lone surrogates replaced."""
    return repair(outcome) if may_have_surrogate(body) else outcome


def _malformed(count: int, reason: str) -> Failure:
    return Failure(
        Fault.STREAM_BROKEN, translatable("%(count)s malformed events: %(reason)s", count=count, reason=reason), 200
    )


def is_content(event: StreamEvent) -> bool:
    """Return whether an event is part of the answer itself. Reasoning and citations are not."""
    if isinstance(event, Delta):
        has_vendor_content = any(item.name != METADATA for item in event.vendor)
        return bool(event.text or event.tool_calls or event.refusal or has_vendor_content)
    return isinstance(event, Supplement) and bool(event.media)


def answer_events(answer: Answer) -> list[StreamEvent]:
    """Return stream events for a complete answer, which the provider sent although a stream was requested."""
    calls = tuple(
        ToolCallDelta(index, call.id, call.name, call.arguments, call.signature, call.custom, call.caller)
        for index, call in enumerate(answer.tool_calls)
    )
    delta = Delta(answer.text, answer.reasoning or "", answer.refusal or "", calls, answer.thoughts, answer.logprobs)
    leading = Delta(vendor=tuple(item for item in answer.vendor if not item.covered))
    supplement = Supplement(answer.media, answer.annotations)
    return [*(event for event in (leading, delta, supplement) if any(event)), build_finish(answer)]


def build_finish(answer: Answer) -> Finish:
    # Even if the answer has no text, it was already accepted when the response was decoded.
    return Finish(answer.finish_reason, answer.usage, answer.model, answer.id, answer.details, explains_silence=True)


def json_event(event: SseEvent) -> dict[str, Any]:
    """Return the JSON object of an event. Raise `MalformedEventError` if the event has none."""
    try:
        value = read_json(event.data)
    except TooManyValuesError:
        raise MalformedEventError(
            translatable("the answer has more than %(limit)s JSON values", limit=MAX_ANSWER_VALUES)
        ) from None
    except (ValueError, RecursionError):
        raise MalformedEventError(translatable("not JSON: %(said)s", said=summarize(event.data, limit=80))) from None
    if not isinstance(value, dict):
        raise MalformedEventError(translatable("not an object"))
    return value
