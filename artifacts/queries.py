"""Questions about artifacts: their JSON, one agent's list in pages, messages that refer to them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from artifacts.core.artifact import artifact_id
from artifacts.models import Artifact
from artifacts.storage.content import RowStore, stored
from capabilities.core.message import Blob, FilePart, UnreadableError, blob_of
from capabilities.core.problems import Problem
from capabilities.core.services.adapter import AttachmentInfo, ContentAdapter
from capabilities.core.services.agents import AgentProfile, has_the_word
from capabilities.core.services.capability_router import AgentMessage, CapabilityRouter, Loaded, RoutingResult
from capabilities.core.vocabulary import Kind
from capabilities.errors import InvalidError
from capabilities.ports import ports

PAGE = 50
MAX_PAGE = 200
OFFERED = 30
"""How many of the newest artifacts can be attached from a page."""


def artifact_json(row: Artifact) -> dict[str, Any]:
    """What is known of an artifact, as the API shows it; `encoding` for text only, measures where known."""
    measured = {name: getattr(row, name) for name in ("width", "height", "pages", "seconds")}
    return {
        "id": row.id,
        "ref": row.ref,
        "filename": row.filename,
        "mimeType": row.mime_type,
        "declaredMimeType": row.declared_mime_type or None,
        "detectedMimeType": row.detected_mime_type or None,
        "size": row.size,
        "sha256": row.sha256,
        "kind": row.kind,
        "isBinary": row.is_binary,
        **({} if row.is_binary else {"encoding": row.encoding or None}),
        "createdAt": row.created_at.isoformat(),
        "expiresAt": row.expires_at.isoformat() if row.expires_at else None,
        "type": row.type or None,
        "metadata": row.metadata,
        "visibility": row.visibility,
        "owner": row.owner or None,
        "mismatch": row.mismatch,
        "evidence": row.evidence,
        **{name: value for name, value in measured.items() if value is not None},
    }


@dataclass(frozen=True, slots=True)
class ArtifactPage:
    """Artifacts, newest first, and the cursor of the next page; None on the last."""

    rows: tuple[Artifact, ...]
    next_cursor: str | None


def page_of(
    rows: QuerySet[Artifact], *, cursor: str = "", limit: int = PAGE, q: str = "", kind: str = ""
) -> ArtifactPage:
    """A page of these rows; `q` looks in filename, id and type. Raises `InvalidError` for what makes no sense."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidError([Problem("limit", f"limit is a whole number from 1 to {MAX_PAGE}.", "range")])
    if kind and kind not in list(Kind):
        raise InvalidError([Problem("kind", f"kind is one of: {', '.join(Kind)}.", "enum")])
    if kind:
        rows = rows.filter(kind=kind)
    q = q.replace("\0", "")
    if q:
        rows = rows.filter(Q(filename__icontains=q) | Q(type__icontains=q) | Q(pk=q.removeprefix("artifact:")))
    if cursor:
        moment, last = _opened(cursor)
        rows = rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=last))
    found = list(rows.order_by("-created_at", "-pk")[: limit + 1])
    return ArtifactPage(tuple(found[:limit]), _cursor(found[limit - 1]) if len(found) > limit else None)


def attachable(chosen: Collection[str]) -> list[Artifact]:
    """What a page offers for a message: the newest artifacts, and the chosen ones, gone or not: the message says so."""
    newest = list(Artifact.objects.living()[:OFFERED])
    return newest + list(Artifact.objects.filter(pk__in=set(chosen) - {row.pk for row in newest}))


def _cursor(row: Artifact) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.pk}".encode()).decode()


def _opened(cursor: str) -> tuple[datetime, str]:
    try:
        moment, last = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        known = datetime.fromisoformat(moment)
        if known.tzinfo is None:
            raise ValueError("a moment without its zone")
    except (ValueError, binascii.Error):
        raise InvalidError([Problem("cursor", "This cursor is none of ours. Start without one.", "range")]) from None
    return known, last


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages between agents, for one agent: what it may read is loaded, and known facts are filled in."""

    agent: str
    language: str | None = None

    def route(self, message: AgentMessage, service_id: str) -> RoutingResult:
        """The message as that service can take it (MCR-2)."""
        store = RowStore(self.agent)
        rows = {each.artifact_ref: store.row(each.artifact_ref) for each in message.attachments}
        told = tuple(_told(each, rows[each.artifact_ref]) for each in message.attachments)
        registry = ports.installed.registry()
        adapter = ContentAdapter(
            registry,
            ports.installed.agents(),
            self.language or ports.routes.default_language(),
            can_read=can_really_read,
            agent_id=self.agent,
        )
        router = CapabilityRouter(registry, adapter, lambda attachment: _load(rows[attachment.artifact_ref]))
        return router.route_content(AgentMessage(message.text, told), service_id)


def can_really_read(agent: AgentProfile, file: FilePart) -> bool:
    """Whether that agent's model would take this file; by its capability alone while the file's type is unknown."""
    if file.mime_type == "application/octet-stream":
        return has_the_word(agent, file)
    return agent.id in ports.installed.agents_for(replace(file, content=_Somewhere()))


@dataclass(frozen=True, slots=True)
class _Somewhere:
    """Content that is there and not looked at: who can read a file is decided from what is known of it."""

    def blob(self) -> Blob:
        return blob_of(b"")

    def text(self) -> None:
        return None

    def converted(self, _: object) -> None:
        return None


def _told(attachment: AttachmentInfo, row: Artifact | None) -> AttachmentInfo:
    """The attachment with what the store knows where the message says nothing (MCR-3.2, 3.4)."""
    if row is None:
        return attachment
    return replace(
        attachment,
        filename=attachment.filename or row.filename or None,
        size=row.size if attachment.size is None else attachment.size,
        mime_type=attachment.mime_type or row.mime_type,
    )


def _load(row: Artifact | None) -> Loaded:
    """An attachment's bytes, not read yet. Raises `UnreadableError`."""
    artifact = stored(row) if row is not None else None
    if artifact is None or artifact.unreadable or artifact.content is None:
        raise UnreadableError((artifact.unreadable if artifact else None) or "artifact_missing")
    return Loaded(artifact.content.blob(), artifact.mime_type, artifact.filename)


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """An agent's own living artifacts, a page of them, and whether there are more behind it."""

    rows: tuple[Artifact, ...]
    has_more: bool


def list_own_files(agent: str, *, most: int, after: Artifact | None, purpose: str, newest_first: bool) -> OwnFiles:
    """What that agent stored itself, behind `after` in the order asked for; an empty purpose is any."""
    rows = Artifact.objects.owned_by(agent)
    if purpose:
        rows = rows.filter(metadata__purpose=purpose)
    if after is not None:
        rows = (
            rows.filter(created_at__lt=after.created_at)
            if newest_first
            else rows.filter(created_at__gt=after.created_at)
        )
    found = list(rows.order_by(*(("-created_at", "-id") if newest_first else ("created_at", "id")))[: most + 1])
    return OwnFiles(tuple(found[:most]), len(found) > most)


def find_own_file(agent: str, ref: str, *, purpose: str = "") -> Artifact | None:
    """The artifact behind a reference, when that agent stored it itself and it lives; an empty purpose is any."""
    bare = artifact_id(ref)
    rows = Artifact.objects.owned_by(agent)
    return (rows.filter(metadata__purpose=purpose) if purpose else rows).filter(pk=bare).first() if bare else None
