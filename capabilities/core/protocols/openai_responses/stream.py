"""Decode streamed responses of OpenAI's Responses API, event by event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.protocols.answer_fields import map_ending, non_empty_text
from capabilities.core.protocols.errors import parse_inner_failure
from capabilities.core.protocols.openai_responses.replies import (
    ENDINGS,
    FAILURES,
    build_details,
    ending_reason,
    is_call,
    is_own,
    item_text,
    join_logprobs,
    list_items,
    parse_annotation,
    parse_answer,
    parse_call,
    parse_media,
    parse_reasoning,
    parse_status_failure,
    parse_thoughts,
    parse_usage,
    vendor_item,
)
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import MalformedEventError, answer_events, json_event
from capabilities.core.surrogates import repair
from capabilities.core.translatable import translatable
from capabilities.core.wire import Delta, Failure, Finish, Supplement, ToolCallDelta, Usage

Piece = Delta | Supplement | Failure
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
# Some hosts send this marker after the last event, as in Chat Completions.
DONE = "[DONE]"


class ItemEventReader:
    """Reads stream events up to the one that ends the response."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._calls: dict[Any, int] = {}
        self._arguments: set[int] = set()
        self._offset = 0
        self._text: list[str] = []
        self._thought_places: set[Any] = set()
        self._summaries = 0
        self._has_output = False
        self._vendor: dict[Any, Mapping[str, Any]] = {}

    @property
    def usage(self) -> Usage:
        # Only the last event contains the usage.
        return Usage()

    def read(self, event: SseEvent) -> list[Piece]:
        if event.data.strip() == DONE:
            return []
        value = json_event(event)
        kind = non_empty_text(value.get("type")) or event.event
        if kind == "response.output_text.delta":  # Nearly all events are text, so check this first.
            self._has_output = True
            return self._add_text(value)
        if kind == "error" or (value.get("error") and kind not in ENDS):
            return [parse_inner_failure(value)]
        if kind in ENDS:
            return self._end(value)
        read = READERS.get(kind)
        if read:
            return read(self, value)
        return self._pass(value) if _position(value) in self._vendor else []

    def _add_text(self, value: Mapping[str, Any]) -> list[Piece]:
        text = value.get("delta")
        if not isinstance(text, str) or not text:
            return []
        self._offset += len(text)
        self._text.append(text)
        return [Delta(text, logprobs=join_logprobs((value,)) if value.get("logprobs") else None)]

    def _add_reasoning(self, value: Mapping[str, Any]) -> list[Piece]:
        reasoning = non_empty_text(value.get("delta"))
        self._thought_places.add(_position(value))
        return [Delta(reasoning=reasoning)] if reasoning else []

    def _summarise(self, _value: Mapping[str, Any]) -> list[Piece]:
        self._summaries += 1
        # An empty line separates the parts of a reasoning summary.
        return [Delta(reasoning="\n\n")] if self._summaries > 1 else []

    def _add_refusal(self, value: Mapping[str, Any]) -> list[Piece]:
        refusal = non_empty_text(value.get("delta"))
        return [Delta(refusal=refusal)] if refusal else []

    def _add(self, value: Mapping[str, Any]) -> list[Piece]:
        item, position = _item(value), _position(value)
        if is_own(item) and position is not None:
            self._vendor[position] = item
            return self._pass(value)
        # Other items need no start event, because the later events state the type.
        return [self._call(item, position)] if is_call(item) else []

    def _pass(self, value: Mapping[str, Any]) -> list[Piece]:
        return [Delta(vendor=(vendor_item(self._vendor[_position(value)], value),))]

    def _call(self, item: Mapping[str, Any], position: Any) -> Delta:
        index = self._calls[position] = len(self._calls)
        call = parse_call(item, index)
        if call.arguments:
            self._arguments.add(index)
        return Delta(tool_calls=(ToolCallDelta(index, call.id, call.name, call.arguments, custom=call.custom),))

    def _add_arguments(self, value: Mapping[str, Any]) -> list[Piece]:
        arguments, index = non_empty_text(value.get("delta")), self._calls.get(_position(value))
        if arguments is None or index is None:
            return []
        self._arguments.add(index)
        return [self._argument(index, arguments, custom="custom_tool" in str(value.get("type")))]

    def _argument(self, index: int, arguments: str, *, custom: bool) -> Delta:
        return Delta(tool_calls=(ToolCallDelta(index, arguments=arguments, custom=custom),))

    def _close(self, value: Mapping[str, Any]) -> list[Piece]:
        item, position = _item(value), _position(value)
        self._has_output = True
        if position in self._vendor:
            return self._pass(value)
        if is_own(item):  # Some hosts do not announce the item with an earlier event.
            return [Delta(vendor=(vendor_item(item),))]
        if is_call(item):
            return self._close_call(item, position)
        media = parse_media(item)
        if media:
            return [Supplement(media)]
        # Some hosts send no deltas, so only the finished item has the text. To find out whether this text was already
        # sent, compare it with the deltas' text: indexes do not help, because some hosts omit them or send different
        # ones for deltas and items.
        text = item_text(item)
        text = "" if repair(text) in repair("".join(self._text)) else text
        reasoning = "" if position in self._thought_places else parse_reasoning(item)
        thoughts = tuple(parse_thoughts(item, self._offset, len(self._calls)))
        self._offset += len(text)
        return [Delta(text, reasoning, thoughts=thoughts)] if text or reasoning or thoughts else []

    def _close_call(self, item: Mapping[str, Any], position: Any) -> list[Piece]:
        index = self._calls.get(position)
        if index is None:
            return [self._call(item, position)]
        call = parse_call(item, index)
        if index in self._arguments or not call.arguments:
            return []
        return [self._argument(index, call.arguments, custom=call.custom)]

    def _add_citation(self, value: Mapping[str, Any]) -> list[Piece]:
        annotation = parse_annotation(value.get("annotation"))
        return [Supplement(annotations=(annotation,))] if annotation else []

    def _end(self, value: Mapping[str, Any]) -> list[Piece]:
        response = value.get("response")
        if not isinstance(response, Mapping):
            raise MalformedEventError(translatable("%(name)s is not an object", name="response"))
        if response.get("error") or non_empty_text(response.get("status")) in FAILURES:
            return [parse_status_failure(response)]
        # Some hosts send nothing before this last event.
        pieces = [] if self._has_output else _all_at_once(response)
        has_calls = bool(self._calls) or any(map(is_call, list_items(response)))
        ending = map_ending(ENDINGS, ending_reason(response), has_calls=has_calls)
        model, identity = non_empty_text(response.get("model")), non_empty_text(response.get("id"))
        usage, details = parse_usage(response.get("usage")), build_details(response, ending)
        self.finish = Finish(ending.finish_reason, usage, model, identity, details, ending.explains_silence)
        self.finished = True
        return pieces


def _all_at_once(response: Mapping[str, Any]) -> list[Piece]:
    answer = parse_answer(response)
    if isinstance(answer, Failure):
        return []
    return [piece for piece in answer_events(answer) if isinstance(piece, Delta | Supplement)]


def _position(value: Mapping[str, Any]) -> int | str | None:
    position = value.get("output_index")
    return position if isinstance(position, int | str) else None


def _item(value: Mapping[str, Any]) -> Mapping[str, Any]:
    item = value.get("item")
    if not isinstance(item, Mapping):
        raise MalformedEventError(translatable("%(name)s is not an object", name="item"))
    return item


# Maps event types to the methods that read them. Events that only repeat the content of others are ignored.
READERS: Mapping[str, Callable[[ItemEventReader, Mapping[str, Any]], list[Piece]]] = MappingProxyType(
    {
        "response.reasoning_summary_part.added": ItemEventReader._summarise,
        "response.reasoning_summary_text.delta": ItemEventReader._add_reasoning,
        "response.reasoning_text.delta": ItemEventReader._add_reasoning,
        "response.refusal.delta": ItemEventReader._add_refusal,
        "response.output_item.added": ItemEventReader._add,
        "response.output_item.done": ItemEventReader._close,
        "response.function_call_arguments.delta": ItemEventReader._add_arguments,
        "response.custom_tool_call_input.delta": ItemEventReader._add_arguments,
        "response.output_text.annotation.added": ItemEventReader._add_citation,
    }
)
