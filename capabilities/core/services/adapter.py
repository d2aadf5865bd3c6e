"""ContentAdapter: describe attachments that a model cannot read, as text and as JSON (MCR-3, MCR-P4, MCR-P5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from capabilities.core.message import FilePart
from capabilities.core.services.agents import AgentDirectory, CanRead, has_capability_for
from capabilities.core.services.registry import LlmServiceRegistry
from capabilities.core.texts.description import Flaw, attachment_block, content_type_name
from capabilities.core.texts.friendly import FORMAT_NAMES
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Direction, Kind, is_text_mime

DOCUMENTS = frozenset({"document", "spreadsheet", "presentation"})

TYPE_KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind.value: kind for kind in Kind if kind not in (Kind.TEXT, Kind.OTHER)}
)
"""Attachment types that are also kinds of content. An attachment of any other type is treated as a file."""


@dataclass(frozen=True, slots=True)
class AttachmentInfo:
    """What a message states about an attachment.

    `type` is for example image, audio, video or file. `size` is in bytes, or None if it is not stated.
    """

    type: str | None
    artifact_ref: str
    filename: str | None = None
    size: int | None = None
    mime_type: str | None = None

    @property
    def kind(self) -> Kind:
        """Return the kind of content. For files, the MIME type decides whether they are documents or something else."""
        noun = FORMAT_NAMES.get(self.mime_type or "", ("", ""))[1]
        return TYPE_KINDS.get(self.type or "", Kind.DOCUMENT if noun in DOCUMENTS else Kind.OTHER)

    @property
    def capability(self) -> str:
        return CAPABILITY_OF_KIND[self.kind]

    @property
    def file(self) -> FilePart:
        """Return the attachment as a file without content. This is enough to decide how to deliver it."""
        mime_type = self.mime_type or "application/octet-stream"
        artifact_id = self.artifact_ref.removeprefix("artifact:")
        return FilePart(self.kind, mime_type, self.filename, self.size, artifact_id)


@dataclass(frozen=True, slots=True)
class AdaptedContent:
    """The description of an attachment: text for the model, and JSON fields such as `contentType` and `artifactRef`."""

    text: str
    structured_info: Mapping[str, Any]


class ContentAdapter:
    """Describes attachments and names the agents that can read them.

    `can_read` decides whether an agent can read a file (by default, only its capabilities count). `language` is the
    language of the request, or the default. `agent_id` is the requesting agent, which is never suggested to itself. The
    text mentions the tool `send_message` only if `has_send_message` is set. `registry` contains the services that
    `find_capable_services` searches.
    """

    def __init__(
        self,
        registry: LlmServiceRegistry,
        agents: AgentDirectory | None = None,
        language: str = "en",
        *,
        can_read: CanRead = has_capability_for,
        agent_id: str | None = None,
        has_send_message: bool = True,
    ) -> None:
        self.registry = registry
        self.agents = AgentDirectory() if agents is None else agents
        self.language = language
        self.can_read = can_read
        self.agent_id = agent_id
        self.has_send_message = has_send_message

    def adapt_to_text(
        self, attachment: AttachmentInfo, *, unreadable: bool = False, flaw: Flaw | None = None
    ) -> AdaptedContent:
        """Describe an attachment. `unreadable` means that its bytes are unavailable (MCR-E4).

        `flaw` is the reason why no model can open the file. If there is one, no agent is suggested.
        """
        suggested = [] if flaw else self._find_readers(attachment)
        text = attachment_block(
            attachment.kind,
            attachment.artifact_ref,
            attachment.filename,
            attachment.size,
            attachment.mime_type,
            self.language,
            suggested,
            self.has_send_message,
            unreadable=unreadable,
            flaw=flaw,
        )
        return AdaptedContent(text, _info(attachment, suggested))

    def _find_readers(self, attachment: AttachmentInfo) -> list[str]:
        # Every model can read text files, so `can_read` would accept all agents. Suggest only those with the capability
        # (MCR-2.5).
        mime_type = (attachment.mime_type or "").partition(";")[0].strip().lower()
        decides = has_capability_for if is_text_mime(mime_type) else self.can_read
        return self.agents.find_readers(attachment.file, decides, exclude=self.agent_id)

    def adapt_multiple(self, attachments: Iterable[AttachmentInfo]) -> list[AdaptedContent]:
        return [self.adapt_to_text(attachment) for attachment in attachments]

    def find_capable_agents(self, capability: str) -> list[str]:
        """Return the ids of agents with this capability (MCR-4.1)."""
        return self.agents.find_capable(capability, Direction.INPUT)

    def find_capable_services(self, capability: str) -> list[str]:
        return [service.id for service in self.registry.get_services_by_capability(capability)]


def _info(attachment: AttachmentInfo, suggested: list[str]) -> Mapping[str, Any]:
    details = {
        "filename": attachment.filename or None,
        "size": attachment.size,
        "mimeType": attachment.mime_type or None,
    }
    return {
        "contentType": content_type_name(attachment.kind),
        "artifactRef": attachment.artifact_ref,
        **{key: value for key, value in details.items() if value is not None},
        "suggestedAgents": suggested,
    }
