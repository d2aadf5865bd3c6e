"""A request as a form (`multipart/form-data`): its fields as they came, its files in blocks as they are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capabilities.core.message import Blob
from capabilities.core.values import value_class
from capabilities.core.wire import BodyPiece, UpstreamRequest

ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
"""How browsers write what would end a name."""


@dataclass(frozen=True, slots=True)
class FormFile:
    """A file in a field of a form."""

    filename: str
    mime_type: str
    blob: Blob


FormFields = Mapping[str, tuple[str | FormFile, ...]]
"""A form's fields in order, each with all its values."""


@value_class
class FormRequest(UpstreamRequest):
    """One HTTP call whose payload, `FormFields`, goes as a form; `boundary` stands in none of its values."""

    boundary: str = ""

    def pieces(self) -> tuple[BodyPiece, ...]:
        """The body in order: heads and texts as bytes, files between them."""
        return tuple(self._pieces())

    def _pieces(self) -> Iterator[BodyPiece]:
        for name, values in self.payload.items():
            for value in values:
                yield _head(self.boundary, name, value)
                yield value.blob if isinstance(value, FormFile) else value.encode()
                yield b"\r\n"
        yield f"--{self.boundary}--\r\n".encode()

    def elide(self) -> Any:
        """The fields, each file's bytes as `<N bytes>`."""
        return {name: [_elided(value) for value in values] for name, values in self.payload.items()}


def _head(boundary: str, name: str, value: str | FormFile) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name.translate(ESCAPES)}"'
    if isinstance(value, FormFile):
        head += f'; filename="{value.filename.translate(ESCAPES)}"\r\nContent-Type: {value.mime_type}'
    return f"{head}\r\n\r\n".encode()


def _elided(value: str | FormFile) -> str:
    return f"<{value.blob.size} bytes>" if isinstance(value, FormFile) else value
