"""Encode requests for OpenAI's Responses API. OpenAI stores the response only if the caller requests it."""

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
    interleave,
)
from capabilities.core.protocols.answer_fields import headers_for, merge
from capabilities.core.protocols.dialects import openai_dialects
from capabilities.core.protocols.media import address, join_text_parts, list_native_parts, placeholder, result_parts
from capabilities.core.protocols.openai_responses import replies
from capabilities.core.protocols.openai_responses.options import build_parameters, encode_breakpoint
from capabilities.core.protocols.openai_responses.stream import ItemEventReader
from capabilities.core.protocols.parameters import end_with_user
from capabilities.core.protocols.schema import find_schema, fit_request, instruction, wants_json
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
    """The protocol `openai-responses`. For `clock`, see the class `OpenAI`."""

    name: str = "openai-responses"
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        quirks = quirks_for(target.endpoint, target.quirks)
        dialects = openai_dialects(target.endpoint)
        moved: tuple[str, ...] = ()
        if dialects:
            has_field = quirk(quirks, "structured", "openai-responses") == "json_schema"
            chat, moved, _ = fit_request(chat, dialects, has_field=has_field)
        parameters, dropped = build_parameters(chat, target.model, quirks, stream=stream)
        chat, unended = end_with_user(chat, target)
        items = [*_instruction_items(chat, quirks), *_items(chat.messages, quirks, target.origin(self.name))]
        payload = merge({"model": target.model, "input": items, **parameters}, target.extra_body)
        headers = headers_for(target, "authorization", stream=stream)
        dropped += moved + unended
        return UpstreamRequest(call_url(target.endpoint, CALL), headers, payload, dropped_params=dropped)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        return replies.decode(status, headers, body, self.clock())

    def decoder(self) -> StreamDecoder:
        return EventStream(ItemEventReader(), lambda body: self.decode(200, {}, body))


def _instruction_items(chat: ChatRequest, quirks: Mapping[str, Any]) -> Items:
    structured, shape = quirk(quirks, "structured", "openai-responses"), chat.response_format
    if (
        not wants_json(shape)
        or structured == "json_schema"
        or (structured == "json_object" and find_schema(shape) is None)
    ):
        return []
    return [{"type": "message", "role": "system", "content": instruction(shape)}]


def _items(messages: Sequence[Message], quirks: Mapping[str, Any], origin: str) -> Iterator[dict[str, Any]]:
    # Files that an item cannot contain are sent in a user message, after all consecutive tool results.
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
    return list_native_parts(message)


def _hoist(parts: list[NativePart]) -> dict[str, Any]:
    content = [{"type": "input_text", "text": HOISTED}, *(_native(part) for part in parts)]
    return {"type": "message", "role": "user", "content": content}


def _assistant(message: Message, origin: str) -> Iterator[dict[str, Any]]:
    text, offset, sent_calls = join_text_parts(message.parts), 0, 0
    # Send back only this model's own reasoning, in its original position. Reasoning of other models would be rejected.
    for group in _group(interleave(message.thoughts, message.vendor, origin)):
        first = group if isinstance(group, VendorItem) else group[0]
        yield from _text_items(text[offset : first.offset])
        yield from (_call(call) for call in message.tool_calls[sent_calls : first.calls])
        yield group.value if isinstance(group, VendorItem) else _reasoning(group)
        offset, sent_calls = max(offset, first.offset), max(sent_calls, first.calls)
    yield from _text_items(text[offset:])
    yield from (_call(call) for call in message.tool_calls[sent_calls:])


def _group(woven: Sequence[ReasoningBlock | VendorItem]) -> Iterator[list[ReasoningBlock] | VendorItem]:
    group: list[ReasoningBlock] = []
    for item in woven:
        if isinstance(item, VendorItem):
            yield item
            continue
        group.append(item)
        # The encrypted part follows the summary and ends a reasoning item.
        if item.form is ThoughtForm.ENCRYPTED:
            yield group
            group = []


def _reasoning(thoughts: Sequence[ReasoningBlock]) -> dict[str, Any]:
    last = thoughts[-1]
    summary = [{"type": "summary_text", "text": thought.text} for thought in thoughts[:-1]]
    id_field = {"id": last.id} if last.id else {}
    return {"type": "reasoning", **id_field, "summary": summary, "encrypted_content": last.proof}


def _text_items(text: str) -> Items:
    return [{"type": "message", "role": "assistant", "content": text}] if text else []


def _call(call: ToolCall) -> dict[str, Any]:
    call_fields = {"call_id": call.id, "name": call.name}
    if call.custom:
        return {"type": "custom_tool_call", **call_fields, "input": call.arguments}
    return {"type": "function_call", **call_fields, "arguments": call.arguments}


def _result(message: Message, quirks: Mapping[str, Any], *, custom: bool) -> dict[str, Any]:
    tool_media = quirk(quirks, "tool_media", "openai-responses")
    parts = [part for part in result_parts(message) if tool_media == "native" or isinstance(part, TextPart)]
    if tool_media == "text":
        parts += [TextPart(placeholder(part)) for part in list_native_parts(message)]
    kind = "custom_tool_call_output" if custom else "function_call_output"
    return {"type": kind, "call_id": message.tool_call_id or "", "output": _content(tuple(parts), quirks)}


def _content(parts: tuple[Part, ...], quirks: Mapping[str, Any]) -> Any:
    has_marks = any(encode_breakpoint(part.cache, quirks) for part in parts)
    if not has_marks and not any(isinstance(part, NativePart) for part in parts):
        return join_text_parts(parts)
    return [
        ({"type": "input_text", "text": part.text} if isinstance(part, TextPart) else _native(part))
        | encode_breakpoint(part.cache, quirks)
        for part in parts
        if isinstance(part, NativePart) or (isinstance(part, TextPart) and part.text)
    ]


def _native(part: NativePart) -> dict[str, Any]:
    closely = {"detail": part.detail} if part.detail else {}
    if part.kind is Kind.IMAGE:  # OpenAI's types, which other hosts (vLLM) use, require the field `detail`.
        return {"type": "input_image", "image_url": address(part), "detail": part.detail or "auto"}
    if part.kind in (Kind.AUDIO, Kind.VIDEO):
        return {"type": "input_text", "text": placeholder(part)}
    if part.blob is None:
        return {"type": "input_file", "file_url": part.url or "", **closely}
    return {"type": "input_file", "filename": part.filename or "file", "file_data": address(part), **closely}
