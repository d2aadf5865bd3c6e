# ruff: noqa: N815 - JSON keys are camelCase
"""JSON schemas for artifacts in the agents' API."""

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
    """The fields of a multipart upload besides `file`; numbers are sent as text, `metadata` as a JSON object."""

    model_config = ConfigDict(strict=False)

    filename: str = Field("", max_length=1000)
    type: str = Field("", max_length=100)
    metadata: dict[str, Any] | None = None
    visibility: Literal["shared", "private"] = "shared"
    expiresInSeconds: float | None = Field(None, gt=0, le=MAX_LIFETIME)


class UploadLinkIn(Body):
    """The file for which an upload link is requested; `size` is its size in bytes, if known."""

    filename: str = Field(max_length=1000)
    mimeType: str = Field("", max_length=255)
    size: int | None = Field(None, ge=0)


class UploadLinkOut(BaseModel):
    """An upload link for one PUT of the file's bytes before it expires; `ref` will be the artifact's reference."""

    uploadUrl: str
    method: Literal["PUT"]
    expiresAt: str
    maxBytes: int
    ref: str


class CorrectionIn(Body):
    """A correction of a file's type, encoding or visibility; omitted fields stay unchanged.

    null restores the detected value. If only an encoding is given, the file becomes a text file. Common encoding
    aliases are accepted.
    """

    mimeType: str | None = Field(None, max_length=1000, description="For example text/csv; null for what was detected.")
    encoding: str | None = Field(None, max_length=40, description="For example gb18030; null for what was detected.")
    visibility: Literal["shared", "private"] = Field("shared", description="Who can read it besides its owner.")

    @model_validator(mode="after")
    def _require_field(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("missing", "Send at least one of mimeType, encoding, visibility")
        return self


class ArtifactOut(BaseModel):
    """An artifact's metadata; `size` is in bytes, and only text has `encoding` and `encodingCertain`.

    `corrected` contains corrected values, which override detected ones. `mismatch` says whether the declared and
    detected types differ, and `evidence` shows what the detected type is based on. Measurements such as width or
    duration are present if they are known.
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
    """The result of get_artifact; exactly one of `content`, `imageUrl` and `file` is present.

    `suggestedAgents` accompanies a description. It names the agents that can read the artifact now, including agents
    created at run time.
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
    """The artifact as each model service would receive it; `request` describes the request used for the preview."""

    artifact: ArtifactOut
    request: str
    deliveries: list[dict[str, Any]]
    canRead: list[str]


class ToolsOut(BaseModel):
    """The tools that agents can call, as function definitions."""

    tools: list[dict[str, object]]


def artifact_out(row: Artifact) -> ArtifactOut:
    """Return an artifact's metadata; measurements are present if they are known, and an encoding only for text."""
    optional_fields: dict[str, Any] = {
        name: value for name in ("width", "height", "pages", "seconds") if (value := getattr(row, name)) is not None
    }
    if not row.is_binary:
        optional_fields |= {"encoding": row.encoding or None, "encodingCertain": row.encoding_certain}
    if correction := row.correction:
        corrected = {"mimeType": correction.get("mime_type"), "encoding": correction.get("encoding")}
        optional_fields["corrected"] = {name: text for name, text in corrected.items() if text}
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
        **optional_fields,
    )
