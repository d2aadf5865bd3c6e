# ruff: noqa: N815 - JSON keys are camelCase
"""The JSON of the agents' API that concerns artifacts (CONTRACT §4, §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from artifacts.library import MAX_LIFETIME
from capabilities.core.vocabulary import Kind
from routing_admin.api.errors import Body

if TYPE_CHECKING:
    from artifacts.models import Artifact


class TextArtifactIn(Body):
    """Text to store as an artifact."""

    text: str
    filename: str = Field("", max_length=1000)
    type: str = Field("", max_length=100)
    metadata: dict[str, Any] | None = None
    visibility: Literal["shared", "private"] = "shared"
    expiresInSeconds: float | None = Field(None, gt=0, le=MAX_LIFETIME)


class UploadIn(Body):
    """The fields of a multipart upload beside `file`, where numbers are words; `metadata` is a JSON object."""

    model_config = ConfigDict(strict=False)

    filename: str = Field("", max_length=1000)
    type: str = Field("", max_length=100)
    metadata: dict[str, Any] | None = None
    visibility: Literal["shared", "private"] = "shared"
    expiresInSeconds: float | None = Field(None, gt=0, le=MAX_LIFETIME)


class UploadLinkIn(Body):
    """The file to upload; `size` in bytes, if known."""

    filename: str = Field(max_length=1000)
    mimeType: str = Field("", max_length=255)
    size: int | None = Field(None, ge=0)


class UploadLinkOut(BaseModel):
    """An upload link: send the file's bytes there, once, before it ends; `ref` is the artifact that they become."""

    uploadUrl: str
    method: Literal["PUT"]
    expiresAt: str
    maxBytes: int
    ref: str


class CorrectionIn(Body):
    """What a file is in the words of whoever knows it; omitted fields stay unchanged.

    null restores what was detected. An encoding alone makes a file text. Several names of an encoding are known.
    """

    mimeType: str | None = Field(None, max_length=1000, description="For example text/csv; null for what was detected.")
    encoding: str | None = Field(None, max_length=40, description="For example gb18030; null for what was detected.")
    visibility: Literal["shared", "private"] = Field("shared", description="Who can read it besides its owner.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("missing", "Send at least one of mimeType, encoding, visibility")
        return self


class ArtifactOut(BaseModel):
    """What is known of an artifact; `size` in bytes, for text its encoding, and whether that is certain or a guess.

    `corrected` has the words of a correction, which outrank what was detected; `mismatch` says that the file is not
    what it was declared, `evidence` why. Measures are there where they are known.
    """

    id: str
    ref: str
    filename: str
    mimeType: str
    declaredMimeType: str | None
    detectedMimeType: str | None
    size: int
    sha256: str
    kind: Kind
    isBinary: bool
    encoding: str | None = None
    encodingCertain: bool | None = None
    createdAt: str
    expiresAt: str | None
    type: str | None
    metadata: dict[str, Any] | None
    visibility: str
    owner: str | None
    mismatch: bool
    evidence: list[Any]
    corrected: dict[str, str] | None = None
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    seconds: float | None = None


class ArtifactsOut(BaseModel):
    """A page of the calling agent's artifacts, newest first."""

    artifacts: list[ArtifactOut]
    nextCursor: str | None


class ContentRouteOut(BaseModel):
    """get_artifact's answer: exactly one of content, imageUrl and file (CONTRACT §5).

    `suggestedAgents` stands beside a description: who can read the artifact now, agents made at run time among them.
    """

    contentType: Literal["text", "image", "binary"]
    routing: Literal["text", "image_url", "file"]
    content: str | None = None
    imageUrl: dict[str, Any] | None = None
    file: dict[str, Any] | None = None
    metadata: dict[str, Any]
    suggestedAgents: list[str] | None = None
    warnings: list[str] | None = None


class PreviewOut(BaseModel):
    """The artifact before every model service; `request` says what the previewed request is."""

    artifact: ArtifactOut
    request: str
    deliveries: list[dict[str, Any]]
    canRead: list[str]


class ToolsOut(BaseModel):
    """The agents' tools as function definitions."""

    tools: list[dict[str, object]]


def artifact_out(row: Artifact) -> ArtifactOut:
    """Return what is known of an artifact: the encoding of text only, measures where known."""
    known: dict[str, Any] = {
        name: value for name in ("width", "height", "pages", "seconds") if (value := getattr(row, name)) is not None
    }
    if not row.is_binary:
        known |= {"encoding": row.encoding or None, "encodingCertain": row.encoding_certain}
    if words := row.correction:
        corrected = {"mimeType": words.get("mime_type"), "encoding": words.get("encoding")}
        known["corrected"] = {name: word for name, word in corrected.items() if word}
    return ArtifactOut(
        id=row.id,
        ref=row.ref,
        filename=row.filename,
        mimeType=row.mime_type,
        declaredMimeType=row.declared_mime_type or None,
        detectedMimeType=row.detected_mime_type or None,
        size=row.size,
        sha256=row.sha256,
        kind=Kind(row.kind),
        isBinary=row.is_binary,
        createdAt=row.created_at.isoformat(),
        expiresAt=row.expires_at.isoformat() if row.expires_at else None,
        type=row.type or None,
        metadata=row.metadata,
        visibility=row.visibility,
        owner=row.owner or None,
        mismatch=row.mismatch,
        evidence=row.evidence,
        **known,
    )
