"""Route messages between agents that refer to artifacts (MCR-2, MCR-3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from artifacts.storage.content import RowStore, open_artifact, part_of
from capabilities.core.message import Blob, FilePart, UnreadableError, blob_of
from capabilities.core.services.adapter import AttachmentInfo, ContentAdapter
from capabilities.core.services.agents import AgentProfile, has_capability_for
from capabilities.core.services.capability_router import AgentMessage, CapabilityRouter, Loaded, RoutingResult
from capabilities.core.wire import WriteData, base64_text
from routing_admin.configuration import snapshot
from routing_admin.dispatch.model_endpoints import default_language, readers_of, registry_of

if TYPE_CHECKING:
    from artifacts.models import Artifact


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages for one agent: attachments it may read are loaded, known metadata is filled in.

    `describe` returns a model's description of a file, if the agent requests descriptions.
    """

    agent: str
    language: str | None = None
    describe: Callable[[FilePart | None], str] | None = None

    def route(self, message: AgentMessage, service_id: str, write: WriteData = base64_text) -> RoutingResult:
        """Return the message as the service can receive it (MCR-2); `write` encodes a file's data."""
        store = RowStore(self.agent)
        rows = {attachment.artifact_ref: store.row(attachment.artifact_ref) for attachment in message.attachments}
        completed = tuple(_complete(attachment, rows[attachment.artifact_ref]) for attachment in message.attachments)
        registry = registry_of(snapshot.current())
        adapter = ContentAdapter(
            registry,
            snapshot.current().directory,
            self.language or default_language(),
            can_read=can_really_read,
            agent_id=self.agent,
        )
        router = CapabilityRouter(
            registry,
            adapter,
            lambda attachment: _load(rows[attachment.artifact_ref]),
            write,
            lambda attachment: self._description_of(rows[attachment.artifact_ref]),
        )
        return router.route_content(AgentMessage(message.text, completed), service_id)

    def _description_of(self, row: Artifact | None) -> str:
        return self.describe(part_of(row)) if self.describe is not None and row is not None else ""


def can_really_read(agent: AgentProfile, file: FilePart) -> bool:
    """Return whether the agent's model would accept this file.

    While the file's type is unknown, the model's capability for its kind alone decides.
    """
    if file.mime_type == "application/octet-stream":
        return has_capability_for(agent, file)
    return agent.id in readers_of(snapshot.current(), replace(file, content=_MetadataOnly()))


@dataclass(frozen=True, slots=True)
class _MetadataOnly:
    """Placeholder content: whether a file can be read is decided from its metadata."""

    def blob(self) -> Blob:
        return blob_of(b"")

    def text(self) -> None:
        return None

    def convert(self, _: object) -> None:
        return None


def _complete(attachment: AttachmentInfo, row: Artifact | None) -> AttachmentInfo:
    # The store's metadata fill in what the message omits (MCR-3.2, 3.4).
    if row is None:
        return attachment
    return replace(
        attachment,
        filename=attachment.filename or row.filename or None,
        size=row.size if attachment.size is None else attachment.size,
        mime_type=attachment.mime_type or row.mime_type,
    )


def _load(row: Artifact | None) -> Loaded:
    # The bytes are opened, but not read yet.
    artifact = open_artifact(row) if row is not None else None
    if artifact is None or artifact.unreadable or artifact.content is None:
        raise UnreadableError((artifact.unreadable if artifact else None) or "artifact_missing")
    return Loaded(artifact.content.blob(), artifact.mime_type, artifact.filename)
