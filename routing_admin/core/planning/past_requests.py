"""Rebuild logged requests, so that the delivery of their files can be decided again.

The log contains neither text nor bytes. A file's properties, such as its width, whether it was in a tool result, or
whether its bytes could be read, are inferred from the delivery decisions recorded for it. A conversion is assumed to
succeed unless the log says that it failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.obstacles import ReasonCode, wire_bytes
from capabilities.core.message import (
    Blob,
    ChatRequest,
    Converted,
    ConvertTo,
    FilePart,
    Inspection,
    Message,
    PageImages,
    Role,
    Text,
    UnreadableError,
    make_blob,
)
from capabilities.core.vocabulary import Kind

CandidateKey = tuple[str, str]
"""The provider and model that identify a candidate."""

LONG = "x" * 2_000_000
"""Placeholder text, as long as the longest text that is extracted from a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFile:
    """A file of a logged request; `size` is in bytes, `width` in pixels. None means unknown.

    `converts` is False if a conversion failed, `has_text` if no text was found. `flaw` is `locked`, `damaged` or empty.
    """

    message: int
    part: int
    kind: Kind
    mime_type: str
    size: int | None = None
    filename: str = ""
    artifact_id: str | None = None
    role: Role = Role.USER
    width: int | None = None
    pages: int | None = None
    problem: str | None = None
    converts: bool = True
    has_text: bool = True
    flaw: str = ""

    @property
    def name(self) -> str:
        return self.filename or self.mime_type

    def shape(self, is_small: bool) -> tuple[Any, ...]:
        """Return a key made of all properties that may affect how the file is delivered."""
        # A small file's exact size does not affect decisions, only whether the file is empty. Text is an exception,
        # because it may be truncated.
        size = bool(self.size) if is_small and self.kind is not Kind.TEXT and self.size is not None else self.size
        known = (self.width, self.pages, self.problem, self.converts, self.has_text, self.artifact_id is None)
        return (self.message, self.part, self.kind, self.mime_type, self.role, size, *known, self.flaw)


@dataclass(frozen=True, slots=True)
class PastTry:
    """What happened with one candidate: the outcome, the HTTP status, and whether parameters were dropped."""

    outcome: str
    status: int | None = None
    drops: bool = False


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A request that reached at least one candidate: its id, time and files, and the attempt with each candidate."""

    id: str
    at: datetime
    files: tuple[PastFile, ...] = ()
    tries: Mapping[CandidateKey, PastTry] = field(default_factory=dict)

    def shape(self, room: int) -> tuple[Any, ...]:
        """Return a key that two requests share if every chain would treat them in the same way.

        Every candidate accepts requests of up to `room` bytes. If the files fit into that, the key omits their exact
        sizes.
        """
        is_small = sum(wire_bytes(file.size) for file in self.files) <= room
        tries = [(key, attempt.outcome, attempt.status or 0, attempt.drops) for key, attempt in self.tries.items()]
        return tuple(file.shape(is_small) for file in self.files), tuple(sorted(tries))


def files_in(attempts: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[PastFile, ...]:
    """Return a request's files in order, as reconstructed from the deliveries logged for its attempts."""
    found: dict[tuple[int, int], PastFile] = {}
    for deliveries in attempts:
        for delivery in deliveries:
            position = delivery["message"], delivery["part"]
            found[position] = _apply_delivery(found.get(position) or _parse_file(delivery), delivery)
    return tuple(found[position] for position in sorted(found))


def _parse_file(delivery: Mapping[str, Any]) -> PastFile:
    return PastFile(
        message=delivery["message"],
        part=delivery["part"],
        kind=Kind(delivery["kind"]),
        mime_type=delivery["mimeType"],
        size=delivery["size"],
        filename=delivery["filename"] or "",
        artifact_id=delivery["artifactId"],
    )


ROLES: Mapping[str, Role] = {
    Outcome.HOISTED.value: Role.TOOL,
    ReasonCode.TOOL_RESULT.value: Role.TOOL,
    ReasonCode.ROLE.value: Role.SYSTEM,
}
"""Maps a delivery's outcome or reason to the message role, for those that occur with only one role."""


def _apply_delivery(file: PastFile, delivery: Mapping[str, Any]) -> PastFile:
    reason, sentence = delivery["reason"], delivery.get("sentence")
    facts = sentence["facts"] if isinstance(sentence, Mapping) else {}
    role = ROLES.get(delivery["outcome"]) or ROLES.get(reason)
    changes: dict[str, Any] = {"role": role} if role else {}
    if reason == ReasonCode.UNREADABLE:
        changes["problem"] = str(facts.get("problem") or "failed")
    elif reason == ReasonCode.TOO_WIDE:
        changes["width"] = facts.get("actual")
    elif reason == ReasonCode.TOO_MANY_PAGES:
        changes["pages"] = facts.get("actual")
    elif reason == ReasonCode.NOT_CONVERTED:
        changes["converts"] = False
    elif reason == ReasonCode.NO_TEXT_FOUND:
        changes["has_text"] = False
    elif reason in (ReasonCode.LOCKED, ReasonCode.DAMAGED):
        changes |= {"flaw": reason, "converts": False, "has_text": False}
    return replace(file, **changes) if changes else file


def rebuild(files: Sequence[PastFile]) -> ChatRequest:
    """Return a request that contains only these files, at their positions; `adapt` treats it like the real request."""
    messages = []
    for _, parts in groupby(files, lambda file: file.message):
        group = tuple(parts)
        role = next((file.role for file in group if file.role is not Role.USER), Role.USER)
        messages.append(Message(role, tuple(map(_build_part, group))))
    return ChatRequest(tuple(messages))


def _build_part(file: PastFile) -> FilePart:
    # A file without a known size was passed by URL.
    is_address = file.size is None and file.artifact_id is None
    return FilePart(
        file.kind,
        file.mime_type,
        size=file.size,
        artifact_id=file.artifact_id,
        url="https://file.invalid/" if is_address else None,
        width=file.width,
        pages=file.pages,
        unreadable=file.problem,
        content=None if is_address else _Bytes(file),
    )


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Content of the logged size, which is never read."""

    file: PastFile

    def blob(self) -> Blob:
        return Blob(self.file.size or 0, _refuse)

    def text(self) -> Text | None:
        if self.file.kind is Kind.TEXT:
            return Text(LONG[: self.file.size or 1], "log")
        return Text("x", "log") if self.file.has_text else None

    def convert(self, target: ConvertTo) -> Converted | None:
        if not self.file.converts or not target.mime_types:
            return None
        size = min(self.file.size or 0, target.max_bytes or self.file.size or 0)
        return Converted(Blob(size, _refuse), target.mime_types[0])

    def inspect(self) -> Inspection:
        return Inspection(locked=self.file.flaw == "locked", damaged=self.file.flaw == "damaged")

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        if not self.file.converts or not target.mime_types:
            return None
        pages = self.file.pages or 1
        image = Converted(make_blob(b"x"), target.mime_types[0])
        return PageImages(dict.fromkeys(range(1, min(pages, count) + 1), image), pages)


def _refuse() -> Any:
    raise UnreadableError("failed")
