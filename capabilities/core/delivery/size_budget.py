"""Fit the files of a conversation into a reader's limits so that the conversation's prefix rarely changes.

Messages are processed in order. When a file would exceed a limit, the oldest files of earlier messages are sent as text
until half of the limit is free. The prefix therefore changes only after new files have filled that half. Files in the
same message never displace each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from capabilities.core.delivery.obstacles import ReasonCode, make_reason, wire_bytes
from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.slots import slot_key
from capabilities.core.delivery.text_limit import estimate_tokens
from capabilities.core.delivery.tokens import file_tokens
from capabilities.core.delivery.writing import TextStyle, WrittenFile, write, write_as_text
from capabilities.core.message import FilePart, NativePart, Role
from capabilities.core.vocabulary import Kind

MEDIA_TOKENS = 1_500
"""How many tokens a natively sent file is assumed to use if the model's counting rule is unknown."""

SIZE_LIMIT_CODES = frozenset({ReasonCode.TOO_MANY_FILES, ReasonCode.TOO_MUCH_OF_A_KIND, ReasonCode.REQUEST_FULL})
"""Reasons that apply because the request's other files have used up a limit."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeLimit:
    """A limit on the number of files, or on their total bytes, in one request.

    `slot` and `key` are empty for the limit on the size of the entire request. A request has only one object for each
    limit, so limits are compared by identity.
    """

    code: ReasonCode
    maximum: int
    slot: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class _PlacedFile:
    """A natively sent file with its position, how much of each limit it uses, and its estimated tokens."""

    message: int
    part_index: int
    file: FilePart
    amounts: Mapping[SizeLimit, int]
    tokens_before: int
    tokens: int


def byte_count(text: str | None) -> int:
    return len((text or "").encode("utf-8", "replace"))


class SizeBudget:
    """Delivers files within the limits, message by message. `images` is the total number of images in the request."""

    def __init__(self, reader: Reader, style: TextStyle, images: int) -> None:
        self.files: dict[tuple[int, int], WrittenFile] = {}
        """The delivered files. The keys are message index and part index."""
        self._reader, self._style, self._images = reader, style, images
        max_request_bytes = reader.slots.max_request_bytes
        self._request = None if max_request_bytes is None else SizeLimit(ReasonCode.REQUEST_FULL, max_request_bytes)
        self._limits: dict[str, tuple[SizeLimit, ...]] = {}
        self._placed: list[_PlacedFile] = []
        self._message = 0
        self._text_bytes = 0
        self._tokens = 0
        self._used: Counter[SizeLimit] = Counter()
        self._used_here: Counter[SizeLimit] = Counter()

    def take(self, message: int, role: Role, files: Iterable[tuple[int, FilePart]], texts: Sequence[str]) -> None:
        """Deliver the files of the next message, and count its text towards the limits."""
        self._message = message
        self._used_here.clear()
        for text in texts:
            self._add_text(text)
        for index, file in files:
            written_file = self._write(file, role)
            self.files[message, index] = written_file
            self._add_text(written_file.text or written_file.lead)
            if not written_file.natives:
                continue
            amounts, tokens = self._count_amounts(written_file.natives), self._count_tokens(file, written_file.natives)
            candidate = _PlacedFile(message, index, file, amounts, self._tokens, tokens)
            self._tokens += tokens
            self._placed.append(candidate)
            self._used.update(candidate.amounts)
            self._used_here.update(candidate.amounts)

    def _write(self, file: FilePart, role: Role) -> WrittenFile:
        # First write the file as if it were the only one. Only if it could then be sent natively may it displace
        # others.
        first = Position(role, tokens=self._tokens, total=self._images, message=self._message)
        alone = write(file, self._reader, first, self._style)
        if not alone.natives or self._free_capacity(self._count_amounts(alone.natives)):
            return alone
        return write(file, self._reader, self._position(role), self._style)

    def _count_amounts(self, natives: Iterable[NativePart]) -> Mapping[SizeLimit, int]:
        amounts = Counter[SizeLimit]()
        for native in natives:
            size = native.blob.size if native.blob else 0
            counts = {ReasonCode.TOO_MANY_FILES: 1, ReasonCode.TOO_MUCH_OF_A_KIND: size}
            amounts.update({limit: counts[limit.code] for limit in self._limits_on(native.kind)})
            if self._request is not None:
                amounts[self._request] += wire_bytes(size)
        return amounts

    def _limits_on(self, kind: Kind) -> tuple[SizeLimit, ...]:
        key, slot = slot_key(kind), self._reader.slots.get(kind)
        if key not in self._limits and slot is not None:
            limits = {ReasonCode.TOO_MANY_FILES: slot.max_count, ReasonCode.TOO_MUCH_OF_A_KIND: slot.max_total_bytes}
            room_limits = (
                SizeLimit(code, count, slot.name, key) for code, count in limits.items() if count is not None
            )
            self._limits[key] = tuple(room_limits)
        return self._limits.get(key, ())

    def _free_capacity(self, amounts: Mapping[SizeLimit, int]) -> bool:
        if any(self._fixed_amount(limit) + amount > limit.maximum for limit, amount in amounts.items()):
            # Do not displace earlier files if displacing all of them would still not free enough capacity.
            return False
        for limit, amount in amounts.items():
            if self._used[limit] + amount > limit.maximum:
                self._free(limit, amount)
        return all(self._used[limit] + amount <= limit.maximum for limit, amount in amounts.items())

    def _fixed_amount(self, limit: SizeLimit) -> int:
        # Neither text nor files in the current message are ever displaced.
        return self._used_here[limit] + (self._text_bytes if limit == self._request else 0)

    def _count_tokens(self, file: FilePart, natives: Sequence[NativePart]) -> int:
        if self._reader.window is None:
            return 0
        sizes = [
            replace(file, kind=native.kind, width=native.width or file.width, height=native.height or file.height)
            for native in natives
        ]
        estimates = [file_tokens(self._reader.model, size) for size in sizes]
        return sum(estimate.tokens if estimate else MEDIA_TOKENS for estimate in estimates)

    def _add_text(self, text: str) -> None:
        self._count_text(text)
        # Text is always sent. If it uses too much capacity, files in earlier messages are replaced with text.
        if self._request and self._used[self._request] > self._request.maximum:
            self._free(self._request, 0)

    def _count_text(self, text: str) -> None:
        count = byte_count(text)
        self._text_bytes += count
        if self._reader.window is not None:
            self._tokens += estimate_tokens(text)
        if self._request:
            self._used[self._request] += count

    def _free(self, limit: SizeLimit, needed: int) -> None:
        facts = {"slot": limit.slot} if limit.slot else {}
        reason = make_reason(limit.code, actual=self._used[limit] + needed, limit=limit.maximum, **facts)
        # Displace only files of earlier messages, oldest first.
        for candidate in tuple(self._placed):
            # Free half of the limit in one step, so that the prefix rarely changes.
            is_enough = self._used[limit] <= min(limit.maximum // 2, limit.maximum - needed)
            if is_enough or candidate.message == self._message:
                return
            if candidate.amounts.get(limit):
                self._placed.remove(candidate)
                self._used.subtract(candidate.amounts)
                self._tokens -= candidate.tokens
                description = write_as_text(candidate.file, self._reader, reason, self._style, candidate.tokens_before)
                self.files[candidate.message, candidate.part_index] = description
                # The text that replaces the file also uses capacity.
                self._count_text(description.text or "")

    def _position(self, role: Role) -> Position:
        counts = {
            room_limit.key: used
            for room_limit, used in self._used.items()
            if room_limit.code is ReasonCode.TOO_MANY_FILES
        }
        sizes = {
            room_limit.key: used
            for room_limit, used in self._used.items()
            if room_limit.code is ReasonCode.TOO_MUCH_OF_A_KIND
        }
        request = self._used[self._request] if self._request else 0
        return Position(role, counts, sizes, request, self._tokens, self._images, self._message)
