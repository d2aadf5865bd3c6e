"""Stream an answer as events of OpenAI's Responses API: output items that start, continue and end."""

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
    media_text,
    message_item,
    reasoning_item,
    text_part,
    without_images,
)
from routing_admin.gateway.responses.tools import PROTOCOL


@dataclass(slots=True)
class OpenItem:
    """An unfinished output item: its position, its id, and its content so far."""

    index: int
    id: str
    text: str = ""
    refusal: str = ""
    annotations: list[dict[str, Any]] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class OpenCall(OpenItem):
    """An unfinished tool call; `text` contains its arguments."""

    call_id: str = ""
    name: str = ""
    custom: bool = False

    def as_call(self) -> ToolCall:
        return ToolCall(self.call_id, self.name, self.text, custom=self.custom)


@dataclass(slots=True)
class ResponseEvents:
    """Writes the events of a response, numbered in sequence."""

    head: ResponseHead
    origin: str = ""
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    turn: AnsweredTurn = field(default_factory=AnsweredTurn)
    number: int = 0
    output: dict[int, dict[str, Any]] = field(default_factory=dict)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    item_count: int = 0
    reasoning: OpenItem | None = None
    message: OpenItem | None = None
    calls: dict[int, OpenCall] = field(default_factory=dict)
    vendor_indexes: dict[Any, int] = field(default_factory=dict)
    keep: Keep | None = None

    def keep_items(self) -> None:
        """Store the output items once, however the stream ended: partial reasoning and text, and complete calls."""
        keep, self.keep = self.keep, None
        if keep is not None:
            self._close_reasoning()
            self._close_message()
            keep(self.head.key, without_images(self._list_output()))

    def write_delta(self, delta: Delta) -> bytes:
        self.turn.add(delta)
        pieces = [self._begin()]
        if delta.reasoning:
            pieces.append(self._write_reasoning(delta.reasoning))
        self.thoughts += delta.thoughts
        pieces += [self._write_vendor(item) for item in delta.vendor if item.protocol == PROTOCOL]
        if delta.text:
            pieces.append(self._write_text(delta.text, list_logprobs(delta.logprobs)))
        if delta.refusal:
            pieces.append(self._write_refusal(delta.refusal))
        pieces += [self._write_call(piece) for piece in delta.tool_calls]
        return b"".join(pieces)

    def write_media(self, media: Sequence[Media]) -> bytes:
        pieces = [self._begin()]
        if text := media_text(media, before=self.message.text if self.message else ""):
            pieces.append(self._write_text(text))
        pieces += [self._add_image(item) for item in media if is_image(item)]
        return b"".join(pieces)

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        # The Responses API has no audio, so send only a reference to the complete audio.
        return self.write_media([sound]) if reference else b""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        opened = self._begin() + self._open_message()
        pieces = []
        assert self.message is not None  # noqa: S101 - opened above, for the type checker
        for source in list_cited(annotations):
            location = {"content_index": 0, "annotation_index": len(self.message.annotations), "annotation": source}
            self.message.annotations.append(source)
            pieces.append(
                self._write("output_text.annotation.added", {**self._item_location(self.message), **location})
            )
        return opened + b"".join(pieces)

    def write_finish(self, finish: Finish) -> bytes:
        pieces = [self._begin(), self._close_reasoning(), self._close_message()]
        pieces += [self._close_call(call) for call in self.calls.values()]
        self.keep_items()
        tier = finish.details.service_tier
        response = self.head.write_end(finish.finish_reason, finish.usage, self._list_output(), tier)
        return b"".join([*pieces, self._write(response["status"], {"response": response})])

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        failed = self.head.write("failed", self._list_output(), error=error_json(error, request_id))
        return self._begin() + self._write("failed", {"response": failed})

    def _list_output(self) -> list[dict[str, Any]]:
        return [self.output[index] for index in sorted(self.output)]

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

    def _next_index(self) -> int:
        self.item_count += 1
        return self.item_count - 1

    def _open_item(self, prefix: str) -> OpenItem:
        index = self._next_index()
        return OpenItem(index, self.head.item_id(prefix, index))

    def _item_location(self, item: OpenItem) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": item.index}

    def _add(self, index: int, item: dict[str, Any]) -> bytes:
        return self._write("output_item.added", {"output_index": index, "item": item})

    def _end(self, index: int, item: dict[str, Any]) -> bytes:
        self.output[index] = item
        return self._write("output_item.done", {"output_index": index, "item": item})

    def _add_whole(self, item: dict[str, Any]) -> bytes:
        index = self._next_index()
        return self._add(index, item) + self._end(index, item)

    def _add_image(self, media: Media) -> bytes:
        return self._add_whole(image_item(self.head.item_id("ig_", self.item_count), media))

    def _write_reasoning(self, text: str) -> bytes:
        opened = b""
        if self.reasoning is None:
            item = self.reasoning = self._open_item("rs_")
            part = {**self._item_location(item), "summary_index": 0, "part": {"type": "summary_text", "text": ""}}
            opened = self._add(item.index, reasoning_item(item.id, "", (), self.origin))
            opened += self._write("reasoning_summary_part.added", part)
        self.reasoning.text += text
        piece = {**self._item_location(self.reasoning), "summary_index": 0, "delta": text}
        return opened + self._write("reasoning_summary_text.delta", piece)

    def _close_reasoning(self) -> bytes:
        # Reasoning with a signature becomes an item even without text.
        item, thoughts = self.reasoning, self.thoughts
        self.reasoning, self.thoughts = None, []
        if item is None:
            if not thoughts:
                return b""
            return self._add_whole(reasoning_item(self.head.item_id("rs_", self.item_count), "", thoughts, self.origin))
        location = {**self._item_location(item), "summary_index": 0}
        return b"".join(
            (
                self._write("reasoning_summary_text.done", {**location, "text": item.text}),
                self._write(
                    "reasoning_summary_part.done", {**location, "part": {"type": "summary_text", "text": item.text}}
                ),
                self._end(item.index, reasoning_item(item.id, item.text, thoughts, self.origin)),
            )
        )

    def _write_vendor(self, item: VendorItem) -> bytes:
        # OpenAI's own items arrive as events; replace each index by the item's position in our output.
        value, vendor_index = item.value, item.value.get("output_index")
        if vendor_index is None:
            return self._close_reasoning() + self._add_whole(value)
        event = str(value["type"]).removeprefix("response.")
        if event == "output_item.added":
            before = self._close_reasoning() + self._close_message()
            self.vendor_indexes[vendor_index] = self._next_index()
            return before + self._add(self.vendor_indexes[vendor_index], value["item"])
        if event == "output_item.done":
            return self._end(self.vendor_indexes[vendor_index], value["item"])
        fields = {name: field_value for name, field_value in value.items() if name not in ("type", "sequence_number")}
        return self._write(event, {**fields, "output_index": self.vendor_indexes[vendor_index]})

    def _open_message(self) -> bytes:
        if self.message is not None:
            return b""
        closed = self._close_reasoning()
        item = self.message = self._open_item("msg_")
        head = {**message_item(item.id, "", status="in_progress"), "content": []}
        part = {**self._item_location(item), "content_index": 0, "part": text_part("")}
        return closed + self._add(item.index, head) + self._write("content_part.added", part)

    def _write_text(self, text: str, logprobs: Sequence[Any] = ()) -> bytes:
        opened = self._open_message()
        assert self.message is not None  # noqa: S101 - opened above, for the type checker
        self.message.text += text
        self.message.logprobs += logprobs
        piece = {**self._item_location(self.message), "content_index": 0, "delta": text, "logprobs": list(logprobs)}
        return opened + self._write("output_text.delta", piece)

    def _write_refusal(self, text: str) -> bytes:
        opened = self._open_message()
        assert self.message is not None  # noqa: S101 - opened above, for the type checker
        if not self.message.refusal:
            part = {"type": "refusal", "refusal": ""}
            opened += self._write(
                "content_part.added", {**self._item_location(self.message), "content_index": 1, "part": part}
            )
        self.message.refusal += text
        return opened + self._write(
            "refusal.delta", {**self._item_location(self.message), "content_index": 1, "delta": text}
        )

    def _close_message(self) -> bytes:
        item, self.message = self.message, None
        if item is None:
            return b""
        location, part = {**self._item_location(item), "content_index": 0}, text_part(item.text)
        part |= {"annotations": item.annotations, "logprobs": item.logprobs}
        pieces = [
            self._write("output_text.done", {**location, "text": item.text, "logprobs": item.logprobs}),
            self._write("content_part.done", {**location, "part": part}),
        ]
        message = {**message_item(item.id, item.text), "content": [part]}
        if item.refusal:
            refusal = {"type": "refusal", "refusal": item.refusal}
            location = {**location, "content_index": 1}
            pieces.append(self._write("refusal.done", {**location, "refusal": item.refusal}))
            pieces.append(self._write("content_part.done", {**location, "part": refusal}))
            message["content"] = [part, refusal]
        return b"".join([*pieces, self._end(item.index, message)])

    def _write_call(self, piece: ToolCallDelta) -> bytes:
        opened = b""
        if piece.index not in self.calls:
            opened = self._close_reasoning() + self._close_message()
            index = self._next_index()
            identity = self.head.item_id("ctc_" if piece.custom else "fc_", index)
            call = OpenCall(index, identity, custom=piece.custom)
            call.call_id, call.name = piece.id or "", piece.name or ""
            self.calls[piece.index] = call
            opened += self._add(call.index, call_item(call.id, call.as_call(), self.namespaces, "in_progress"))
        call = self.calls[piece.index]
        call.name = call.name or piece.name or ""
        call.text += piece.arguments
        if not piece.arguments:
            return opened
        return opened + self._write(f"{_kind(call)}.delta", {**self._item_location(call), "delta": piece.arguments})

    def _close_call(self, call: OpenCall) -> bytes:
        key = "input" if call.custom else "arguments"
        item = call_item(call.id, call.as_call(), self.namespaces)
        name_field = {} if call.custom else {"name": item["name"]}
        done = self._write(f"{_kind(call)}.done", {**self._item_location(call), key: call.text, **name_field})
        return done + self._end(call.index, item)


def _kind(call: OpenCall) -> str:
    return "custom_tool_call_input" if call.custom else "function_call_arguments"
