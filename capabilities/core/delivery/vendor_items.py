"""Keep the vendor-specific tools, fields and blocks that a model accepts, and replace all other blocks with notes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, Role, TextPart, VendorItem
from capabilities.core.protocols.vendor_tools import EVERY
from capabilities.core.texts.description import nearest_language
from capabilities.core.values import value_class
from capabilities.core.wire import Answer, Delta, StreamEvent

PLACEHOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "en": "[{name}: used at another provider; its data is not part of this conversation.]",
        "zh": "[{name}：在另一家提供商处使用过，其数据不在本对话中。]",
    }
)
"""Note that a model receives in place of a block that only another vendor's models understand."""


def fit_vendor_items(
    chat: ChatRequest, protocol: str, allowed: Collection[str], language: str | None
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the request with only the permitted vendor items, and the paths of removed items.

    An item is permitted if it belongs to `protocol` and its name is in `allowed`.
    """
    # Most requests have no vendor items.
    if not chat.vendor and not any(message.vendor for message in chat.messages):
        return chat, ()
    left_out: list[str] = []

    def takes(item: VendorItem) -> bool:
        is_taken = item.protocol == protocol and (item.name in allowed or EVERY in allowed)
        if not is_taken:
            left_out.append(item.path)
        return is_taken

    vendor = tuple(filter(takes, chat.vendor))
    names = {item.value.get("name") for item in chat.vendor if item not in vendor and "tools[" in item.path}
    # If the tool that `tool_choice` names was removed, the choice must be removed, too.
    if chat.tool_name in names and chat.tool_name and not chat.has_tool(chat.tool_name):
        chat = replace(chat, tool_name=None)
        left_out.append("tool_choice")
    note = PLACEHOLDERS[nearest_language(language)]
    messages = tuple(_fit_message(message, takes, note) if message.vendor else message for message in chat.messages)
    return replace(chat, vendor=vendor, messages=messages), tuple(left_out)


def _fit_message(message: Message, takes: Callable[[VendorItem], bool], note: str) -> Message:
    remaining: list[VendorItem] = []
    notes: dict[tuple[int, str], str] = {}
    for item in message.vendor:
        if takes(item):
            remaining.append(item)
        elif not item.covered:  # A tool call and its result share one note.
            notes[item.offset, item.name] = note.format(name=item.name)
    if message.role is not Role.ASSISTANT:
        parts = (*message.parts, *map(TextPart, notes.values()))
        return replace(message, parts=parts, vendor=tuple(remaining))
    if not notes:
        return replace(message, vendor=tuple(remaining))
    # Inserted notes shift the text, so adjust the offsets of the reasoning and of the remaining blocks.
    added = [(at, f"\n{note_text}\n" if at else f"{note_text}\n") for (at, _), note_text in notes.items()]

    def move(offset: int) -> int:
        return offset + sum(len(note_text) for at, note_text in added if at <= offset)

    text, mark = message.text, next((part.cache for part in reversed(message.parts)), None)
    for at, note_text in sorted(added, key=lambda pair: pair[0], reverse=True):
        text = text[:at] + note_text + text[at:]
    return replace(
        message,
        parts=(TextPart(text, mark),),
        thoughts=tuple(replace(thought, offset=move(thought.offset)) for thought in message.thoughts),
        vendor=tuple(replace(item, offset=move(item.offset)) for item in remaining),
    )


# Vendors restrict tool names and the length of tool call ids. An invalid name or id is always replaced with the same
# substitute, so that the conversation's prefix does not change. In answers, substitutes are replaced with the caller's
# names.

MAX_NAME_CHARS = 64
HASH_CHARS = 8
NO_NAMES: Mapping[str, str] = MappingProxyType({})


@value_class
class ToolRule:
    """A protocol's pattern for valid tool names, and the maximum length of a tool call id (None if unlimited)."""

    name: re.Pattern[str]
    max_id_chars: int | None


_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
RULES: Mapping[str, ToolRule] = MappingProxyType(
    {
        "openai": ToolRule(_PLAIN, 40),
        "openai-responses": ToolRule(_PLAIN, 64),
        "anthropic": ToolRule(_PLAIN, 64),
        "gemini": ToolRule(re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}"), None),
    }
)
"""Tool rules by protocol, taken from the vendors' function calling documentation (2026-11) and error messages."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def fit_tools(chat: ChatRequest, protocol: str) -> tuple[ChatRequest, Mapping[str, str]]:
    """Make tool names and call ids valid for the protocol. Also return a map from new tool names to the caller's."""
    rule = RULES.get(protocol)
    if rule is None:
        return chat, NO_NAMES
    calls = [call for message in chat.messages for call in message.tool_calls]
    tool_names = [tool.name for tool in chat.tools] + [call.name for call in calls]
    names = {name: _fit_name(name) for name in tool_names if not rule.name.fullmatch(name)}
    max_id_chars = rule.max_id_chars
    ids = {call.id: _fit_id(call.id) for call in calls if max_id_chars is not None and len(call.id) > max_id_chars}
    if not (names or ids):
        return chat, NO_NAMES
    renamed = replace(
        chat,
        messages=tuple(_fit_tools(message, names, ids) for message in chat.messages),
        tools=tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in chat.tools),
        tool_name=names.get(chat.tool_name, chat.tool_name) if chat.tool_name else None,
        allowed_tools=tuple(names.get(name, name) for name in chat.allowed_tools),
    )
    return renamed, {sent: name for name, sent in names.items()}


def _fit_name(name: str) -> str:
    # The hash distinguishes names that differ only in replaced or removed characters.
    start = _OTHER.sub("_", name)[: MAX_NAME_CHARS - HASH_CHARS - 2]
    # Gemini requires tool names to begin with a letter or an underscore.
    if not start[:1].isalpha():
        start = f"_{start}"
    return f"{start}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:HASH_CHARS]}"


def _fit_id(call_id: str) -> str:
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _fit_tools(message: Message, names: Mapping[str, str], ids: Mapping[str, str]) -> Message:
    # A tool result refers to its call by id, so replace the id there, too.
    call_id = message.tool_call_id
    if not (message.tool_calls or call_id):
        return message
    return replace(
        message,
        tool_calls=tuple(
            replace(call, id=ids.get(call.id, call.id), name=names.get(call.name, call.name))
            for call in message.tool_calls
        ),
        tool_call_id=ids.get(call_id, call_id) if call_id else None,
        name=names.get(message.name, message.name) if call_id and message.name else message.name,
    )


def restore_names(answer: Answer, names: Mapping[str, str]) -> Answer:
    """Return the answer with the caller's original tool names."""
    calls = tuple(replace(call, name=names.get(call.name, call.name)) for call in answer.tool_calls)
    return replace(answer, tool_calls=calls)


def restore_names_in(event: StreamEvent, names: Mapping[str, str]) -> StreamEvent:
    """Return the stream event with the caller's original tool names."""
    if not isinstance(event, Delta) or not event.tool_calls:
        return event
    # Vendors never split a tool name across stream events.
    calls = tuple(replace(call, name=names.get(call.name or "", call.name)) for call in event.tool_calls)
    return event._replace(tool_calls=calls)
