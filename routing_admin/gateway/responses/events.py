"""Stream an answer in the events of OpenAI's Responses: items that open, continue and close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from capabilities.core.message import ToolCall, VendorItem
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.wire import Annotation, Delta, Finish, Media, ToolCallDelta
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.chat_api import Keep
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.responses.rendering import (
    ResponseHead,
    call_item,
    error_json,
    image_item,
    is_image,
    list_cited,
    list_logprobs,
    message_item,
    reasoning_item,
    text_part,
    without_images,
    words_of_media,
)
from routing_admin.gateway.responses.tools import PROTOCOL


@dataclass(slots=True)
class OpenItem:
    """An unfinished item: its position in the output, its id, and its content so far."""

    place: int
    id: str
    words: str = ""
    refusal: str = ""
    annotations: list[dict[str, Any]] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class OpenCall(OpenItem):
    """An unfinished tool call, whose arguments are in `words`."""

    call_id: str = ""
    name: str = ""
    custom: bool = False

    def as_call(self) -> ToolCall:
        return ToolCall(self.call_id, self.name, self.words, custom=self.custom)


@dataclass(slots=True)
class ResponseEvents:
    """Write the events of one response, numbered in sequence."""

    head: ResponseHead
    origin: str = ""
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    turn: AnsweredTurn = field(default_factory=AnsweredTurn)
    number: int = 0
    output: dict[int, dict[str, Any]] = field(default_factory=dict)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    places: int = 0
    reasoning: OpenItem | None = None
    message: OpenItem | None = None
    calls: dict[int, OpenCall] = field(default_factory=dict)
    vendor_places: dict[Any, int] = field(default_factory=dict)
    keep: Keep | None = None

    def keep_items(self) -> None:
        """Store the items once, however the stream ended: partial reasoning and message, complete calls."""
        keep, self.keep = self.keep, None
        if keep is not None:
            self._close_reasoning()
            self._close_message()
            keep(self.head.key, without_images(self._list_output()))

    def write_delta(self, delta: Delta) -> bytes:
        self.turn.add(delta)
        pieces = [self._begin()]
        if delta.reasoning:
            pieces.append(self._think(delta.reasoning))
        self.thoughts += delta.thoughts
        pieces += [self._write_vendor(each) for each in delta.vendor if each.protocol == PROTOCOL]
        if delta.text:
            pieces.append(self._say(delta.text, list_logprobs(delta.logprobs)))
        if delta.refusal:
            pieces.append(self._refuse(delta.refusal))
        pieces += [self._write_call(piece) for piece in delta.tool_calls]
        return b"".join(pieces)

    def write_media(self, media: Sequence[Media]) -> bytes:
        pieces = [self._begin()]
        if words := words_of_media(media, before=self.message.words if self.message else ""):
            pieces.append(self._say(words))
        pieces += [self._add_image(each) for each in media if is_image(each)]
        return b"".join(pieces)

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        # Responses have no audio, so only the reference to the whole is sent.
        return self.write_media([sound]) if reference else b""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        opened = self._begin() + self._open_message()
        pieces = []
        assert self.message is not None  # noqa: S101 - opened above, for the type checker
        for cited in list_cited(annotations):
            place = {"content_index": 0, "annotation_index": len(self.message.annotations), "annotation": cited}
            self.message.annotations.append(cited)
            pieces.append(self._write("output_text.annotation.added", {**self._at(self.message), **place}))
        return opened + b"".join(pieces)

    def write_finish(self, finish: Finish) -> bytes:
        pieces = [self._begin(), self._close_reasoning(), self._close_message()]
        pieces += [self._close_call(call) for call in self.calls.values()]
        self.keep_items()
        tier = finish.details.service_tier
        whole = self.head.write_end(finish.finish_reason, finish.usage, self._list_output(), tier)
        return b"".join([*pieces, self._write(whole["status"], {"response": whole})])

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        failed = self.head.write("failed", self._list_output(), error=error_json(error, request_id))
        return self._begin() + self._write("failed", {"response": failed})

    def _list_output(self) -> list[dict[str, Any]]:
        return [self.output[place] for place in sorted(self.output)]

    def _begin(self) -> bytes:
        if self.number:
            return b""
        begun = {"response": self.head.write("in_progress", ())}
        return self._write("created", begun) + self._write("in_progress", begun)

    def _write(self, event: str, fields: dict[str, Any]) -> bytes:
        name = f"response.{event}"
        value = {"type": name, "sequence_number": self.number, **fields}
        self.number += 1
        return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"

    def _next_place(self) -> int:
        self.places += 1
        return self.places - 1

    def _open_item(self, prefix: str) -> OpenItem:
        place = self._next_place()
        return OpenItem(place, self.head.item_id(prefix, place))

    def _at(self, item: OpenItem) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": item.place}

    def _add(self, place: int, item: dict[str, Any]) -> bytes:
        return self._write("output_item.added", {"output_index": place, "item": item})

    def _end(self, place: int, item: dict[str, Any]) -> bytes:
        self.output[place] = item
        return self._write("output_item.done", {"output_index": place, "item": item})

    def _add_whole(self, item: dict[str, Any]) -> bytes:
        place = self._next_place()
        return self._add(place, item) + self._end(place, item)

    def _add_image(self, media: Media) -> bytes:
        return self._add_whole(image_item(self.head.item_id("ig_", self.places), media))

    def _think(self, words: str) -> bytes:
        opened = b""
        if self.reasoning is None:
            item = self.reasoning = self._open_item("rs_")
            part = {**self._at(item), "summary_index": 0, "part": {"type": "summary_text", "text": ""}}
            opened = self._add(item.place, reasoning_item(item.id, "", (), self.origin))
            opened += self._write("reasoning_summary_part.added", part)
        self.reasoning.words += words
        piece = {**self._at(self.reasoning), "summary_index": 0, "delta": words}
        return opened + self._write("reasoning_summary_text.delta", piece)

    def _close_reasoning(self) -> bytes:
        # Reasoning without text, but with a signature, is an item, too.
        item, thoughts = self.reasoning, self.thoughts
        self.reasoning, self.thoughts = None, []
        if item is None:
            if not thoughts:
                return b""
            return self._add_whole(reasoning_item(self.head.item_id("rs_", self.places), "", thoughts, self.origin))
        place = {**self._at(item), "summary_index": 0}
        return b"".join(
            (
                self._write("reasoning_summary_text.done", {**place, "text": item.words}),
                self._write(
                    "reasoning_summary_part.done", {**place, "part": {"type": "summary_text", "text": item.words}}
                ),
                self._end(item.place, reasoning_item(item.id, item.words, thoughts, self.origin)),
            )
        )

    def _write_vendor(self, item: VendorItem) -> bytes:
        # OpenAI's own items arrive as events; their index is changed to the position in our output.
        value, place = item.value, item.value.get("output_index")
        if place is None:
            return self._close_reasoning() + self._add_whole(value)
        event = str(value["type"]).removeprefix("response.")
        if event == "output_item.added":
            before = self._close_reasoning() + self._close_message()
            self.vendor_places[place] = self._next_place()
            return before + self._add(self.vendor_places[place], value["item"])
        if event == "output_item.done":
            return self._end(self.vendor_places[place], value["item"])
        own = {name: said for name, said in value.items() if name not in ("type", "sequence_number")}
        return self._write(event, {**own, "output_index": self.vendor_places[place]})

    def _open_message(self) -> bytes:
        if self.message is not None:
            return b""
        closed = self._close_reasoning()
        item = self.message = self._open_item("msg_")
        head = {**message_item(item.id, "", status="in_progress"), "content": []}
        part = {**self._at(item), "content_index": 0, "part": text_part("")}
        return closed + self._add(item.place, head) + self._write("content_part.added", part)

    def _say(self, words: str, logprobs: Sequence[Any] = ()) -> bytes:
        opened = self._open_message()
        assert self.message is not None  # noqa: S101 - opened above, for the type checker
        self.message.words += words
        self.message.logprobs += logprobs
        piece = {**self._at(self.message), "content_index": 0, "delta": words, "logprobs": list(logprobs)}
        return opened + self._write("output_text.delta", piece)

    def _refuse(self, words: str) -> bytes:
        opened = self._open_message()
        assert self.message is not None  # noqa: S101 - opened above, for the type checker
        if not self.message.refusal:
            part = {"type": "refusal", "refusal": ""}
            opened += self._write("content_part.added", {**self._at(self.message), "content_index": 1, "part": part})
        self.message.refusal += words
        return opened + self._write("refusal.delta", {**self._at(self.message), "content_index": 1, "delta": words})

    def _close_message(self) -> bytes:
        item, self.message = self.message, None
        if item is None:
            return b""
        place, part = {**self._at(item), "content_index": 0}, text_part(item.words)
        part |= {"annotations": item.annotations, "logprobs": item.logprobs}
        pieces = [
            self._write("output_text.done", {**place, "text": item.words, "logprobs": item.logprobs}),
            self._write("content_part.done", {**place, "part": part}),
        ]
        whole = {**message_item(item.id, item.words), "content": [part]}
        if item.refusal:
            refusal = {"type": "refusal", "refusal": item.refusal}
            place = {**place, "content_index": 1}
            pieces.append(self._write("refusal.done", {**place, "refusal": item.refusal}))
            pieces.append(self._write("content_part.done", {**place, "part": refusal}))
            whole["content"] = [part, refusal]
        return b"".join([*pieces, self._end(item.place, whole)])

    def _write_call(self, piece: ToolCallDelta) -> bytes:
        opened = b""
        if piece.index not in self.calls:
            opened = self._close_reasoning() + self._close_message()
            place = self._next_place()
            identity = self.head.item_id("ctc_" if piece.custom else "fc_", place)
            call = OpenCall(place, identity, custom=piece.custom)
            call.call_id, call.name = piece.id or "", piece.name or ""
            self.calls[piece.index] = call
            opened += self._add(call.place, call_item(call.id, call.as_call(), self.namespaces, "in_progress"))
        call = self.calls[piece.index]
        call.name = call.name or piece.name or ""
        call.words += piece.arguments
        if not piece.arguments:
            return opened
        return opened + self._write(f"{_kind(call)}.delta", {**self._at(call), "delta": piece.arguments})

    def _close_call(self, call: OpenCall) -> bytes:
        key = "input" if call.custom else "arguments"
        whole = call_item(call.id, call.as_call(), self.namespaces)
        named = {} if call.custom else {"name": whole["name"]}
        done = self._write(f"{_kind(call)}.done", {**self._at(call), key: call.words, **named})
        return done + self._end(call.place, whole)


def _kind(call: OpenCall) -> str:
    return "custom_tool_call_input" if call.custom else "function_call_arguments"
