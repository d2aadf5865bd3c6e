"""Checks for obstacles to native delivery. Each check returns a reason, or None if there is no obstacle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.slots import Slot, ToolMedia, slot_key
from capabilities.core.message import FilePart, Role
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind


class ReasonCode(StrEnum):
    """The reason for a delivery decision.

    The first group is for files that the model accepts or receives as text, the second for files that it does not
    accept, the third for files that cannot be read or converted, and the last for descriptions by another model.
    """

    FITS = "fits"
    READABLE_TEXT = "readable_text"
    LONG_TEXT = "long_text"

    NO_CAPABILITY = "no_capability"
    NO_SLOT = "no_slot"
    ROLE = "role"
    TOOL_RESULT = "tool_result"
    URL = "url"
    TYPE = "type"
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_WIDE = "too_wide"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MANY_FILES = "too_many_files"
    TOO_MUCH_OF_A_KIND = "too_much_of_a_kind"
    REQUEST_FULL = "request_full"

    UNREADABLE = "unreadable"
    NO_TEXT_FOUND = "no_text_found"
    NOT_CONVERTED = "not_converted"
    LOCKED = "locked"
    DAMAGED = "damaged"

    TOO_LONG = "too_long"
    NO_DESCRIBER = "no_describer"


SENTENCES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.FITS: translatable("The model supports %(capability)s and accepts %(mime_type)s."),
        ReasonCode.READABLE_TEXT: translatable("Every model reads text."),
        ReasonCode.LONG_TEXT: translatable(
            "Every model reads text. This one has %(actual)s characters, more than %(limit)s, and is cut."
        ),
        ReasonCode.NO_CAPABILITY: translatable("The model does not support %(capability)s."),
        ReasonCode.NO_SLOT: translatable("The protocol %(protocol)s cannot carry content of kind %(kind)s."),
        ReasonCode.ROLE: translatable("A message with the role %(role)s cannot contain files."),
        ReasonCode.TOOL_RESULT: translatable(
            "The protocol %(protocol)s does not accept %(mime_type)s in a tool result."
        ),
        ReasonCode.URL: translatable(
            "Only the file's URL is known, and the protocol %(protocol)s does not accept URLs."
        ),
        ReasonCode.TYPE: translatable("%(slot)s does not accept %(mime_type)s."),
        ReasonCode.EMPTY: translatable("The file is empty."),
        ReasonCode.TOO_LARGE: translatable("The file has %(actual)s bytes; the limit is %(limit)s."),
        ReasonCode.TOO_WIDE: translatable("The image's longer side has %(actual)s pixels; the limit is %(limit)s."),
        ReasonCode.TOO_MANY_PAGES: translatable("The document has %(actual)s pages; the limit is %(limit)s."),
        ReasonCode.TOO_MANY_FILES: translatable(
            "With this file, the number of files for %(slot)s would be %(actual)s; the limit is %(limit)s."
        ),
        ReasonCode.TOO_MUCH_OF_A_KIND: translatable(
            "With this file, the files for %(slot)s would total %(actual)s bytes; the limit is %(limit)s."
        ),
        ReasonCode.REQUEST_FULL: translatable(
            "With this file, the request would have %(actual)s bytes; the limit is %(limit)s."
        ),
        ReasonCode.UNREADABLE: translatable("The file's content cannot be read (%(problem)s)."),
        ReasonCode.NO_TEXT_FOUND: translatable("No text could be extracted from this %(mime_type)s file."),
        ReasonCode.NOT_CONVERTED: translatable("This %(mime_type)s file could not be converted."),
        ReasonCode.LOCKED: translatable("The file is password-protected."),
        ReasonCode.DAMAGED: translatable("The file is damaged and cannot be opened."),
        ReasonCode.TOO_LONG: translatable(
            "The recording is %(actual)s seconds long; the limit for descriptions is %(limit)s."
        ),
        ReasonCode.NO_DESCRIBER: translatable(
            "The route describe is missing or disabled, or none of its models can be called."
        ),
    }
)
"""English sentences with placeholders for `Reason.facts`. They are translated when displayed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason with the values for the placeholders in its sentence. Bytes and pixels are unformatted integers."""

    code: ReasonCode
    facts: Mapping[str, str | int] = field(default_factory=dict)

    def sentence(self) -> Translatable:
        return Translatable(SENTENCES[self.code], self.facts)


def make_reason(code: ReasonCode, **facts: str | int) -> Reason:
    return Reason(code, MappingProxyType(facts))


Obstacle = Callable[[FilePart, Reader, Slot | None, Position], Reason | None]


def _lacks_capability(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    required = slot.capabilities if slot else (CAPABILITY_OF_KIND[file.kind],)
    if any(reader.capabilities.has(name) for name in required):
        return None
    return make_reason(ReasonCode.NO_CAPABILITY, capability=required[0])


def _text_by_url(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    if file.kind is not Kind.TEXT or slot is not None or file.content is not None:
        return None
    return make_reason(ReasonCode.URL, protocol=reader.slots.name)


def _lacks_slot(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    return None if slot else make_reason(ReasonCode.NO_SLOT, protocol=reader.slots.name, kind=file.kind.value)


def _wrong_role(_: FilePart, __: Reader, ___: Slot | None, position: Position) -> Reason | None:
    if position.role in (Role.USER, Role.TOOL):
        return None
    return make_reason(ReasonCode.ROLE, role=position.role.value)


def _only_a_url(file: FilePart, reader: Reader, slot: Slot | None, _: Position) -> Reason | None:
    if file.content is not None or (file.url and slot and slot.takes_url):
        return None
    return make_reason(ReasonCode.URL, protocol=reader.slots.name)


def tool_result_slot(slot: Slot, reader: Reader, position: Position) -> bool:
    """Return whether media stays in its tool result. Both the reader and the slot must allow this."""
    native = reader.media_from_tools is ToolMedia.NATIVE
    return position.role is Role.TOOL and native and slot.in_tool_result


def _in_tool_result(file: FilePart, reader: Reader, slot: Slot | None, position: Position) -> Reason | None:
    if slot is None or position.role is not Role.TOOL or reader.media_from_tools is ToolMedia.HOIST:
        return None
    if tool_result_slot(slot, reader, position):
        return None
    return make_reason(ReasonCode.TOOL_RESULT, protocol=reader.slots.name, mime_type=file.mime_type)


def _wrong_type(file: FilePart, reader: Reader, slot: Slot | None, position: Position) -> Reason | None:
    # Do not check the type of a file that is sent by URL: the caller only guessed it, and the provider detects the
    # actual type.
    if slot is None or file.content is None:
        return None
    if slot.carries(file.mime_type, in_tool_result=tool_result_slot(slot, reader, position)):
        return None
    return make_reason(ReasonCode.TYPE, mime_type=file.mime_type, slot=slot.name)


def _too_small(file: FilePart, _: Reader, slot: Slot | None, __: Position) -> Reason | None:
    return make_reason(ReasonCode.EMPTY) if slot and file.size == 0 and slot.min_bytes > 0 else None


def wire_bytes(size: int | None) -> int:
    """Return the base64-encoded size of a file of `size` bytes, or 0 if the size is unknown."""
    return 4 * (((size or 0) + 2) // 3)


def _exceeds(code: ReasonCode, actual: int | None, limit: int | None, **facts: str) -> Reason | None:
    # An unknown size, count or limit never prevents native delivery.
    if actual is None or limit is None or actual <= limit:
        return None
    return make_reason(code, actual=actual, limit=limit, **facts)


def _too_large(file: FilePart, _: Reader, slot: Slot | None, __: Position) -> Reason | None:
    return _exceeds(ReasonCode.TOO_LARGE, file.size, slot.max_bytes) if slot else None


def _too_wide(file: FilePart, _: Reader, slot: Slot | None, position: Position) -> Reason | None:
    # If an image's dimensions could not be read, accept the image.
    sides = [side for side in (file.width, file.height) if side is not None]
    return _exceeds(ReasonCode.TOO_WIDE, max(sides), slot.side(position.total)) if slot and sides else None


def _too_many_pages(file: FilePart, _: Reader, slot: Slot | None, __: Position) -> Reason | None:
    return _exceeds(ReasonCode.TOO_MANY_PAGES, file.pages, slot.max_pages) if slot else None


def _too_many_files(file: FilePart, _: Reader, slot: Slot | None, position: Position) -> Reason | None:
    if slot is None:
        return None
    count = position.counts.get(slot_key(file.kind), 0) + 1
    return _exceeds(ReasonCode.TOO_MANY_FILES, count, slot.max_count, slot=slot.name)


def _too_many_bytes(file: FilePart, _: Reader, slot: Slot | None, position: Position) -> Reason | None:
    if slot is None:
        return None
    total = position.sizes.get(slot_key(file.kind), 0) + (file.size or 0)
    return _exceeds(ReasonCode.TOO_MUCH_OF_A_KIND, total, slot.max_total_bytes, slot=slot.name)


def _request_full(file: FilePart, reader: Reader, _: Slot | None, position: Position) -> Reason | None:
    # A file sent by URL adds no bytes to the request.
    total = position.request_bytes + wire_bytes(file.size if file.content else 0)
    return _exceeds(ReasonCode.REQUEST_FULL, total, reader.slots.max_request_bytes)


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
    _too_many_bytes,
    _request_full,
)
"""All checks, in order of precedence. The first obstacle found is the reason that is displayed."""
