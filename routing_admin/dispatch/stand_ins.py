"""Files that stand in for real ones in a simulation: of a kind and a size, with nothing in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capabilities.core.message import Blob, Converted, ConvertTo, FilePart, PageImages, Text
from capabilities.core.vocabulary import Kind

TYPES: Mapping[Kind, tuple[str, str]] = {
    Kind.IMAGE: ("image/png", "png"),
    Kind.AUDIO: ("audio/mpeg", "mp3"),
    Kind.VIDEO: ("video/mp4", "mp4"),
    Kind.DOCUMENT: ("application/pdf", "pdf"),
    Kind.TEXT: ("text/plain", "txt"),
    Kind.OTHER: ("application/zip", "zip"),
}
"""What a stand-in of each kind is, and the ending of its name."""
WORDS = "lorem ipsum "
BYTES_PER_LETTER = 20
"""So many bytes of a document hold one letter of its text."""
BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class StandInContent:
    """Content that has a length: zeros for bytes, and words where a file of that kind has any."""

    kind: Kind
    size: int

    def blob(self) -> Blob:
        """So many zeros."""
        return Blob(self.size, lambda: _zeros(self.size))

    def text(self) -> Text | None:
        """As much text as a file of that kind and size holds; None for pictures, sound, film and others."""
        if self.kind is Kind.TEXT:
            return Text(_words(self.size), "utf-8")
        if self.kind is Kind.DOCUMENT:
            return Text(_words(self.size // BYTES_PER_LETTER), "pdf")
        return None

    def convert(self, target: ConvertTo) -> Converted | None:
        """An image of the first type that is asked for, no larger than it may be; None for anything else."""
        if self.kind is not Kind.IMAGE:
            return None
        size = min(self.size, target.max_bytes or self.size)
        return Converted(Blob(size, lambda: _zeros(size)), target.mime_types[0])

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        """No pages: nobody knows how they look."""
        return None


def stand_in(kind: Kind, size: int, number: int = 1) -> FilePart:
    """A file of that kind and so many bytes; `number` tells several of a kind apart."""
    mime_type, ending = TYPES[kind]
    name = f"stand-in-{number}.{ending}"
    return FilePart(kind, mime_type, name, size, content=StandInContent(kind, size))


def _zeros(size: int) -> Iterator[bytes]:
    for start in range(0, size, BLOCK):
        yield bytes(min(BLOCK, size - start))


def _words(letters: int) -> str:
    return (WORDS * (letters // len(WORDS) + 1))[:letters]
