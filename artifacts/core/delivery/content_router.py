"""Choose the form in which the `get_artifact` tool returns a file to a model (ABR-2 to ABR-7).

Text is returned as text. If the model service can read the file, an image is returned in `image_url` and any other
binary file in `file`. Otherwise the result is a text description of the file without its bytes.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from artifacts.core.artifact import StoredArtifact
from artifacts.core.detection.kinds import OCTET_STREAM, clean_mime, filename_mime, mime_kind
from capabilities.core.delivery.decision import Delivery, Outcome, Reader, decide, decide_description
from capabilities.core.delivery.flaws import find_flaw
from capabilities.core.delivery.obstacles import ReasonCode, make_reason
from capabilities.core.delivery.slot_choice import GET_ARTIFACT_SLOTS
from capabilities.core.delivery.writing import FLAWS
from capabilities.core.message import UnreadableError
from capabilities.core.texts.description import (
    HEAD_CHARS,
    Excerpt,
    Flaw,
    failed_block,
    head_and_tail,
    page,
    unreadable_block,
)
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities, Kind
from capabilities.core.wire import WriteData, base64_text

log = logging.getLogger(__name__)

UNKNOWN_SERVICE = "unknown_service"
"""Warning code: no service has this id, so the service is treated as text only."""

CAPABILITIES_UNKNOWN = "capabilities_unknown"
"""Warning code: the service registry failed, so the service is treated as text only (ABR-8.4)."""

UNREADABLE_WARNINGS = frozenset({"artifact_missing", "artifact_corrupt"})


class Services(Protocol):
    """Interface for looking up a service's capabilities, implemented by `LlmServiceRegistry`."""

    def get_capabilities(self, service_id: str) -> Capabilities | None:
        """Return the service's input and output capabilities, or None for an unknown id."""


Detect = Callable[[StoredArtifact], str | None]
"""Function that detects an artifact's MIME type from its bytes. It is called only if no type is stored (ABR-1.5,
ABR-8.2), and may raise any exception."""


@dataclass(frozen=True, slots=True)
class ContentRouteResult:
    """The result of the `get_artifact` tool. Exactly one of `content`, `image_url` and `file` is set.

    `delivery` is the decision that led to this result. `warnings` contains warning codes; the JSON omits an empty list.
    """

    content_type: str
    routing: str
    metadata: Mapping[str, Any]
    delivery: Delivery
    content: str | None = None
    image_url: Mapping[str, Any] | None = field(default=None, repr=False)
    file: Mapping[str, Any] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON, with the keys given in the specification."""
        body = {"content": self.content, "imageUrl": self.image_url, "file": self.file}
        return {
            "contentType": self.content_type,
            "routing": self.routing,
            **{key: value for key, value in body.items() if value is not None},
            "metadata": dict(self.metadata),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }


class ArtifactContentRouter:
    """Converts artifacts to a form that a model service can read.

    No method raises an exception for any artifact or service (ABR-INV5). `write` is the function that encodes a
    file's bytes for the result, by default as base64.
    """

    def __init__(self, services: Services, detect: Detect | None = None, write: WriteData = base64_text) -> None:
        self.services = services
        self.detect = detect
        self.write = write

    def route_content(
        self,
        artifact: StoredArtifact,
        service_id: str,
        *,
        language: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> ContentRouteResult:
        """Return the artifact in a form that the service can read.

        `offset` and `limit` select a range of the text, in characters. Descriptions and error messages are in
        `language`. If the bytes are unreadable, return an error message and a warning instead of raising an exception.
        """
        typed_artifact, (capabilities, warnings) = self._complete_type(artifact), self._capabilities(service_id)
        part, reader = typed_artifact.part(), Reader(GET_ARTIFACT_SLOTS, capabilities)
        delivery = decide(part, reader)
        try:
            # Providers reject the entire request if it contains a document that they cannot open.
            if delivery.outcome is Outcome.NATIVE and (flaw := find_flaw(part)):
                delivery = decide_description(part, reader, flaw)
            result = _ROUTES[delivery.outcome](typed_artifact, delivery, _Options(language, offset, limit, self.write))
        except UnreadableError as error:
            result = _describe_failure(
                typed_artifact, replace(delivery, outcome=Outcome.DESCRIBED), language, error.reason
            )
        return replace(result, warnings=(*warnings, *result.warnings))

    def detect_binary_type(self, artifact: StoredArtifact) -> Kind:
        """Return the kind of binary content (ABR-1.2 to 1.5).

        The kind is derived from the metadata, else from the file name, else from the bytes. For text, return `other`.
        """
        kind = self._complete_type(artifact).kind
        return Kind.OTHER if kind is Kind.TEXT else kind

    def has_capability(self, service_id: str, capability: str) -> bool:
        """Return whether the service has the capability.

        Return False if the service is unknown or the registry fails (ABR-2.4, 8.4).
        """
        return self._capabilities(service_id)[0].has(capability)

    def format_image_url(self, content: bytes | str, mime_type: str) -> dict[str, Any]:
        """Return an image as an `image_url` object (ABR-3.3). `content` is bytes or base64."""
        data = content if isinstance(content, str) else base64.b64encode(content).decode("ascii")
        return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{data}"}}

    def generate_text_description(self, artifact: StoredArtifact, language: str | None = None) -> str:
        """Return a description for a model that cannot read the file: name, reference, type and size (ABR-4.3, 4.4)."""
        return _cannot_read(artifact, language)

    def _complete_type(self, artifact: StoredArtifact) -> StoredArtifact:
        if not artifact.is_binary or artifact.kind not in (Kind.OTHER, Kind.TEXT):
            return artifact
        mime_type = clean_mime(artifact.mime_type) or filename_mime(artifact.filename) or self._detect_type(artifact)
        if mime_type is None or mime_kind(mime_type) is Kind.TEXT:
            return replace(artifact, kind=Kind.OTHER)
        return replace(artifact, kind=mime_kind(mime_type), mime_type=mime_type)

    def _detect_type(self, artifact: StoredArtifact) -> str | None:
        if self.detect is None or artifact.content is None:
            return None
        try:
            return clean_mime(self.detect(artifact))
        except (UnreadableError, OSError) as error:
            log.warning("detecting the type of artifact %s failed: %s", artifact.id, type(error).__name__)
        except Exception:  # ABR-8.3: if the detector fails, the type remains unknown.
            log.exception("detecting the type of artifact %s failed", artifact.id)
        return None

    def _capabilities(self, service_id: str) -> tuple[Capabilities, tuple[str, ...]]:
        try:
            capabilities = self.services.get_capabilities(service_id)
        except Exception as error:  # ABR-8.4: if the registry fails, the service is treated as text only.
            log.warning("asking for a service's capabilities failed (%s): text only", type(error).__name__)
            return TEXT_ONLY, (CAPABILITIES_UNKNOWN,)
        return (capabilities, ()) if capabilities is not None else (TEXT_ONLY, (UNKNOWN_SERVICE,))


@dataclass(frozen=True, slots=True)
class _Options:
    language: str | None
    offset: int | None
    limit: int | None
    write: WriteData

    @property
    def is_for_a_page(self) -> bool:
        return self.offset is not None or self.limit is not None


def _content_type(artifact: StoredArtifact) -> str:
    if not artifact.is_binary:
        return "text"
    return "image" if artifact.kind is Kind.IMAGE else "binary"


def _native(artifact: StoredArtifact, delivery: Delivery, options: _Options) -> ContentRouteResult:
    assert artifact.content is not None  # noqa: S101 - `decide` gives native only to a file with content
    blob = artifact.content.blob()
    kind, slot = _content_type(artifact), delivery.slot.name if delivery.slot else "file"
    if slot == "image_url":
        data_url = options.write(blob, f"data:{_image_type(artifact)};base64,")
        image_url = {"type": "image_url", "image_url": {"url": data_url}}
        return ContentRouteResult(kind, slot, artifact.metadata(), delivery, image_url=image_url)
    inner = {
        "filename": artifact.filename or artifact.id,
        "mimeType": artifact.mime_type,
        "data": options.write(blob, ""),
    }
    return ContentRouteResult(kind, slot, artifact.metadata(), delivery, file={"type": "file", "file": inner})


def _image_type(artifact: StoredArtifact) -> str:
    candidates = (artifact.mime_type, filename_mime(artifact.filename) or "")
    # A data URL needs an image MIME type, but the artifact's own type may be generic or wrong.
    return next((mime_type for mime_type in candidates if mime_type.startswith("image/")), "image/png")


def _text(artifact: StoredArtifact, delivery: Delivery, options: _Options) -> ContentRouteResult:
    text = artifact.content.text() if artifact.content else None
    if text is None:
        reason = make_reason(ReasonCode.NO_TEXT_FOUND, mime_type=artifact.mime_type)
        # The bytes are not text despite the declared type, so the model gets a description, as for a binary file.
        binary = replace(artifact, is_binary=True, kind=Kind.OTHER)
        return _describe(binary, Delivery(Outcome.DESCRIBED, reason), options)
    excerpt = _excerpt(text.text, options)
    total = {"totalChars": excerpt.total_chars} if excerpt.cut or options.is_for_a_page else {}
    metadata = MappingProxyType({**artifact.metadata(), **total})
    return ContentRouteResult("text", "text", metadata, delivery, content=excerpt.text)


def _excerpt(text: str, options: _Options) -> Excerpt:
    if not options.is_for_a_page:
        return head_and_tail(text, options.language)
    return page(text, options.language, options.offset or 0, HEAD_CHARS if options.limit is None else options.limit)


def _describe(artifact: StoredArtifact, delivery: Delivery, options: _Options) -> ContentRouteResult:
    if delivery.reason.code is ReasonCode.UNREADABLE:
        return _describe_failure(artifact, delivery, options.language, str(delivery.reason.facts["problem"]))
    description = _cannot_read(artifact, options.language, FLAWS.get(delivery.reason.code))
    return ContentRouteResult(_content_type(artifact), "text", artifact.metadata(), delivery, content=description)


def _cannot_read(artifact: StoredArtifact, language: str | None, flaw: Flaw | None = None) -> str:
    mime_type = artifact.mime_type or OCTET_STREAM
    return unreadable_block(artifact.filename, artifact.id, mime_type, artifact.size, language, flaw)


def _describe_failure(
    artifact: StoredArtifact, delivery: Delivery, language: str | None, problem: str
) -> ContentRouteResult:
    warning = problem if problem in UNREADABLE_WARNINGS else "artifact_corrupt"
    return ContentRouteResult(
        _content_type(artifact),
        "text",
        artifact.metadata(),
        replace(delivery, reason=make_reason(ReasonCode.UNREADABLE, problem=problem), slot=None, mime_type=None),
        content=failed_block(artifact.filename or artifact.id, None, language),
        warnings=(warning,),
    )


_ROUTES: Mapping[Outcome, Callable[[StoredArtifact, Delivery, _Options], ContentRouteResult]] = MappingProxyType(
    {Outcome.NATIVE: _native, Outcome.INLINED: _text, Outcome.DESCRIBED: _describe}
)
"""Maps each outcome to the function that builds its result. `get_artifact` has no other outcomes, because it does not
use tool results, conversions or content policies."""
