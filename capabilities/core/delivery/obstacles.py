"""What can stand in a file's way, each as a function that gives the reason or None."""

from __future__ import annotations

from collections.abc import Callable

from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.reasons import Reason, ReasonCode, because
from capabilities.core.delivery.slots import Slot, ToolMedia, slot_key
from capabilities.core.message import FilePart, Role
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind

Obstacle = Callable[[FilePart, Reader, Slot | None, Position], Reason | None]


def _lacks_capability(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    wanted = slot.capabilities if slot else (CAPABILITY_OF_KIND[file.kind],)
    if any(reader.capabilities.has(word) for word in wanted):
        return None
    return because(ReasonCode.NO_CAPABILITY, capability=wanted[0])


def _text_by_url(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    if file.kind is not Kind.TEXT or slot is not None or file.content is not None:
        return None
    return because(ReasonCode.URL, protocol=reader.slots.name)


def _lacks_slot(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    return None if slot else because(ReasonCode.NO_SLOT, protocol=reader.slots.name, kind=file.kind.value)


def _wrong_role(_: FilePart, __: Reader, ___: Slot | None, position: Position) -> Reason | None:
    if position.role in (Role.USER, Role.TOOL):
        return None
    return because(ReasonCode.ROLE, role=position.role.value)


def _only_a_url(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    if file.content is not None or (file.url and slot and slot.takes_url):
        return None
    return because(ReasonCode.URL, protocol=reader.slots.name)


def tool_result_slot(slot: Slot, reader: Reader, position: Position) -> bool:
    """Whether media stands inside the tool result itself: the reader leaves it there and the slot takes it."""
    native = reader.media_from_tools is ToolMedia.NATIVE
    return position.role is Role.TOOL and native and slot.in_tool_result


def _in_tool_result(file: FilePart, reader: Reader, slot: Slot | None, position: Position) -> Reason | None:
    if slot is None or position.role is not Role.TOOL or reader.media_from_tools is ToolMedia.HOIST:
        return None
    if tool_result_slot(slot, reader, position):
        return None
    return because(ReasonCode.TOOL_RESULT, protocol=reader.slots.name, mime_type=file.mime_type)


def _wrong_type(file: FilePart, reader: Reader, slot: Slot | None, position: Position) -> Reason | None:
    # The type behind a URL is the caller's guess; the provider that fetches it will know.
    if slot is None or file.content is None:
        return None
    if slot.carries(file.mime_type, in_tool_result=tool_result_slot(slot, reader, position)):
        return None
    return because(ReasonCode.TYPE, mime_type=file.mime_type, slot=slot.name)


def _too_small(file: FilePart, _: Reader, slot: Slot | None, __: Position) -> Reason | None:
    return because(ReasonCode.EMPTY) if slot and file.size == 0 and slot.min_bytes > 0 else None


def wire_bytes(size: int | None) -> int:
    """Bytes a file of that size takes in a request, as base64; 0 where the size is unknown."""
    return 4 * (((size or 0) + 2) // 3)


def _over(code: ReasonCode, actual: int | None, limit: int | None, **facts: str) -> Reason | None:
    """The reason when a known measure is over a known limit: what cannot be measured is no reason (decision 3)."""
    if actual is None or limit is None or actual <= limit:
        return None
    return because(code, actual=actual, limit=limit, **facts)


def _too_large(file: FilePart, _: Reader, slot: Slot | None, __: Position) -> Reason | None:
    return _over(ReasonCode.TOO_LARGE, file.size, slot.max_bytes) if slot else None


def _too_wide(file: FilePart, _: Reader, slot: Slot | None, position: Position) -> Reason | None:
    sides = [side for side in (file.width, file.height) if side is not None]
    return _over(ReasonCode.TOO_WIDE, max(sides), slot.side(position.total)) if slot and sides else None


def _too_many_pages(file: FilePart, _: Reader, slot: Slot | None, __: Position) -> Reason | None:
    return _over(ReasonCode.TOO_MANY_PAGES, file.pages, slot.max_pages) if slot else None


def _too_many_files(file: FilePart, _: Reader, slot: Slot | None, position: Position) -> Reason | None:
    if slot is None:
        return None
    count = position.counts.get(slot_key(file.kind), 0) + 1
    return _over(ReasonCode.TOO_MANY_FILES, count, slot.max_count, slot=slot.name)


def _too_much_of_a_kind(file: FilePart, _: Reader, slot: Slot | None, position: Position) -> Reason | None:
    if slot is None:
        return None
    total = position.sizes.get(slot_key(file.kind), 0) + (file.size or 0)
    return _over(ReasonCode.TOO_MUCH_OF_A_KIND, total, slot.max_total_bytes, slot=slot.name)


def _request_full(file: FilePart, reader: Reader, _: Slot | None, position: Position) -> Reason | None:
    total = position.request_bytes + wire_bytes(file.size if file.content else 0)
    return _over(ReasonCode.REQUEST_FULL, total, reader.slots.max_request_bytes)


OBSTACLES: tuple[Obstacle, ...] = (
    _lacks_capability,
    _text_by_url,
    _lacks_slot,
    _wrong_role,
    _only_a_url,
    _in_tool_result,
    _wrong_type,
    _too_small,
    _too_large,
    _too_wide,
    _too_many_pages,
    _too_many_files,
    _too_much_of_a_kind,
    _request_full,
)
"""What can stand in a file's way, in the order in which it is asked and told."""
