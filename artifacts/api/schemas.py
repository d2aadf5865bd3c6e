# ruff: noqa: N815 - JSON keys are camelCase
"""The JSON of the agents' API that concerns artifacts (CONTRACT §4, §5)."""

from __future__ import annotations

from typing import Any

from ninja import Schema
from pydantic import Field


class TextArtifactIn(Schema):
    """Words to keep as an artifact."""

    text: str
    filename: str = Field("", max_length=1000)
    type: str = Field("", max_length=100)
    metadata: dict[str, Any] | None = None
    visibility: str = "shared"
    expiresInSeconds: float | None = None


class UploadIn(Schema):
    """The fields of a multipart upload beside `file`; `metadata` is a JSON object."""

    filename: str = Field("", max_length=1000)
    type: str = Field("", max_length=100)
    metadata: dict[str, Any] | None = None
    visibility: str = "shared"
    expiresInSeconds: float | None = None


class ArtifactOut(Schema):
    """What is known of an artifact; `size` in bytes, `encoding` for text only."""

    id: str
    ref: str
    filename: str
    mimeType: str
    declaredMimeType: str | None
    size: int
    sha256: str
    kind: str
    isBinary: bool
    encoding: str | None = None
    createdAt: str


class ArtifactsOut(Schema):
    """A page of the calling agent's artifacts, newest first."""

    artifacts: list[ArtifactOut]
    nextCursor: str | None


class ContentRouteOut(Schema):
    """get_artifact's answer: exactly one of content, imageUrl and file (CONTRACT §5)."""

    contentType: str
    routing: str
    content: str | None = None
    imageUrl: dict[str, Any] | None = None
    file: dict[str, Any] | None = None
    metadata: dict[str, Any]
    warnings: list[str] | None = None


class PreviewOut(Schema):
    """The artifact before every model service; `request` says what the previewed request is."""

    artifact: ArtifactOut
    request: str
    deliveries: list[dict[str, Any]]
    canRead: list[str]
