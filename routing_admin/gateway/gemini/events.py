"""Stream an answer in Gemini's format.

Each chunk is a complete response; the last one contains the finish reason and the usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from capabilities.core.message import METADATA
from capabilities.core.protocols.gemini.replies import PROTOCOL
from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.wire import Annotation, Delta, Finish, Media, ToolCallDelta, Usage
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.chat_api import AnswerChoice
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.gemini.rendering import (
    call_part,
    error_json,
    finish_reason,
    grounding_json,
    has_sources,
    logprobs_json,
    media_parts,
    metadata_json,
    own_part,
    response_id,
    usage_json,
    write_signature,
)
from routing_admin.gateway.messages.events import CallBlock


@dataclass(slots=True, kw_only=True)
class GeminiChunks:
    """Writes an answer as server-sent events or, with `as_list`, as elements of a JSON list.

    If the answer is one of several (`choice`), a comma precedes each element, and `enclose_list` adds the brackets.
    `calls` collects calls until their arguments are complete; a call is held back while an earlier one is incomplete.
    `thoughts` is reasoning for the next part's signature. If `is_grounded`, the model's own grounding metadata was
    sent, so ours is omitted.
    """

    model: str
    origin: str = ""
    shows_thoughts: bool = False
    as_list: bool = False
    choice: AnswerChoice | None = None
    turn: AnsweredTurn = field(default_factory=AnsweredTurn)
    id: str = field(default_factory=response_id)
    begun: bool = False
    text: list[str] = field(default_factory=list)
    thoughts: list[ReasoningBlock] = field(default_factory=list)
    calls: dict[int, CallBlock] = field(default_factory=dict)
    signatures: dict[int, str | None] = field(default_factory=dict)
    sent: int = 0
    is_grounded: bool = False

    def __post_init__(self) -> None:
        # All answers to a request share one id.
        if self.choice is not None:
            self.id = self.choice.of.id = self.choice.of.id or self.id
            self.begun = True

    def write_delta(self, delta: Delta) -> bytes:
        self.turn.add(delta)
        self.thoughts += delta.thoughts
        items = [item for item in delta.vendor if item.protocol == PROTOCOL]
        parts = [own_part(item, self.origin) for item in items if item.name != METADATA]
        metadata = metadata_json(items)
        self.is_grounded |= has_sources(metadata)
        if delta.reasoning and self.shows_thoughts:
            parts.append({"text": delta.reasoning, "thought": True})
        if delta.text or delta.refusal:
            self.text.append(delta.text)
            parts.append({"text": delta.text + delta.refusal, **self._sign(None)})
        for piece in delta.tool_calls:
            self._add_call(piece)
        if delta.tool_calls:
            parts += self._take_calls()
        extras = {**metadata, **logprobs_json(delta.logprobs)}
        return self._write(parts, extras) if parts or metadata else b""

    def write_media(self, media: Sequence[Media]) -> bytes:
        parts = [part for item in media for part in media_parts(item)]
        return self._write(parts) if parts else b""

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        if not reference:
            return self.write_media([sound]) if sound.data else b""
        return self.write_media([Media(sound.kind, sound.mime_type, artifact_id=sound.artifact_id)])

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        grounding = {} if self.is_grounded else grounding_json(annotations, "".join(self.text))
        return self._write([], grounding) if grounding else b""

    def write_finish(self, finish: Finish) -> bytes:
        parts = self._take_calls(final=True)
        if self.thoughts:
            parts.append({"text": "", **self._sign(None)})
        reason = {"finishReason": finish_reason(finish.finish_reason, finish.details)}
        usage: Usage | None = finish.usage
        if self.choice is not None:
            usage = self.choice.of.usage if self.choice.of.end(finish.usage) else None
        return self._end(self._write(parts or [{"text": ""}], reason, usage_json(usage) if usage else {}))

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        if self.choice is not None:
            self.choice.of.fail(self.choice.index, error)
        return self._end(self._frame(error_json(error, request_id)))

    def _write(
        self,
        parts: list[dict[str, Any]],
        extras: Mapping[str, Any] | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> bytes:
        index = self.choice.index if self.choice is not None else 0
        candidate = {"content": {"parts": parts, "role": "model"}, **(extras or {}), "index": index}
        chunk = {"candidates": [candidate], **(usage or {}), "modelVersion": self.model, "responseId": self.id}
        return self._frame(chunk)

    def _frame(self, value: Mapping[str, Any]) -> bytes:
        data = orjson.dumps(value)
        if not self.as_list:
            return b"data: " + data + b"\r\n\r\n"
        before, self.begun = (b",\r\n" if self.begun else b"["), True
        return before + data

    def _end(self, last: bytes) -> bytes:
        return last + b"]" if self.as_list and self.choice is None else last

    def _sign(self, proof: str | None) -> dict[str, str]:
        thoughts, self.thoughts = self.thoughts, []
        return write_signature(thoughts, proof, self.origin)

    def _add_call(self, piece: ToolCallDelta) -> None:
        call = self.calls.get(piece.index)
        if call is None:
            call = self.calls[piece.index] = CallBlock(piece.id or "", piece.name or "", piece.custom)
        call.name = call.name or piece.name or ""
        self.signatures[piece.index] = self.signatures.get(piece.index) or piece.signature
        if piece.arguments:
            call.pieces.append(piece.arguments)

    def _take_calls(self, *, final: bool = False) -> list[dict[str, Any]]:
        # Gemini's format has no partial calls, so send the calls in order, each when it is complete, and all remaining
        # calls at the end of the answer.
        parts = []
        pending = [*self.calls.items()][self.sent :]
        for position, (index, call) in enumerate(pending, 1):
            followed = any(later.pieces for _, later in pending[position:])
            if not final and not (call.name and call.is_complete(followed=followed)):
                break
            self.sent += 1
            part = call_part(call.id, call.name, "".join(call.pieces), custom=call.custom)
            parts.append({**part, **self._sign(self.signatures[index])})
        return parts
