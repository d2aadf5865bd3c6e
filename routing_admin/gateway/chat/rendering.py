"""Render answers in OpenAI's formats: a completion, and the chunks of a streamed completion."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import orjson

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import ToolCall
from capabilities.core.protocols.answer_fields import SERVICE_TIERS, URL_CITATION
from capabilities.core.protocols.thought_fields import message_fields, signature_field
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Annotation, Answer, AnswerDetails, Delta, Finish, Media, ToolCallDelta, Usage
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.chat_api import AnswerChoice
from routing_admin.gateway.errors import GatewayError, error_body
from routing_admin.gateway.reasoning_signatures import label_signature, label_thoughts
from routing_admin.platform.server.request_id import new_id

# Generated images are written in OpenRouter's format, audio in OpenAI's, and other media under `files`, in the format
# that requests use. `artifact` is the reference of the stored copy, if one could be stored.


def whole_media_json(media: Sequence[Media]) -> dict[str, Any]:
    """Return the message fields for generated media; only the first audio fits into `audio`, others become files."""
    sounds = [item for item in media if item.kind is Kind.AUDIO]
    fields = media_json([item for item in media if item not in sounds[:1]])
    return fields | ({"audio": _sound_json(sounds[0])} if sounds else {})


def media_json(media: Iterable[Media]) -> dict[str, list[dict[str, Any]]]:
    """Return the message fields for images and files; each image has an index."""
    images: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    for item in media:
        url = item.url or f"data:{item.mime_type};base64,{item.data}"
        if item.kind is Kind.IMAGE:
            numbered = {"index": len(images)}
            images.append({"type": "image_url", "image_url": {"url": url}, **numbered, **_reference(item)})
        else:
            files.append({"type": "file", "file": {"file_data": url}, **_reference(item)})
    return {name: entries for name, entries in (("images", images), ("files", files)) if entries}


def _sound_json(sound: Media) -> dict[str, Any]:
    # OpenAI's clients require all four fields. Audio without an expiry time is not stored by its vendor, so it counts
    # as expired.
    return {
        "id": sound.id or new_id("audio_"),
        "data": sound.data,
        "transcript": sound.transcript,
        "expires_at": sound.expires_at or int(time.time()),
        **_reference(sound),
    }


def sound_piece_json(sound: Media, reference: bool) -> dict[str, Any]:
    """Return the chunk fields for a piece of audio, or for the reference to the complete audio."""
    if reference:
        return {**({"id": sound.id} if sound.id else {}), **_reference(sound)}
    fields = {"id": sound.id, "data": sound.data, "transcript": sound.transcript, "expires_at": sound.expires_at}
    return {name: value for name, value in fields.items() if value}


def _reference(media: Media) -> dict[str, str]:
    return {"artifact": f"{REF_PREFIX}{media.artifact_id}"} if media.artifact_id else {}


DONE = b"data: [DONE]\n\n"
OLD_REASONS: Mapping[str, str] = MappingProxyType({"tool_calls": "function_call"})
"""Maps finish reasons to their names in the old `functions` API, if these differ."""


def completion_id() -> str:
    return new_id("chatcmpl-")


def usage_json(usage: Usage) -> dict[str, Any] | None:
    """Return the token counts that the provider reported, or None if it reported none."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None and completion is None and usage.total_tokens is None:
        return None
    total = usage.total_tokens if usage.total_tokens is not None else (prompt or 0) + (completion or 0)
    fields: dict[str, Any] = {"prompt_tokens": prompt or 0, "completion_tokens": completion or 0, "total_tokens": total}
    for name, details in TOKEN_DETAILS:
        counts = {kind: count for kind, read in details if (count := read(usage)) is not None}
        if counts:
            fields[name] = counts
    return fields


def _cache_creation(usage: Usage) -> dict[str, int] | None:
    # Only Anthropic reports cache writes by storage time, so these fields have Anthropic's names.
    short, long = usage.cache_write_5m_tokens, usage.cache_write_1h_tokens
    if short is None and long is None:
        return None
    return {"ephemeral_5m_input_tokens": short or 0, "ephemeral_1h_input_tokens": long or 0}


TOKEN_DETAILS: tuple[tuple[str, tuple[tuple[str, Callable[[Usage], Any]], ...]], ...] = (
    (
        "prompt_tokens_details",
        (
            ("cached_tokens", attrgetter("cached_tokens")),
            ("cache_write_tokens", attrgetter("cache_write_tokens")),
            ("cache_creation", _cache_creation),
            ("audio_tokens", attrgetter("prompt_audio_tokens")),
            ("image_tokens", attrgetter("prompt_image_tokens")),
            ("text_tokens", attrgetter("prompt_text_tokens")),
            ("tool_tokens", attrgetter("tool_tokens")),
        ),
    ),
    (
        "completion_tokens_details",
        (
            ("reasoning_tokens", attrgetter("reasoning_tokens")),
            ("audio_tokens", attrgetter("completion_audio_tokens")),
            ("image_tokens", attrgetter("completion_image_tokens")),
            ("text_tokens", attrgetter("completion_text_tokens")),
            ("accepted_prediction_tokens", attrgetter("accepted_prediction_tokens")),
            ("rejected_prediction_tokens", attrgetter("rejected_prediction_tokens")),
        ),
    ),
)
"""Maps OpenAI's names of token kinds to functions that read the count from `Usage`."""


def completion_json(answer: Answer, model: str, origin: str = "", *, old_calls: bool = False) -> dict[str, Any]:
    """Return a complete answer as JSON, in which `model` replaces the provider's own model name.

    `origin` labels reasoning that the next turn must send back to the same model. With `old_calls`, the first call is
    written as `function_call`, for a caller that sent `functions`.
    """
    message: dict[str, Any] = {
        "role": "assistant",
        # OpenAI sends null if the answer has tool calls or is a refusal.
        "content": answer.text or (None if answer.tool_calls or answer.refusal else ""),
        "refusal": answer.refusal,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.media:
        message |= whole_media_json(answer.media)
    if answer.annotations:
        message |= _cited_json(answer.annotations)
    if answer.tool_calls and old_calls:
        message["function_call"] = {"name": answer.tool_calls[0].name, "arguments": answer.tool_calls[0].arguments}
    elif answer.tool_calls:
        message["tool_calls"] = [_call_json(call, origin) for call in answer.tool_calls]
    if answer.thoughts:
        message |= message_fields(label_thoughts(answer.thoughts, origin))
    reason = OLD_REASONS.get(answer.finish_reason) if old_calls else None
    choice = {
        "index": 0,
        "message": message,
        "logprobs": answer.logprobs,
        "finish_reason": reason or answer.finish_reason,
    }
    choice |= _ending_json(answer.details)
    fields: dict[str, Any] = {
        "id": completion_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        **_details_json(answer.details),
    }
    usage = usage_json(answer.usage)
    return fields | {"usage": usage} if usage else fields


def merge_completions(bodies: Sequence[dict[str, Any]], usage: Usage) -> dict[str, Any]:
    """Return the first of several completions, with the choices of all completions and their summed usage."""
    choices = [{**body["choices"][0], "index": index} for index, body in enumerate(bodies)]
    summed = usage_json(usage)
    return {**bodies[0], "choices": choices, **({"usage": summed} if summed else {})}


def _details_json(details: AnswerDetails) -> dict[str, str]:
    tier = details.service_tier if details.service_tier in SERVICE_TIERS else None
    fields = {"service_tier": tier, "system_fingerprint": details.system_fingerprint}
    return {name: value for name, value in fields.items() if value}


def _cited_json(annotations: Sequence[Annotation]) -> Mapping[str, list[Annotation]]:
    # Clients with typed responses accept only web pages in `annotations`, so file citations are in a separate field.
    pages = [annotation for annotation in annotations if annotation.get("type") == URL_CITATION]
    files = [annotation for annotation in annotations if annotation.get("type") != URL_CITATION]
    return {name: entries for name, entries in (("annotations", pages), ("file_annotations", files)) if entries}


def _ending_json(details: AnswerDetails) -> dict[str, str]:
    # `native_finish_reason` is OpenRouter's field for the vendor's reason, `stop_reason` is vLLM's field for the stop
    # sequence.
    fields = {"native_finish_reason": details.stop_reason, "stop_reason": details.stop_sequence}
    return {name: value for name, value in fields.items() if value}


def _call_json(call: ToolCall, origin: str) -> dict[str, Any]:
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    fields: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    return fields | signature_field(label_signature(call.signature, origin))


@dataclass(slots=True)
class Chunks:
    """Writes a streamed completion as server-sent events."""

    model: str
    include_usage: bool = False
    old_calls: bool = False
    id: str = field(default_factory=completion_id)
    created: int = field(default_factory=lambda: int(time.time()))
    begun: bool = False
    origin: str = ""
    turn: AnsweredTurn = field(default_factory=AnsweredTurn)
    counts: dict[str, int] = field(default_factory=dict)
    choice: AnswerChoice | None = None
    _prefix: bytes = field(init=False)
    _suffix: bytes = field(init=False)

    def __post_init__(self) -> None:
        # Everything except the delta is the same in each chunk, so serialize it only once.
        if self.choice is not None:
            self.id = self.choice.of.id = self.choice.of.id or self.id
        self._prefix, self._suffix = self._write_chunk({"": 0}).split(b'{"":0}')

    def write_delta(self, delta: Delta) -> bytes:
        # Nearly all chunks contain only text, so write such chunks without building a dict.
        text, reasoning, refusal, calls, thoughts, logprobs, _ = delta
        if self.begun and text and not (reasoning or refusal or calls or thoughts or logprobs):
            return self._prefix + b'{"content":' + orjson.dumps(text) + b"}" + self._suffix
        fields: dict[str, Any] = {}
        if text:
            fields["content"] = text
        if reasoning:
            fields["reasoning_content"] = reasoning
        if refusal:
            fields["refusal"] = refusal
        if calls:
            fields |= _old_call_piece_json(calls) if self.old_calls else _call_pieces_json(calls, self.origin)
        if thoughts:
            fields |= message_fields(label_thoughts(thoughts, self.origin), len(self.turn.thoughts))
        self.turn.add(delta)
        if not (fields or logprobs):
            return b""
        return self._write_chunk(self._begin() | fields, logprobs=logprobs)

    def write_media(self, media: Sequence[Media]) -> bytes:
        fields = self._number(media_json(media))
        return self._write_chunk(self._begin() | fields) if fields else b""

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        return self._write_chunk(self._begin() | {"audio": sound_piece_json(sound, reference)})

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        return self._write_chunk(self._begin() | self._number(_cited_json(annotations)))

    def write_finish(self, finish: Finish) -> bytes:
        details = _details_json(finish.details)
        reason = OLD_REASONS.get(finish.finish_reason) if self.old_calls else None
        ending = _ending_json(finish.details)
        last = self._write_chunk(self._begin(), reason or finish.finish_reason, ending, details)
        counted = finish.usage
        if self.choice is not None:
            if not self.choice.of.end(counted):
                return last
            counted = self.choice.of.usage
        usage = usage_json(counted) if self.include_usage else None
        if usage is None:
            return last + DONE
        # With include_usage, OpenAI sends the usage in a final chunk without choices; all other chunks have null.
        usage_chunk: dict[str, Any] = {"choices": [], "usage": usage}
        return last + write_event(self._head_json() | usage_chunk | details) + DONE

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        if self.choice is not None:
            self.choice.of.fail(self.choice.index, error)
        return write_event(error_body(error, request_id))

    def _number(self, lists: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        # OpenAI's client merges deltas by `index`, so number the entries across all chunks.
        numbered = {}
        for name, entries in lists.items():
            first = self.counts.get(name, 0)
            self.counts[name] = first + len(entries)
            numbered[name] = [{**entry, "index": index} for index, entry in enumerate(entries, first)]
        return numbered

    def _begin(self) -> dict[str, Any]:
        if self.begun:
            return {}
        self.begun = True
        # OpenAI's first delta contains the role.
        return {"role": "assistant", "content": ""}

    def _write_chunk(
        self,
        delta: Mapping[str, Any],
        finish_reason: str | None = None,
        ending: Mapping[str, str] = MappingProxyType({}),
        details: Mapping[str, Any] = MappingProxyType({}),
        logprobs: Mapping[str, Any] | None = None,
    ) -> bytes:
        index = self.choice.index if self.choice is not None else 0
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason, **ending}
        usage = {"usage": None} if self.include_usage else {}
        return write_event({**self._head_json(), "choices": [choice], **usage, **details})

    def _head_json(self) -> dict[str, Any]:
        return {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}


def _call_pieces_json(calls: tuple[ToolCallDelta, ...], origin: str) -> dict[str, Any]:
    return {"tool_calls": [_call_piece_json(call, origin) for call in calls]}


def _old_call_piece_json(calls: tuple[ToolCallDelta, ...]) -> dict[str, Any]:
    # `function_call` can contain only one call.
    first = [call for call in calls if call.index == 0]
    if not first:
        return {}
    name = next((call.name for call in first if call.name is not None), None)
    name_field = {} if name is None else {"name": name}
    return {"function_call": {**name_field, "arguments": "".join(call.arguments for call in first)}}


def _call_piece_json(call: ToolCallDelta, origin: str) -> dict[str, Any]:
    if call.custom:
        custom = {"input": call.arguments} | ({"name": call.name} if call.name is not None else {})
        begun = {"id": call.id, "type": "custom"} if call.id is not None else {}
        return {"index": call.index, **begun, "custom": custom}
    function = {"arguments": call.arguments} | ({"name": call.name} if call.name is not None else {})
    identity = {"id": call.id, "type": "function"} if call.id is not None else {}
    proof = signature_field(label_signature(call.signature, origin))
    return {"index": call.index, **identity, "function": function, **proof}


def write_event(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
