"""The library of artifacts: its list in pages, what it holds in all, one artifact, what was deleted."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, Q, Sum
from django.db.models.functions import Lower

from artifacts.models import Artifact
from capabilities.core.problems import Problem
from capabilities.core.vocabulary import Kind
from capabilities.errors import InvalidError

PAGE = 50
MAX_PAGE = 200
LAST_CHARACTER = "\U0010ffff"
"""Stands behind every text with the same beginning, so that a range of an index finds them."""
SHORTEST_ID, FEW = 4, 6
"""Characters that are taken for the beginning of an id, and how many artifacts Find is given."""
OFFERED = 30
"""How many of the newest artifacts can be attached from a page."""


@dataclass(frozen=True, slots=True)
class ArtifactPage:
    """Artifacts, newest first, and the cursor of the next page; None on the last."""

    rows: tuple[Artifact, ...]
    next_cursor: str | None


def list_artifacts(
    *, owner: str | None = None, cursor: str = "", limit: int = PAGE, q: str = "", kind: str = ""
) -> ArtifactPage:
    """A page of the living artifacts, of all or of those that the agent `owner` stored; one query.

    `q` looks in filename, id and type. Raises `InvalidError` for a limit, kind or cursor that makes no sense.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidError([Problem("limit", f"limit must be a whole number from 1 to {MAX_PAGE}.", "range")])
    if kind and kind not in list(Kind):
        raise InvalidError([Problem("kind", f"kind must be one of: {', '.join(Kind)}.", "enum")])
    rows = Artifact.objects.living() if owner is None else Artifact.objects.owned_by(owner)
    if kind:
        rows = rows.filter(kind=kind)
    q = q.replace("\0", "")
    if q:
        rows = rows.filter(Q(filename__icontains=q) | Q(type__icontains=q) | Q(pk=q.removeprefix("artifact:")))
    if cursor:
        moment, last = _open_cursor(cursor)
        rows = rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=last))
    found = list(rows.order_by("-created_at", "-pk")[: limit + 1])
    return ArtifactPage(tuple(found[:limit]), _write_cursor(found[limit - 1]) if len(found) > limit else None)


@dataclass(frozen=True, slots=True)
class LibrarySize:
    """How many living artifacts there are, and their bytes."""

    count: int
    bytes: int


def count_artifacts() -> LibrarySize:
    """What the library holds in all; one query."""
    sums = Artifact.objects.living().order_by().aggregate(count=Count("pk"), bytes=Sum("size"))
    return LibrarySize(sums["count"], sums["bytes"] or 0)


def find_artifact(ref: str) -> Artifact | None:
    """The living artifact with that id or reference; None for one that is not there, deleted or expired."""
    return Artifact.objects.living().filter(pk=ref.removeprefix("artifact:")).first()


def find_artifacts(ids: Collection[str]) -> dict[str, Artifact]:
    """The living artifacts of these ids; one query, and none without an id."""
    return Artifact.objects.living().in_bulk(ids) if ids else {}


def find_artifacts_beginning(beginning: str) -> list[Artifact]:
    """The few living artifacts whose name, in any case, or id begins so; two queries, each a range of an index."""
    few = Artifact.objects.living().defer("evidence", "metadata", "correction")
    name = _lower(beginning)
    named = few.annotate(name=Lower("filename")).filter(name__gte=name, name__lt=name + LAST_CHARACTER)
    bare = beginning.removeprefix("artifact:").lower()
    found = list(named.order_by("name")[:FEW])
    if len(bare) >= SHORTEST_ID and bare.isalnum():
        found += few.filter(pk__gte=bare, pk__lt=bare + LAST_CHARACTER).order_by("pk")[:FEW]
    return found


def _lower(text: str) -> str:
    """As the database writes names small: SQLite knows only the letters of ASCII."""
    if connection.vendor != "sqlite":
        return text.lower()
    return "".join(each.lower() if each.isascii() else each for each in text)


def has_copy(sha256: str, filename: str, owner: str) -> bool:
    """Whether a living artifact has these bytes, this name and this owner."""
    return Artifact.objects.living().filter(sha256=sha256, filename=filename, owner=owner).exists()


def find_deletion(pk: str) -> datetime | None:
    """When an artifact was deleted, which is the same for all that one act deleted; None where it was not."""
    return Artifact.objects.filter(pk=pk).values_list("deleted_at", flat=True).first()


def list_deleted_at(moment: datetime) -> list[str]:
    """The ids of the artifacts that were deleted at that moment."""
    return list(Artifact.objects.filter(deleted_at=moment).values_list("pk", flat=True))


def list_attachable(ids: Collection[str]) -> list[Artifact]:
    """What a page offers for a message: the newest artifacts, and the chosen ones, gone or not: the message says so."""
    newest = list(Artifact.objects.living()[:OFFERED])
    return newest + list(Artifact.objects.filter(pk__in=set(ids) - {row.pk for row in newest}))


def _write_cursor(row: Artifact) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.pk}".encode()).decode()


def _open_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        moment, last = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        known = datetime.fromisoformat(moment)
        if known.tzinfo is None:
            raise ValueError("a moment without its zone")
    except (ValueError, binascii.Error):
        raise InvalidError([Problem("cursor", "This cursor is not valid. Start without one.", "range")]) from None
    return known, last
