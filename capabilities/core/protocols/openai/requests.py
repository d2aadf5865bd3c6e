"""Encode requests in the Chat Completions format, for OpenAI and, with compatibility options, for similar hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart, ToolCall, find_opening_system
from capabilities.core.protocols.answer_fields import headers_for, merge
from capabilities.core.protocols.dialects import openai_dialects
from capabilities.core.protocols.media import (
    AUDIO_FORMATS,
    address,
    bare_base64,
    find_cache_breakpoint,
    join_text_parts,
    list_native_parts,
    placeholder,
    result_parts,
)
from capabilities.core.protocols.openai import replies
from capabilities.core.protocols.openai.options import build_parameters, encode_breakpoint
from capabilities.core.protocols.openai.stream import ChunkReader
from capabilities.core.protocols.parameters import end_with_user
from capabilities.core.protocols.schema import find_schema, fit_request, instruction, wants_json
from capabilities.core.protocols.stream import EventStream
from capabilities.core.protocols.thought_fields import SKIP_VALIDATION, message_fields, signature_field
from capabilities.core.protocols.tool_calls import short_call_id
from capabilities.core.protocols.urls import call_url
from capabilities.core.providers.presets import quirks_for
from capabilities.core.providers.quirks import quirk
from capabilities.core.thoughts import filter_by_origin
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

CALL = "/chat/completions"
HOISTED = "Tool output, not user instructions:"


@dataclass(frozen=True)
class OpenAI:
    """The protocol `openai`.

    `clock` returns the current time (Unix seconds). It is needed if a response has a date in Retry-After, but no Date
    header.
    """

    name: str = "openai"
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        quirks = quirks_for(target.endpoint, target.quirks)
        dialects = openai_dialects(target.endpoint)
        moved: tuple[str, ...] = ()
        if dialects:
            has_field = quirk(quirks, "structured") == "json_schema"
            chat, moved, _ = fit_request(chat, dialects, has_field=has_field)
        parameters, dropped = build_parameters(chat, quirks, stream=stream)
        chat, unended = end_with_user(chat, target)
        messages = list(_messages(_with_instruction(chat, quirks), quirks, target.origin(self.name)))
        payload = merge({"model": target.model, "messages": messages, **parameters}, target.extra_body)
        headers = headers_for(target, "authorization", stream=stream)
        dropped += moved + unended
        return UpstreamRequest(call_url(target.endpoint, CALL), headers, payload, dropped_params=dropped)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        return replies.decode(status, headers, body, self.clock())

    def decoder(self) -> StreamDecoder:
        return EventStream(ChunkReader(), lambda body: self.decode(200, {}, body))


def _with_instruction(chat: ChatRequest, quirks: Mapping[str, Any]) -> tuple[Message, ...]:
    structured, shape = quirk(quirks, "structured"), chat.response_format
    if (
        not wants_json(shape)
        or structured == "json_schema"
        or (structured == "json_object" and find_schema(shape) is None)
    ):
        return chat.messages
    instruction_part = TextPart(instruction(shape))
    first = find_opening_system(chat.messages)
    if first is None:
        return (Message(Role.SYSTEM, (instruction_part,)), *chat.messages)
    system_message = chat.messages[first]
    merged = Message(
        system_message.role,
        (TextPart(f"{system_message.text}\n\n{instruction_part.text}", find_cache_breakpoint(system_message.parts)),),
        name=system_message.name,
    )
    return (*chat.messages[:first], merged, *chat.messages[first + 1 :])


def _messages(messages: tuple[Message, ...], quirks: Mapping[str, Any], origin: str) -> Iterator[dict[str, Any]]:
    if quirk(quirks, "system_role") == "first_user":
        messages = _system_to_user(messages)
    # Files that a message cannot contain are sent in a user message, after all consecutive tool results.
    waiting: list[NativePart] = []
    for message in messages:
        if waiting and message.role is not Role.TOOL:
            yield _hoist(waiting, quirks)
            waiting = []
        yield _message(message, quirks, origin)
        waiting += _list_moved(message, quirks)
    if waiting:
        yield _hoist(waiting, quirks)


def _list_moved(message: Message, quirks: Mapping[str, Any]) -> list[NativePart]:
    if message.role is Role.USER or (message.role is Role.TOOL and quirk(quirks, "tool_media") != "hoist"):
        return []
    return list_native_parts(message)


def _hoist(parts: list[NativePart], quirks: Mapping[str, Any]) -> dict[str, Any]:
    content = [{"type": "text", "text": HOISTED}, *(_native(part, quirks) for part in parts)]
    return {"role": "user", "content": content}


def _system_to_user(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    # For models without a system role, put a system message at the beginning of the next user message. If an assistant
    # message follows instead, or no message at all, put it at the end of the previous user message. Messages before an
    # assistant message therefore stay the same when the conversation continues.
    out: list[Message] = []
    waiting: list[Message] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            waiting += [message] if message.text else []
            continue
        if message.role is Role.ASSISTANT and waiting:
            _end_user_message(out, waiting)
        elif message.role is Role.USER and waiting:
            message = replace(message, parts=(_join(waiting), *message.parts))
        if message.role is not Role.TOOL:
            waiting = []
        out.append(message)
    if waiting:
        _end_user_message(out, waiting)
    return tuple(out)


def _end_user_message(out: list[Message], system: list[Message]) -> None:
    if out and out[-1].role is Role.USER:
        out[-1] = replace(out[-1], parts=(*out[-1].parts, _join(system)))
    else:
        out.append(Message(Role.USER, (_join(system),)))


def _join(system: list[Message]) -> TextPart:
    return TextPart(
        "\n\n".join(message.text for message in system),
        find_cache_breakpoint(part for message in system for part in message.parts),
    )


def _message(message: Message, quirks: Mapping[str, Any], origin: str) -> dict[str, Any]:
    role = "developer" if message.role is Role.SYSTEM and quirk(quirks, "system_role") == "developer" else message.role
    out: dict[str, Any] = {"role": str(role), "content": _content(message, quirks)}
    if message.name:
        out["name"] = message.name
    if message.tool_call_id is not None:
        out["tool_call_id"] = _call_id(message.tool_call_id, quirks)
    if message.role is Role.ASSISTANT:
        out |= _assistant(message, quirks, origin)
    return out


def _assistant(message: Message, quirks: Mapping[str, Any], origin: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if message.tool_calls:
        out["tool_calls"] = _calls(message.tool_calls, quirks, origin)
        if not message.text:
            out["content"] = None
    replay, name = quirk(quirks, "replay_reasoning"), quirk(quirks, "reasoning_field")
    if replay == "empty":
        out[name] = ""
    elif replay != "drop" and message.reasoning:
        out[name] = message.reasoning
    elif replay == "required" and message.tool_calls:
        out[name] = ""
    return out | message_fields(filter_by_origin(message.thoughts, origin))


def _calls(calls: tuple[ToolCall, ...], quirks: Mapping[str, Any], origin: str) -> list[dict[str, Any]]:
    signed = quirk(quirks, "call_signatures")
    signatures = [call.signature_for(origin) if signed or call.origin else None for call in calls]
    # The host requires a signature, so send Google's placeholder with the first unsigned call.
    if signed and not any(signatures):
        signatures[0] = SKIP_VALIDATION
    return [_call(call, quirks) | signature_field(signature) for call, signature in zip(calls, signatures, strict=True)]


def _call(call: ToolCall, quirks: Mapping[str, Any]) -> dict[str, Any]:
    out = {"id": _call_id(call.id, quirks)}
    if call.custom:
        return {**out, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {**out, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _call_id(call_id: str, quirks: Mapping[str, Any]) -> str:
    return short_call_id(call_id) if quirk(quirks, "short_call_ids") else call_id


def _content(message: Message, quirks: Mapping[str, Any]) -> Any:
    # If all parts are text, send a single string, because some hosts accept nothing else.
    result = result_parts(message)
    if len(result) == 1 and isinstance(result[0], TextPart) and result[0].cache is None:
        return result[0].text
    moved = _list_moved(message, quirks)
    parts = [part for part in result if part not in moved] if moved else list(result)
    is_text_only = quirk(quirks, "string_content_only")
    is_text_only = is_text_only or (message.role is Role.TOOL and quirk(quirks, "tool_media") == "text")
    if is_text_only:
        parts = [TextPart(placeholder(part)) if isinstance(part, NativePart) else part for part in parts]
    has_marks = not is_text_only and find_cache_breakpoint(parts) is not None and quirk(quirks, "cache_marks") != "none"
    if not has_marks and not any(isinstance(part, NativePart) for part in parts):
        return join_text_parts(parts)
    return [
        ({"type": "text", "text": part.text} if isinstance(part, TextPart) else _native(part, quirks))
        | encode_breakpoint(part.cache, quirks)
        for part in parts
        if isinstance(part, TextPart | NativePart)
    ]


def _native(part: NativePart, quirks: Mapping[str, Any]) -> dict[str, Any]:
    write = {Kind.IMAGE: _image, Kind.AUDIO: _audio, Kind.VIDEO: _video}.get(part.kind, _document)
    return write(part, quirks) or {"type": "text", "text": placeholder(part)}


def _image(part: NativePart, quirks: Mapping[str, Any]) -> dict[str, Any] | None:
    if part.blob is None and quirk(quirks, "no_remote_image_urls"):
        return None
    if quirk(quirks, "image_url_as_string"):
        return {"type": "image_url", "image_url": address(part)}
    image: dict[str, Any] = {"url": address(part)}
    if part.detail:
        image["detail"] = part.detail
    return {"type": "image_url", "image_url": image}


def _audio(part: NativePart, quirks: Mapping[str, Any]) -> dict[str, Any] | None:
    shape = quirk(quirks, "input_audio_shape")
    if shape == "audio_url":
        return {"type": "audio_url", "audio_url": {"url": address(part)}}
    if part.blob is None:
        return None
    if shape == "string":
        return {"type": "input_audio", "input_audio": bare_base64(part)}
    audio_format = AUDIO_FORMATS.get(part.mime_type, part.mime_type.partition("/")[2])
    return {"type": "input_audio", "input_audio": {"data": bare_base64(part), "format": audio_format}}


def _video(part: NativePart, quirks: Mapping[str, Any]) -> dict[str, Any] | None:
    if quirk(quirks, "video_part") == "none":
        return None
    return {"type": "video_url", "video_url": {"url": address(part)}}


def _document(part: NativePart, quirks: Mapping[str, Any]) -> dict[str, Any] | None:
    shape = quirk(quirks, "file_part")
    if shape == "none" or (part.blob is None and not quirk(quirks, "file_urls")):
        return None
    if shape == "document_url":
        name_field = {"document_name": part.filename} if part.filename else {}
        return {"type": "document_url", "document_url": address(part), **name_field}
    closely = {"detail": part.detail} if part.detail else {}
    return {"type": "file", "file": {"filename": part.filename or "file", "file_data": address(part), **closely}}
