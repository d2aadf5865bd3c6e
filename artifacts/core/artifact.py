"""A stored file as seen by the `core` packages: its metadata and access to its bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from capabilities.core.message import Content, FilePart
from capabilities.core.vocabulary import Kind

REF_PREFIX = "artifact:"
# An id has no dots or slashes, so it cannot be used as a path.
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def artifact_id(ref: object) -> str | None:
    """Return the id in an artifact reference (`artifact:<id>` or a bare id), or None if the reference is invalid."""
    artifact_id = ref.removeprefix(REF_PREFIX) if isinstance(ref, str) else ""
    return artifact_id if _ID.fullmatch(artifact_id) else None


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """A stored file.

    `mime_type` is the effective type, `declared_mime_type` the type that the uploader declared. `size` is in bytes, and
    `created_at` is in ISO 8601. `type` is a free-form label chosen by the uploader. `encoding` is set only for text.
    `width` and `height` are in pixels, and `seconds` is the duration. `unreadable` is `artifact_missing` if the bytes
    no longer exist, and `artifact_corrupt` if they are damaged.
    """

    id: str
    mime_type: str = "application/octet-stream"
    kind: Kind = Kind.OTHER
    is_binary: bool = True
    size: int | None = None
    filename: str | None = None
    declared_mime_type: str | None = None
    encoding: str | None = None
    created_at: str | None = None
    type: str | None = None
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    seconds: float | None = None
    unreadable: str | None = None
    content: Content | None = field(default=None, compare=False, repr=False)

    @property
    def ref(self) -> str:
        return REF_PREFIX + self.id

    @property
    def binary_type(self) -> Kind | None:
        """Return the kind of binary content (ABR-1.2), or None for text."""
        return (Kind.OTHER if self.kind is Kind.TEXT else self.kind) if self.is_binary else None

    def part(self) -> FilePart:
        return FilePart(
            kind=self.binary_type or Kind.TEXT,
            mime_type=self.mime_type,
            filename=self.filename,
            size=self.size,
            artifact_id=self.id,
            width=self.width,
            height=self.height,
            pages=self.pages,
            seconds=self.seconds,
            unreadable=self.unreadable,
            content=self.content,
        )

    def metadata(self) -> Mapping[str, Any]:
        """Return the metadata for a `ContentRouteResult`: the `id`, and all other fields that are known."""
        values = {
            "id": self.id,
            "type": self.type,
            "filename": self.filename,
            "mimeType": self.mime_type,
            "size": self.size,
            "createdAt": self.created_at,
            "binaryType": self.binary_type.value if self.binary_type else None,
        }
        return {key: value for key, value in values.items() if value is not None}
