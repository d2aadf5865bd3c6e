"""Stream an answer as events of Anthropic's Messages API: a sequence of blocks, each opened and closed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

import orjson

from capabilities.core.json_codec import read_json
from capabilities.core.message import VendorItem
from capabilities.core.protocols.anthropic.replies import DIALECT
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.wire import Annotation, Delta, Finish, Media, ToolCallDelta
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.messages.blocks import PROTOCOL
from routing_admin.gateway.messages.rendering import (
    call_json,
    end_json,
    error_json,
    head_json,
    list_citations,
    media_text,
    message_id,
    own_citation,
    usage_json,
)
from routing_admin.gateway.messages.thinking_blocks import UNSIGNED, build_block, is_carrier
from routing_admin.gateway.reasoning_signatures import label_signature

COMPLETION_CHECKS = 8
"""Maximum number of attempts to find the end of a call's arguments by parsing them.

After that, the call stays open until the next call begins.
"""


class BlockKind(StrEnum):
    NONE = ""
    TEXT = "text"
    THINKING = "thinking"
    CALL = "tool_use"
    VENDOR = "vendor"


@dataclass(slots=True)
class CallBlock:
    """A tool call with the chunks of its arguments that have arrived so far."""

    id: str
    name: str
    custom: bool = False
    caller: Mapping[str, Any] | None = None
    pieces: list[str] = field(default_factory=list)
    checks: int = COMPLETION_CHECKS
    checked: int = 0

    def is_complete(self, *, followed: bool) -> bool:
        """Return whether all arguments have arrived, usually because they form a complete JSON object.

        A custom tool's arguments have no recognisable end, and a tool without parameters may receive no arguments (some
        hosts send ""). Vendors send calls one after another, so such a call is complete once the arguments of a later
        call have begun (`followed`).
        """
        if self.custom or not self.pieces:
            return followed
        if not self.checks or len(self.pieces) == self.checked:
            return False
        self.checked = len(self.pieces)
        # Parsing is expensive, so try it only where an object may end.
        if not self.pieces[-1].rstrip().endswith("}"):
            return False
        self.checks -= 1
        try:
            return isinstance(read_json("".join(self.pieces)), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(slots=True)
class MessageEvents:
    """Writes the events of a streamed message.

    Content blocks cannot overlap: while a call's block is open and its arguments are incomplete, everything else waits
    in `queue`, in order. Another vendor's reasoning waits in `carriers` until a block follows it, because clients treat
    a message that ends with such reasoning as empty.
    """

    model: str
    origin: str = ""
    turn: AnsweredTurn = field(default_factory=AnsweredTurn)
    id: str = field(default_factory=message_id)
    begun: bool = False
    index: int = -1
    kind: BlockKind = BlockKind.NONE
    call: CallBlock | None = None
    calls: dict[int, CallBlock] = field(default_factory=dict)
    queue: deque[CallBlock | Callable[[], bytes]] = field(default_factory=deque)
    has_own_citations: bool = False
    thinks: bool = True
    carriers: list[ReasoningBlock] = field(default_factory=list)

    def write_delta(self, delta: Delta) -> bytes:
        self.turn.add(delta)
        pieces = [self._begin()]
        if self.thinks and (delta.reasoning or delta.thoughts):
            pieces.append(self._write_thinking(delta))
        if self.carriers and (delta.text or delta.refusal or delta.tool_calls):
            pieces.append(self._write_carriers())
        items = (item for item in delta.vendor if item.protocol == PROTOCOL)
        pieces += [self._put(partial(self._write_vendor, item)) for item in items]
        if delta.text or delta.refusal:
            pieces.append(
                self._write_content(BlockKind.TEXT, {"type": "text_delta", "text": delta.text + delta.refusal})
            )
        pieces += [self._write_call(piece) for piece in delta.tool_calls]
        return b"".join(pieces)

    def _write_thinking(self, delta: Delta) -> bytes:
        pieces = []
        if delta.reasoning:
            pieces.append(self._write_carriers())
            pieces.append(
                self._write_content(BlockKind.THINKING, {"type": "thinking_delta", "thinking": delta.reasoning})
            )
        for thought in delta.thoughts:
            if is_carrier(thought):
                self.carriers.append(thought)
            else:
                pieces += [self._write_carriers(), self._put(partial(self._write_thought, thought))]
        return b"".join(pieces)

    def _write_carriers(self) -> bytes:
        thoughts, self.carriers = self.carriers, []
        return b"".join(self._put(partial(self._write_thought, thought)) for thought in thoughts)

    def write_media(self, media: Sequence[Media]) -> bytes:
        if not (text := media_text(media)):
            return b""
        pieces = (self._write_carriers(), self._write_content(BlockKind.TEXT, {"type": "text_delta", "text": text}))
        return self._begin() + b"".join(pieces)

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        # The Messages API has no audio, so send only a reference to the complete audio.
        return self.write_media([sound]) if reference else b""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        citations = () if self.has_own_citations else list_citations(annotations)
        pieces = (
            self._write_content(BlockKind.TEXT, {"type": "citations_delta", "citation": citation})
            for citation in citations
        )
        return self._begin() + b"".join(pieces)

    def write_finish(self, finish: Finish) -> bytes:
        pieces = [self._begin(), self._advance(final=True), self._close()]
        usage = usage_json(finish.usage, finish.details.service_tier)
        extras = dict(finish.details.vendor or {})
        end = end_json(finish.finish_reason, finish.details)
        # Anthropic puts `container` inside the delta and all other fields beside it.
        if "container" in extras:
            end["container"] = extras.pop("container")
        delta = {"delta": end, "usage": usage, **extras}
        pieces.append(_write("message_delta", delta))
        return b"".join([*pieces, _write("message_stop", {})])

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        return b"event: error\ndata: " + orjson.dumps(error_json(error, request_id)) + b"\n\n"

    def _begin(self) -> bytes:
        if self.begun:
            return b""
        self.begun = True
        return _write("message_start", {"message": head_json(self.id, self.model)})

    def _write_vendor(self, item: VendorItem) -> bytes:
        value = item.value
        kind = value.get("type")
        if kind == "content_block_start":
            return self._open(BlockKind.VENDOR, value["content_block"])
        if kind == "content_block_stop":
            return self._close()
        if kind != "content_block_delta":
            return self._open(BlockKind.VENDOR, value) + self._close()
        if self.kind is BlockKind.VENDOR:
            return self._continue(value["delta"])
        # The model's own citations have been passed on, so do not add ours.
        self.has_own_citations = True
        citation = own_citation(value["delta"].get("citation"))
        return self._write_content_now(BlockKind.TEXT, {**value["delta"], "citation": citation}) if citation else b""

    def _write_content(self, kind: BlockKind, delta: dict[str, Any]) -> bytes:
        # Content that follows an open call must wait until the call is complete.
        if self.call is not None or self.queue:
            return self._put(partial(self._write_content_now, kind, delta))
        return self._continue(delta) if self.kind is kind else self._write_content_now(kind, delta)

    def _write_content_now(self, kind: BlockKind, delta: dict[str, Any]) -> bytes:
        before = b"" if self.kind is kind else self._open(kind, EMPTY[kind])
        return before + self._continue(delta)

    def _open(self, kind: BlockKind, block: dict[str, Any]) -> bytes:
        closed = self._close()
        self.index, self.kind = self.index + 1, kind
        return closed + _write("content_block_start", {"index": self.index, "content_block": block})

    def _continue(self, delta: dict[str, Any]) -> bytes:
        return _write("content_block_delta", {"index": self.index, "delta": delta})

    def _close(self, signature: str | None = None) -> bytes:
        # Clients drop unsigned thinking, so use a constant if there is no signature.
        kind, self.kind = self.kind, BlockKind.NONE
        if kind is BlockKind.NONE:
            return b""
        proof = {"type": "signature_delta", "signature": signature or UNSIGNED}
        signed = self._continue(proof) if kind is BlockKind.THINKING else b""
        return signed + _write("content_block_stop", {"index": self.index})

    def _write_thought(self, thought: ReasoningBlock) -> bytes:
        # Anthropic's signature ends the preceding thinking block. Any other reasoning data is a block of its own.
        signed = thought.dialect == DIALECT and thought.form is ThoughtForm.TEXT
        if not signed:
            return self._open(BlockKind.NONE, build_block(thought, self.origin)) + self._stop()
        pieces = []
        if self.kind is not BlockKind.THINKING:
            pieces.append(
                self._write_content_now(BlockKind.THINKING, {"type": "thinking_delta", "thinking": thought.text})
            )
        return b"".join([*pieces, self._close(label_signature(thought.proof, self.origin))])

    def _stop(self) -> bytes:
        return _write("content_block_stop", {"index": self.index})

    def _write_call(self, piece: ToolCallDelta) -> bytes:
        call = self.calls.get(piece.index)
        if call is None:
            call = self.calls[piece.index] = CallBlock(piece.id or "", piece.name or "", piece.custom, piece.caller)
            self.queue.append(call)
        call.name = call.name or piece.name or ""
        if piece.arguments:
            call.pieces.append(piece.arguments)
        return self._write_arguments(piece.arguments) if call is self.call else self._advance()

    def _put(self, write: Callable[[], bytes]) -> bytes:
        self.queue.append(write)
        return self._advance()

    def _advance(self, *, final: bool = False) -> bytes:
        # Write events up to the first call that is incomplete or unnamed; at the end of the answer, write all events.
        written: list[bytes] = []
        while self.queue and (self.call is None or final or self.call.is_complete(followed=self._is_followed())):
            if self.call is not None:
                self.call = None
                written.append(self._close())
            entry = self.queue[0]
            if isinstance(entry, CallBlock):
                if not (entry.name or final):
                    break
                self.call = entry
                written.append(self._open(BlockKind.CALL, call_json(entry.id, entry.name, {}, entry.caller)))
                written.append(self._write_arguments("".join(entry.pieces)))
            else:
                written.append(entry())
            self.queue.popleft()
        return b"".join(written)

    def _is_followed(self) -> bool:
        return any(isinstance(entry, CallBlock) and entry.pieces for entry in self.queue)

    def _write_arguments(self, arguments: str) -> bytes:
        return self._continue({"type": "input_json_delta", "partial_json": arguments}) if arguments else b""


EMPTY: dict[BlockKind, dict[str, Any]] = {
    BlockKind.TEXT: {"type": "text", "text": ""},
    BlockKind.THINKING: {"type": "thinking", "thinking": "", "signature": ""},
}
"""Initial content of text and thinking blocks."""


def _write(event: str, fields: dict[str, Any]) -> bytes:
    return b"event: " + event.encode() + b"\ndata: " + orjson.dumps({"type": event, **fields}) + b"\n\n"
