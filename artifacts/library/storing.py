"""Store, delete and restore artifacts.

Bytes are stored before the database row is written, so there is never a row without bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from django.db.models import Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from artifacts import extract
from artifacts.core.artifact import artifact_id
from artifacts.core.detection.evidence import Detection, Evidence
from artifacts.core.detection.image_size import image_size
from artifacts.core.detection.kinds import PLAIN_TEXT, filename_mime, is_text_mime
from artifacts.core.detection.signatures import HEAD
from artifacts.core.errors import StorageFullError
from artifacts.core.filenames import clean_filename
from artifacts.core.store import Stored
from artifacts.library.queries import select_artifacts
from artifacts.models import Artifact
from artifacts.ports import ports
from artifacts.sniffer import detector
from artifacts.storage.content import byte_store
from artifacts.storage.uploads import ReceivedFile
from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.storable import find_unstorable, format_path, is_name
from capabilities.core.vocabulary import Kind
from capabilities.errors import InvalidError

MEASURES = ("width", "height", "pages", "seconds")
"""Columns for properties measured from the bytes: size in pixels, number of pages, and duration in seconds. They are
null if unknown."""

MAX_INTEGER = 2**31 - 1
"""Maximum value that the columns for measured properties can store. A file's header may declare a larger value."""


def measure(sha256: str, mime_type: str, kind: Kind) -> dict[str, Any]:
    """Return the values of all `MEASURES` columns.

    The number of pages and the duration are determined in the extraction process. Raise `MissingError` or
    `CorruptError` if the bytes cannot be read.
    """
    store, values = byte_store(), dict[str, Any].fromkeys(MEASURES)
    if kind is Kind.IMAGE:
        with store.reader(sha256) as read_at:
            size = image_size(read_at(0, HEAD), mime_type, read_at)
        return {**values, "width": min(size[0], MAX_INTEGER), "height": min(size[1], MAX_INTEGER)} if size else values
    if mime_type == "application/pdf" or kind in (Kind.AUDIO, Kind.VIDEO):
        with store.local_file(sha256) as path:
            facts = extract.facts(path, mime_type)
        return {**values, "pages": facts.pages, "seconds": facts.seconds}
    return values


MAX_METADATA = 16 * 1024
MAX_LIFETIME = 10 * 366 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class ArtifactMetadata:
    """The uploader's information about a file.

    `owner` is the id of an agent, and `uploaded_by` the name of a user. `expires_in` is in seconds, or None for the
    installation's default. `encoding` is the declared text encoding. `artifact_id` is an id that the agent was given
    earlier, or empty for a new id.
    """

    owner: str = ""
    uploaded_by: str = ""
    filename: str = ""
    declared: str = ""
    type: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    visibility: str = Artifact.Visibility.SHARED
    expires_in: float | None = None
    encoding: str | None = None
    artifact_id: str = ""


class MetadataFields(TypedDict, total=False):
    """The fields of `ArtifactMetadata` as keyword arguments."""

    owner: str
    uploaded_by: str
    filename: str
    declared: str
    type: str
    metadata: Mapping[str, Any]
    visibility: str
    expires_in: float | None
    encoding: str | None
    artifact_id: str


def store_upload(actor: Actor, uploaded: ReceivedFile, **fields: Unpack[MetadataFields]) -> Artifact:
    """Store a file received with a request. If `fields` contains no name or type, those of the file are used."""
    metadata = ArtifactMetadata(**fields)
    check_metadata(metadata)
    # Check the quota before `keep`, so that a rejected upload leaves no bytes in the store.
    check_quota(uploaded.size or 0, uploaded.upload.sha256, metadata.owner)
    completed = replace(
        metadata,
        filename=metadata.filename or uploaded.name or "",
        declared=metadata.declared or uploaded.content_type or "",
        encoding=metadata.encoding or uploaded.charset,
    )
    return _write(actor, uploaded.keep(), completed)


def store_blocks(
    actor: Actor,
    blocks: Iterable[bytes],
    *,
    once: bool = False,
    max_bytes: int | None = None,
    **fields: Unpack[MetadataFields],
) -> Artifact:
    """Store a stream of bytes. Raise `TooLargeError` if it exceeds `max_bytes`.

    With `once`, identical bytes of the same owner reuse the existing artifact, because requests repeat the same media
    in every turn of a conversation.
    """
    metadata = ArtifactMetadata(**fields)
    check_metadata(metadata)
    stored = byte_store().put(blocks, max_bytes)
    if once:
        existing = Artifact.objects.owned_by(metadata.owner).filter(sha256=stored.sha256).first()
        if existing is not None:
            return existing
    check_quota(stored.size, stored.sha256, metadata.owner)
    return _write(actor, stored, metadata)


def store_bytes(actor: Actor, data: bytes, *, once: bool = False, **fields: Unpack[MetadataFields]) -> Artifact:
    return store_blocks(actor, (data,), once=once, **fields)


def store_attachment(actor: Actor, mail: Artifact, number: int, owner: str, max_bytes: int) -> Artifact | None:
    """Store an e-mail attachment as an artifact and return it. Identical bytes are stored only once.

    `number` is the attachment's number in the extracted text. Return None if there is no such attachment or it is
    larger than `max_bytes`.
    """
    with byte_store().local_file(mail.sha256) as path:
        found = extract.read_attachment(path, mail.mime_type, number, max_bytes)
    if found is None:
        return None
    return store_bytes(
        actor,
        found.data,
        once=True,
        owner=owner,
        filename=found.filename,
        declared=found.mime_type,
        metadata={"attachmentOf": mail.ref},
        visibility=mail.visibility,
    )


def store_text(actor: Actor, text: str, **fields: Unpack[MetadataFields]) -> Artifact:
    """Store text unchanged. Its type is always text, whatever it looks like (ABR-5.2, ABR-P1).

    Raise `StorageFullError`, or `InvalidError` for text that cannot be encoded or invalid metadata.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        message = _("The text contains half a surrogate pair, which cannot be encoded.")
        raise InvalidError([Problem("text", message, "type")]) from None
    metadata = ArtifactMetadata(**fields)
    check_metadata(metadata)
    check_quota(len(data), hashlib.sha256(data).hexdigest(), metadata.owner)
    stored = byte_store().put((data,))
    return _write(actor, stored, metadata, is_text=True)


def delete_artifacts(actor: Actor, ids: Iterable[str]) -> list[str]:
    """Delete artifacts and return their ids. This can be undone until `prune` removes their bytes."""
    return _set_deleted_at(actor, "artifact.delete", Artifact.objects.living().filter(pk__in=list(ids)), timezone.now())


def delete_matching(actor: Actor, q: str, kind: str) -> list[str]:
    """Delete the living artifacts that match a search. As with `delete_artifacts`, this can be undone."""
    return _set_deleted_at(actor, "artifact.delete", select_artifacts(q, kind), timezone.now())


def restore_artifacts(actor: Actor, ids: Iterable[str]) -> list[str]:
    """Restore deleted artifacts. Return the ids of those whose database rows still exist."""
    return _set_deleted_at(
        actor, "artifact.restore", Artifact.objects.filter(pk__in=list(ids), deleted_at__isnull=False), None
    )


def check_metadata(metadata: ArtifactMetadata) -> None:
    """Raise an `InvalidError` that names every invalid field."""
    problems = []
    if metadata.visibility not in Artifact.Visibility.values:
        problems.append(Problem("visibility", _("visibility must be shared or private."), "enum"))
    if metadata.expires_in is not None and not 0 < metadata.expires_in <= MAX_LIFETIME:
        problems.append(Problem("expiresInSeconds", _("expiresInSeconds must be a number greater than 0."), "range"))
    if len(metadata.type) > 100 or not is_name(metadata.type):
        problems.append(Problem("type", _("type can have at most 100 characters, on one line."), "range"))
    problems += find_unstorable(metadata.metadata, lambda path: format_path(("metadata", *path)))
    if not _fits(metadata.metadata):
        message = _("metadata must be a JSON object of at most %(limit)s bytes.")
        problems.append(Problem("metadata", message % {"limit": MAX_METADATA}, "range"))
    if problems:
        raise InvalidError(problems)


def _fits(metadata: Mapping[str, Any]) -> bool:
    try:
        return len(json.dumps(metadata)) <= MAX_METADATA
    except (ValueError, TypeError, RecursionError):
        return False


def check_quota(size: int, sha256: str, owner: str) -> None:
    """Raise `StorageFullError` if the bytes would exceed the agent's or the installation's quota.

    Bytes that are already stored need no additional space.
    """
    retention = ports.retention()
    _check_agent_quota(size, sha256, owner, retention.agent_quota_bytes)
    quota = retention.quota_bytes
    if quota is not None and Artifact.objects.filter(sha256=sha256).exists():
        return
    if quota is not None and (used := count_used_bytes()) + size > quota:
        raise StorageFullError(quota, used)


def _check_agent_quota(size: int, sha256: str, owner: str, quota: int | None) -> None:
    if quota is None or not owner or Artifact.objects.filter(owner=owner, sha256=sha256).exists():
        return
    if (used := count_used_bytes(owner)) + size > quota:
        raise StorageFullError(quota, used, owner)


def count_used_bytes(owner: str = "") -> int:
    """Return the total size in bytes of all artifacts, or of those of one agent.

    Identical bytes are counted once. Deleted artifacts are counted until they are pruned.
    """
    rows = Artifact.objects.filter(owner=owner) if owner else Artifact.objects.all()
    distinct = rows.order_by().values("sha256", "size").distinct()
    return int(distinct.aggregate(total=Sum("size"))["total"] or 0)


def _set_deleted_at(actor: Actor, action: str, rows: Any, moment: Any) -> list[str]:
    ids = list(rows.values_list("pk", flat=True))
    if not ids:
        return []
    event = AuditedAction(action, "artifact", ids[0] if len(ids) == 1 else "", {"ids": ids[:100], "count": len(ids)})
    with ports.audit(actor, event):
        Artifact.objects.filter(pk__in=ids).update(deleted_at=moment)
    return ids


def _write(actor: Actor, stored: Stored, metadata: ArtifactMetadata, *, is_text: bool = False) -> Artifact:
    filename = clean_filename(metadata.filename)
    detection, measures = _detect(stored, filename, metadata)
    detection = _as_text(detection, filename) if is_text else detection
    row = Artifact(
        filename=filename,
        sha256=stored.sha256,
        size=stored.size,
        kind=detection.kind.value,
        mime_type=detection.mime_type[:150],
        declared_mime_type=metadata.declared.replace("\0", "")[:255],
        detected_mime_type=(detection.detected_mime_type or "")[:150],
        is_binary=detection.is_binary,
        encoding=detection.encoding or "",
        encoding_certain=detection.encoding_certain,
        evidence=detection.evidence_json(),
        mismatch=detection.mismatch,
        type=metadata.type,
        metadata=dict(metadata.metadata),
        owner=metadata.owner,
        uploaded_by=metadata.uploaded_by[:150],
        visibility=metadata.visibility,
        expires_at=_end(metadata.expires_in),
        **({} if is_text else measures),
        **({"id": metadata.artifact_id} if metadata.artifact_id else {}),
    )
    event = AuditedAction(
        "artifact.store", "artifact", row.pk, {"size": stored.size, "kind": row.kind, "filename": filename}
    )
    with ports.audit(actor, event):
        row.save(force_insert=True)
    return row


def _end(expires_in: float | None) -> Any:
    if expires_in is not None:
        return timezone.now() + timedelta(seconds=expires_in)
    days = ports.retention().days
    return timezone.now() + timedelta(days=days) if days is not None else None


def _detect(stored: Stored, filename: str, metadata: ArtifactMetadata) -> tuple[Detection, dict[str, Any]]:
    with byte_store().reader(stored.sha256) as read_at:
        head = read_at(0, HEAD)
        detection = detector().detect(
            head, stored.size, metadata.declared, filename, read_at=read_at, encoding=metadata.encoding
        )
    return detection, measure(stored.sha256, detection.mime_type, detection.kind)


def _as_text(detection: Detection, filename: str) -> Detection:
    # A byte order mark is part of the stored text, and decoding with `utf-8-sig` would remove it.
    type_by_name = filename_mime(filename)
    mime_type = next(
        (candidate for candidate in (detection.mime_type, type_by_name) if candidate and is_text_mime(candidate)),
        PLAIN_TEXT,
    )
    evidence = (*detection.evidence, Evidence("verdict", mime_type, "kept"))
    return replace(
        detection,
        mime_type=mime_type,
        kind=Kind.TEXT,
        is_binary=False,
        encoding="utf-8",
        encoding_certain=True,
        mismatch=False,
        evidence=evidence,
    )


# The code below queries an agent's own files for `/v1/files`.


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """A page of an agent's own living artifacts, and whether there are more."""

    rows: tuple[Artifact, ...]
    has_more: bool


def list_own_files(agent: str, *, limit: int, after: Artifact | None, purpose: str, newest_first: bool) -> OwnFiles:
    """Return the agent's own files that follow `after`, in the requested order.

    An empty purpose matches any purpose.
    """
    rows = Artifact.objects.owned_by(agent)
    if purpose:
        rows = rows.filter(metadata__purpose=purpose)
    if after is not None:
        rows = (
            rows.filter(created_at__lt=after.created_at)
            if newest_first
            else rows.filter(created_at__gt=after.created_at)
        )
    files = list(rows.order_by(*(("-created_at", "-id") if newest_first else ("created_at", "id")))[: limit + 1])
    return OwnFiles(tuple(files[:limit]), len(files) > limit)


def find_own_file(agent: str, ref: str, *, purpose: str = "") -> Artifact | None:
    """Return the living artifact if this agent stored it, otherwise None. An empty purpose matches any purpose."""
    file_id = artifact_id(ref)
    rows = Artifact.objects.owned_by(agent)
    return (rows.filter(metadata__purpose=purpose) if purpose else rows).filter(pk=file_id).first() if file_id else None
