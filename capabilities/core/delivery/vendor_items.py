"""What of a vendor's own tools, fields and blocks one candidate gets, and what it reads in place of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.message import ChatRequest, Message, Role, TextPart, VendorItem
from capabilities.core.protocols.vendor_tools import EVERY
from capabilities.core.texts.description import nearest

IN_PLACE: Mapping[str, str] = MappingProxyType(
    {
        "en": "[{name}: used at another provider; its data is not part of this conversation.]",
        "zh": "[{name}：在另一家提供商处使用过，其数据不在本对话中。]",
    }
)
"""What a model reads in place of blocks that only another vendor understands."""


def fit_vendor_items(
    chat: ChatRequest, protocol: str, allowed: Collection[str], language: str | None
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the request with what this protocol has words for and `allowed` names, and the places of the rest."""
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
    if chat.tool_name in names and chat.tool_name and not chat.has_tool(chat.tool_name):
        chat = replace(chat, tool_name=None)
        left_out.append("tool_choice")
    note = IN_PLACE[nearest(language)]
    messages = tuple(_fit_message(each, takes, note) if each.vendor else each for each in chat.messages)
    return replace(chat, vendor=vendor, messages=messages), tuple(left_out)


def _fit_message(message: Message, takes: Callable[[VendorItem], bool], note: str) -> Message:
    kept: list[VendorItem] = []
    notes: dict[tuple[int, str], str] = {}
    for item in message.vendor:
        if takes(item):
            kept.append(item)
        elif not item.covered:  # one note for a tool's call and its result
            notes[item.offset, item.name] = note.format(name=item.name)
    if message.role is not Role.ASSISTANT:
        parts = (*message.parts, *map(TextPart, notes.values()))
        return replace(message, parts=parts, vendor=tuple(kept))
    if not notes:
        return replace(message, vendor=tuple(kept))
    added = [(at, f"\n{words}\n" if at else f"{words}\n") for (at, _), words in notes.items()]

    def move(offset: int) -> int:
        return offset + sum(len(words) for at, words in added if at <= offset)

    text, mark = message.text, next((part.cache for part in reversed(message.parts)), None)
    for at, words in sorted(added, key=lambda pair: pair[0], reverse=True):
        text = text[:at] + words + text[at:]
    return replace(
        message,
        parts=(TextPart(text, mark),),
        thoughts=tuple(replace(each, offset=move(each.offset)) for each in message.thoughts),
        vendor=tuple(replace(each, offset=move(each.offset)) for each in kept),
    )
