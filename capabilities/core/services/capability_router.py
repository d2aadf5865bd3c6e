"""CapabilityRouter: adapt a message between agents to the receiving service's capabilities (MCR-2).

Only capabilities matter here, as MCR-2.1 to 2.6 require (`slot_choice.MESSAGE_SLOTS`). A candidate model's MIME types
and limits matter only later, when the message is sent to the model (`adaptation`). Supported files are included in
OpenAI's format: `image_url` for images, `input_audio` for WAV and MP3, and `file` with `file_data` for all others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.delivery.decision import Outcome, Reader, decide
from capabilities.core.delivery.flaws import find_flaw
from capabilities.core.delivery.slot_choice import MESSAGE_SLOTS
from capabilities.core.delivery.writing import FLAWS
from capabilities.core.message import Blob, Converted, ConvertTo, FilePart, Text, UnreadableError, make_blob
from capabilities.core.services.adapter import AttachmentInfo, ContentAdapter
from capabilities.core.services.registry import LlmServiceRegistry
from capabilities.core.texts.description import failed_block
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities, Kind
from capabilities.core.wire import WriteData, base64_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A message from one agent to another: its text and attachments."""

    text: str = ""
    attachments: tuple[AttachmentInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """An attachment's bytes, and the type and name that the artifact store recorded for it, if any.

    `stored` is the file in the store. It can be opened to check whether the file is locked or damaged.
    """

    data: bytes | Blob
    mime_type: str | None = None
    filename: str | None = None
    stored: FilePart | None = None

    @property
    def blob(self) -> Blob:
        return make_blob(self.data) if isinstance(self.data, bytes) else self.data


Load = Callable[[AttachmentInfo], Loaded]
"""Function that reads an attachment. It raises `UnreadableError` if the bytes are missing or corrupt."""


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """A message that was adapted to a service. `can_process` is True if it includes every attachment.

    All other attachments are in `unsupported_attachments`, and `text_description` describes them.
    """

    can_process: bool
    processed_content: str | list[dict[str, Any]]
    unsupported_attachments: tuple[AttachmentInfo, ...] = ()
    text_description: str | None = None

    def as_json(self) -> dict[str, Any]:
        described = {} if self.text_description is None else {"textDescription": self.text_description}
        return {
            "canProcess": self.can_process,
            "processedContent": self.processed_content,
            "unsupportedAttachments": [_attachment_json(attachment) for attachment in self.unsupported_attachments],
            **described,
        }


def find_no_text(_: AttachmentInfo) -> str:
    return ""


class CapabilityRouter:
    """Adapts messages to a service's capabilities.

    `load` reads an attachment. It is called only for supported attachments. `write` encodes an attachment's bytes for
    the message. `words_about` returns text that is added to the description of an unsupported attachment.
    """

    def __init__(
        self,
        registry: LlmServiceRegistry,
        adapter: ContentAdapter,
        load: Load,
        write: WriteData = base64_text,
        words_about: Callable[[AttachmentInfo], str] = find_no_text,
    ) -> None:
        self.registry = registry
        self.adapter = adapter
        self.load = load
        self.write = write
        self.words_about = words_about

    def route_content(self, message: AgentMessage, service_id: str) -> RoutingResult:
        """Return the message, adapted to the service. An unknown service is treated as text only.

        This method never raises an exception, whatever the attachments contain.
        """
        reader = Reader(MESSAGE_SLOTS, self._capabilities(service_id))
        parts: list[dict[str, Any]] = []
        blocks: list[str] = []
        unsupported: list[AttachmentInfo] = []
        for attachment in message.attachments:
            routed = self._route(attachment, reader)
            if isinstance(routed, str):
                blocks.append(routed)
                unsupported.append(attachment)
            else:
                parts.append(routed)
        description = "\n\n".join(blocks) if blocks else None
        text = "\n\n".join(filter(None, [message.text, description]))
        lead = [{"type": "text", "text": text}] if text else []
        return RoutingResult(not unsupported, [*lead, *parts] if parts else text, tuple(unsupported), description)

    def get_required_capabilities(self, message: AgentMessage) -> list[str]:
        """Return `text` and the capabilities that the attachments need, without duplicates, in order of appearance."""
        return list(dict.fromkeys(["text", *(attachment.capability for attachment in message.attachments)]))

    def _capabilities(self, service_id: str) -> Capabilities:
        try:
            return self.registry.get_capabilities(service_id) or TEXT_ONLY
        except Exception as error:  # If the registry's database query fails, the message must not be lost.
            log.warning("asking for a service's capabilities failed (%s): text only", type(error).__name__)
            return TEXT_ONLY

    def _route(self, attachment: AttachmentInfo, reader: Reader) -> dict[str, Any] | str:
        file = replace(attachment.file, content=_LazyContent(attachment, self.load))
        if decide(file, reader).outcome is not Outcome.NATIVE:
            return "\n".join(filter(None, (self.adapter.adapt_to_text(attachment).text, self.words_about(attachment))))
        try:
            loaded = self.load(attachment)
            # Providers reject the entire message if they cannot open a document in it.
            if loaded.stored and (flaw := find_flaw(loaded.stored)):
                return self.adapter.adapt_to_text(attachment, flaw=FLAWS[flaw.code]).text
            return _part(file, loaded, self.write)
        except UnreadableError:
            return failed_block(attachment.filename, file.artifact_id, self.adapter.language)


@dataclass(frozen=True, slots=True)
class _LazyContent:
    """An attachment's content, loaded only when it is read."""

    attachment: AttachmentInfo
    load: Load

    def blob(self) -> Blob:
        return self.load(self.attachment).blob

    def text(self) -> Text | None:
        return None

    def convert(self, _: ConvertTo) -> Converted | None:
        return None


AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Formats that OpenAI's `input_audio` accepts. Other audio is sent as a file."""

UNNAMED_TYPE = {Kind.IMAGE: "image/png", Kind.AUDIO: "audio/mpeg", Kind.VIDEO: "video/mp4"}
"""MIME types that are assumed for attachments whose type is unknown, because a data URL needs a type."""


def _part(file: FilePart, loaded: Loaded, write: WriteData) -> dict[str, Any]:
    # The artifact store has examined the bytes, so its type takes precedence over the message's type.
    types = [
        mime_type
        for mime_type in (loaded.mime_type, file.mime_type)
        if mime_type and mime_type != "application/octet-stream"
    ]
    mime_type = types[0] if types else UNNAMED_TYPE.get(file.kind, "application/octet-stream")
    if file.kind is Kind.AUDIO and mime_type in AUDIO_FORMATS:
        audio = {"data": write(loaded.blob, ""), "format": AUDIO_FORMATS[mime_type]}
        return {"type": "input_audio", "input_audio": audio}
    url = write(loaded.blob, f"data:{mime_type};base64,")
    if file.kind is Kind.IMAGE:
        return {"type": "image_url", "image_url": {"url": url}}
    filename = file.filename or loaded.filename or file.artifact_id or "file"
    return {"type": "file", "file": {"filename": filename, "file_data": url}}


def _attachment_json(attachment: AttachmentInfo) -> dict[str, Any]:
    def fields() -> Iterator[tuple[str, Any]]:
        yield "type", attachment.type
        yield "artifactRef", attachment.artifact_ref
        yield "filename", attachment.filename
        yield "size", attachment.size
        yield "mimeType", attachment.mime_type

    return {key: value for key, value in fields() if value is not None}
