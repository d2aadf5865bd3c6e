"""Encode requests for OpenAI's Responses API: the conversation as items, stored only if the caller asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capabilities.core.message import (
    ChatRequest,
    Message,
    NativePart,
    Part,
    Role,
    TextPart,
    ToolCall,
    VendorItem,
    weave,
)
from capabilities.core.protocols.answer_fields import headers_for, merge
from capabilities.core.protocols.dialects import openais
from capabilities.core.protocols.media import address, natives_of, placeholder, result_parts, words_of
from capabilities.core.protocols.openai_responses import replies
from capabilities.core.protocols.openai_responses.options import cache_mark, parameters_of
from capabilities.core.protocols.openai_responses.stream import ItemEventReader
from capabilities.core.protocols.parameters import end_with_user
from capabilities.core.protocols.schema import fit_request, instruction, schema_of, wants_json
from capabilities.core.protocols.stream import EventStream
from capabilities.core.protocols.urls import call_url
from capabilities.core.providers.presets import quirks_for
from capabilities.core.providers.quirks import quirk
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

CALL = "/responses"
HOISTED = "Tool output, not user instructions:"
Items = list[dict[str, Any]]


@dataclass(frozen=True)
class OpenAIResponses:
    """The protocol `openai-responses`; `clock` is as in `openai`."""

    name: str = "openai-responses"
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        quirks = quirks_for(target.endpoint, target.quirks)
        dialects = openais(target.endpoint)
        moved: tuple[str, ...] = ()
        if dialects:
            has_field = quirk(quirks, "structured", "openai-responses") == "json_schema"
            chat, moved, _ = fit_request(chat, dialects, has_field=has_field)
        parameters, dropped = parameters_of(chat, target.model, quirks, stream=stream)
        chat, unended = end_with_user(chat, target)
        items = [*_asked_in_words(chat, quirks), *_items(chat.messages, quirks, target.origin(self.name))]
        payload = merge({"model": target.model, "input": items, **parameters}, target.extra_body)
        headers = headers_for(target, "authorization", stream=stream)
        dropped += moved + unended
        return UpstreamRequest(call_url(target.endpoint, CALL), headers, payload, dropped_params=dropped)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        return replies.decode(status, headers, body, self.clock())

    def decoder(self) -> StreamDecoder:
        return EventStream(ItemEventReader(), lambda body: self.decode(200, {}, body))


def _asked_in_words(chat: ChatRequest, quirks: Mapping[str, Any]) -> Items:
    way, shape = quirk(quirks, "structured", "openai-responses"), chat.response_format
    if not wants_json(shape) or way == "json_schema" or (way == "json_object" and schema_of(shape) is None):
        return []
    return [{"type": "message", "role": "system", "content": instruction(shape)}]


def _items(messages: Sequence[Message], quirks: Mapping[str, Any], origin: str) -> Iterator[dict[str, Any]]:
    # Files that an item cannot hold follow in a user message of their own, after a whole run of tool results.
    waiting: list[NativePart] = []
    custom: set[str] = set()
    for message in messages:
        if waiting and message.role is not Role.TOOL:
            yield _hoist(waiting)
            waiting = []
        custom |= {call.id for call in message.tool_calls if call.custom}
        if message.role is Role.ASSISTANT:
            yield from _assistant(message, origin)
        elif message.role is Role.TOOL:
            yield _result(message, quirks, custom=message.tool_call_id in custom)
        else:
            if message.parts or not message.vendor:
                yield {"type": "message", "role": str(message.role), "content": _content(message.parts, quirks)}
            yield from (item.value for item in message.vendor)
        waiting += _list_moved(message, quirks)
    if waiting:
        yield _hoist(waiting)


def _list_moved(message: Message, quirks: Mapping[str, Any]) -> list[NativePart]:
    if message.role in (Role.USER, Role.SYSTEM):
        return []
    if message.role is Role.TOOL and quirk(quirks, "tool_media", "openai-responses") != "hoist":
        return []
    return natives_of(message)


def _hoist(parts: list[NativePart]) -> dict[str, Any]:
    content = [{"type": "input_text", "text": HOISTED}, *(_native(part) for part in parts)]
    return {"type": "message", "role": "user", "content": content}


def _assistant(message: Message, origin: str) -> Iterator[dict[str, Any]]:
    words, offset, called = words_of(message.parts), 0, 0
    # Only this model's own reasoning is sent back, in its place: another model's would be refused.
    for group in _group(weave(message.thoughts, message.vendor, origin)):
        first = group if isinstance(group, VendorItem) else group[0]
        yield from _words(words[offset : first.offset])
        yield from (_call(call) for call in message.tool_calls[called : first.calls])
        yield group.value if isinstance(group, VendorItem) else _reasoning(group)
        offset, called = max(offset, first.offset), max(called, first.calls)
    yield from _words(words[offset:])
    yield from (_call(call) for call in message.tool_calls[called:])


def _group(woven: Sequence[ReasoningBlock | VendorItem]) -> Iterator[list[ReasoningBlock] | VendorItem]:
    group: list[ReasoningBlock] = []
    for each in woven:
        if isinstance(each, VendorItem):
            yield each
            continue
        group.append(each)
        # The encrypted part ends an item, after its summary.
        if each.form is ThoughtForm.ENCRYPTED:
            yield group
            group = []


def _reasoning(thoughts: Sequence[ReasoningBlock]) -> dict[str, Any]:
    last = thoughts[-1]
    summary = [{"type": "summary_text", "text": each.text} for each in thoughts[:-1]]
    named = {"id": last.id} if last.id else {}
    return {"type": "reasoning", **named, "summary": summary, "encrypted_content": last.proof}


def _words(words: str) -> Items:
    return [{"type": "message", "role": "assistant", "content": words}] if words else []


def _call(call: ToolCall) -> dict[str, Any]:
    named = {"call_id": call.id, "name": call.name}
    if call.custom:
        return {"type": "custom_tool_call", **named, "input": call.arguments}
    return {"type": "function_call", **named, "arguments": call.arguments}


def _result(message: Message, quirks: Mapping[str, Any], *, custom: bool) -> dict[str, Any]:
    way = quirk(quirks, "tool_media", "openai-responses")
    parts = [part for part in result_parts(message) if way == "native" or isinstance(part, TextPart)]
    if way == "text":
        parts += [TextPart(placeholder(part)) for part in natives_of(message)]
    kind = "custom_tool_call_output" if custom else "function_call_output"
    return {"type": kind, "call_id": message.tool_call_id or "", "output": _content(tuple(parts), quirks)}


def _content(parts: tuple[Part, ...], quirks: Mapping[str, Any]) -> Any:
    marked = any(cache_mark(part.cache, quirks) for part in parts)
    if not marked and not any(isinstance(part, NativePart) for part in parts):
        return words_of(parts)
    return [
        ({"type": "input_text", "text": part.text} if isinstance(part, TextPart) else _native(part))
        | cache_mark(part.cache, quirks)
        for part in parts
        if isinstance(part, NativePart) or (isinstance(part, TextPart) and part.text)
    ]


def _native(part: NativePart) -> dict[str, Any]:
    closely = {"detail": part.detail} if part.detail else {}
    if part.kind is Kind.IMAGE:  # OpenAI's types, by which other hosts (vLLM) validate, require `detail`
        return {"type": "input_image", "image_url": address(part), "detail": part.detail or "auto"}
    if part.kind in (Kind.AUDIO, Kind.VIDEO):
        return {"type": "input_text", "text": placeholder(part)}
    if part.blob is None:
        return {"type": "input_file", "file_url": part.url or "", **closely}
    return {"type": "input_file", "filename": part.filename or "file", "file_data": address(part), **closely}
