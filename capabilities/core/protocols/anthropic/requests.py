"""Encode requests for Anthropic's Messages API."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from capabilities.core.message import (
    CacheBreakpoint,
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
from capabilities.core.protocols.anthropic import replies
from capabilities.core.protocols.anthropic.options import (
    build_parameters,
    cache_control,
    keep_last_breakpoints,
    rules_out_prefill,
    takes_schema,
)
from capabilities.core.protocols.anthropic.stream import BlockReader
from capabilities.core.protocols.dialects import CLAUDE
from capabilities.core.protocols.media import (
    bare_base64,
    find_cache_breakpoint,
    join_text_parts,
    list_native_parts,
    placeholder,
)
from capabilities.core.protocols.parameters import end_with_user
from capabilities.core.protocols.schema import SCHEMA_IN_PROMPT, find_schema, fit_request, instruction, wants_json
from capabilities.core.protocols.stream import EventStream
from capabilities.core.protocols.tool_calls import call_arguments
from capabilities.core.protocols.turns import Conversation, leading_system
from capabilities.core.protocols.urls import call_url
from capabilities.core.protocols.vendor_tools import BETA_HEADER
from capabilities.core.providers.presets import quirks_for
from capabilities.core.providers.quirks import quirk
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

CALL = "/messages"
TITLE_CHARACTERS = 500
# Content of a user turn that is inserted at the beginning if the conversation would otherwise begin with a model turn.
OPENING = {"type": "text", "text": "."}
PDF = "application/pdf"
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Anthropic:
    """The protocol `anthropic`. For `clock`, see the class `OpenAI`."""

    name: str = "anthropic"
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        quirks = quirks_for(target.endpoint, target.quirks)
        chat, unmarked = keep_last_breakpoints(chat) if chat.inner else (chat, ())
        chat, moved, fits_schema = fit_request(chat, CLAUDE, has_field=takes_schema(quirks))
        quirks = quirks if fits_schema else {**quirks, **SCHEMA_IN_PROMPT}
        parameters, dropped = build_parameters(chat, target, quirks)
        chat, unended = end_with_user(chat, target, is_barred=rules_out_prefill(parameters))
        dropped += (*unmarked, *moved, *unended)
        system, messages = _conversation(chat, quirks, target.origin(self.name))
        payload = {"model": target.model, **parameters, **system, "messages": messages}
        if stream:
            payload["stream"] = True
        version = str(quirk(quirks, "anthropic_version", "anthropic"))
        betas = {item.path: item.value for item in chat.vendor if item.path == BETA_HEADER}
        headers = headers_for(target, "x-api-key", stream=stream, anthropic_version=version, **betas)
        body = merge(payload, target.extra_body)
        return UpstreamRequest(call_url(target.endpoint, CALL), headers, body, dropped_params=dropped)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        return replies.decode(status, headers, body, self.clock())

    def decoder(self) -> StreamDecoder:
        return EventStream(BlockReader(), lambda body: self.decode(200, {}, body))


def _conversation(
    chat: ChatRequest, quirks: Mapping[str, Any], origin: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    texts, rest = leading_system(chat.messages)
    schema_sent = find_schema(chat.response_format) is not None and takes_schema(quirks)
    instructions = [instruction(chat.response_format)] if wants_json(chat.response_format) and not schema_sent else []
    system = _system(chat.messages[: len(chat.messages) - len(rest)], [*texts, *instructions], instructions)
    conversation, ids = Conversation("user", "assistant"), _Ids()
    for message in rest:
        if message.role is Role.ASSISTANT:
            conversation.model(_assistant(message, ids, origin))
            # Files in an assistant message are moved to the next user turn.
            conversation.postpone([_native(part) for part in list_native_parts(message)])
        else:
            _add(message, conversation, ids, quirks)
    turns = [{"role": turn.speaker, "content": turn.content} for turn in conversation.turns(OPENING)]
    return ({"system": system} if system else {}), turns


def _system(
    system_messages: tuple[Message, ...], texts: list[str], instructions: list[str]
) -> str | list[dict[str, Any]]:
    parts = [part for message in system_messages for part in message.parts if isinstance(part, TextPart)]
    # Only cache breakpoints require blocks. Without any, a single string is enough.
    if not any(part.cache for part in parts):
        return "\n\n".join(texts)
    return [*_blocks(tuple(parts)), *({"type": "text", "text": instruction} for instruction in instructions)]


class _Ids:
    """Replaces invalid characters in tool call ids, always in the same way, so that a call and its result match."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def replace(self, original: str) -> str:
        if original not in self._sent:
            base = _BAD_ID.sub("_", original) or "call"
            used = set(self._sent.values())
            number = 2
            name = base
            while name in used:
                name, number = f"{base}_{number}", number + 1
            self._sent[original] = name
        return self._sent[original]

    def contains(self, original: str | None) -> bool:
        return original in self._sent


def _add(message: Message, conversation: Conversation, ids: _Ids, quirks: Mapping[str, Any]) -> None:
    if message.role is Role.TOOL and ids.contains(message.tool_call_id):
        _result(message, conversation, ids, quirks)
    # The conversation does not contain this tool call, so send its result as user text.
    elif message.role is Role.TOOL:
        outcome = "error" if message.is_error else "result"
        conversation.user([{"type": "text", "text": f"Tool {outcome}: {message.text}"}, *_media(message)])
    elif message.role is Role.SYSTEM:
        conversation.postpone(_blocks(message.parts))  # The next user turn will begin with this text.
    else:
        conversation.user([*_blocks(message.parts), *(item.value for item in message.vendor)])


def _assistant(message: Message, ids: _Ids, origin: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    text, offset, sent_calls = join_text_parts(message.parts).rstrip(), 0, 0
    # Send back only this model's own reasoning, in its original position. Reasoning of other models would be rejected.
    for item in interleave(message.thoughts, message.vendor, origin):
        blocks += _text(text[offset : item.offset])
        blocks += [_tool_use(call, ids) for call in message.tool_calls[sent_calls : item.calls]]
        blocks.append(item.value if isinstance(item, VendorItem) else _thought(item))
        covered = item.covered if isinstance(item, VendorItem) else 0
        offset, sent_calls = max(offset, item.offset + covered), max(sent_calls, item.calls)
    blocks += _text(text[offset:])
    blocks += [_tool_use(call, ids) for call in message.tool_calls[sent_calls:]]
    if (mark := find_cache_breakpoint(message.parts)) and blocks and blocks[-1]["type"] in MARKED:
        blocks[-1] |= cache_control(mark)
    return blocks


# Types of blocks in an assistant turn that can have a cache breakpoint. Reasoning blocks are not among them.
MARKED = ("text", "tool_use")


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _tool_use(call: ToolCall, ids: _Ids) -> dict[str, Any]:
    block = {"type": "tool_use", "id": ids.replace(call.id), "name": call.name, "input": call_arguments(call)}
    return {**block, "caller": call.caller} if call.caller else block


def _thought(thought: ReasoningBlock) -> dict[str, Any]:
    if thought.form is ThoughtForm.ENCRYPTED:
        return {"type": "redacted_thinking", "data": thought.proof}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.proof}


def _result(message: Message, conversation: Conversation, ids: _Ids, quirks: Mapping[str, Any]) -> None:
    tool_media = quirk(quirks, "tool_media", "anthropic")
    media = list_native_parts(message)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids.replace(message.tool_call_id or "")}
    if message.is_error:
        block["is_error"] = True
    # Only the entire tool result can have a cache breakpoint, not the blocks inside it.
    if mark := find_cache_breakpoint(message.parts):
        block |= cache_control(mark)
    if not media or tool_media == "hoist":
        conversation.result({**block, "content": join_text_parts(message.parts)})
        conversation.postpone([_native(part) for part in media])
    elif tool_media == "text":
        lines = [join_text_parts(message.parts), *(placeholder(part) for part in media)]
        conversation.result({**block, "content": "\n".join(text_line for text_line in lines if text_line)})
    else:
        conversation.result({**block, "content": _blocks(message.parts, marked=False)})


def _media(message: Message) -> list[dict[str, Any]]:
    return [_native(part) for part in list_native_parts(message)]


def _blocks(parts: tuple[Part, ...], *, marked: bool = True) -> list[dict[str, Any]]:
    return [
        _block(part, part.cache if marked else None)
        for part in parts
        # Anthropic rejects empty text blocks.
        if isinstance(part, NativePart) or (isinstance(part, TextPart) and part.text.strip())
    ]


def _block(part: TextPart | NativePart, mark: CacheBreakpoint | None) -> dict[str, Any]:
    block = {"type": "text", "text": part.text} if isinstance(part, TextPart) else _native(part)
    return {**block, **cache_control(mark)} if mark else block


def _native(part: NativePart) -> dict[str, Any]:
    if part.kind is Kind.IMAGE:
        return {"type": "image", "source": _source(part)}
    if part.kind in {Kind.DOCUMENT, Kind.OTHER} and (part.mime_type == PDF or part.blob is None):
        titled = {"title": part.filename[:TITLE_CHARACTERS]} if part.filename else {}
        return {"type": "document", "source": _source(part), **titled}
    return {"type": "text", "text": placeholder(part)}


def _source(part: NativePart) -> dict[str, Any]:
    if part.blob is None:
        return {"type": "url", "url": part.url or ""}
    return {"type": "base64", "media_type": part.mime_type, "data": bare_base64(part)}
