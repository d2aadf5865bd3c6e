"""Queries of the artifact library: pages of artifacts, totals, single artifacts, and times of deletion.

An artifact is called living if it is neither deleted nor expired.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Lower

from artifacts.models import Artifact
from capabilities.core.problems import Problem
from capabilities.core.vocabulary import Kind
from capabilities.errors import InvalidError

PAGE = 50
MAX_PAGE = 200
LAST_CHARACTER = "\U0010ffff"
"""The last character in sort order. With it, a prefix search is a search in a single index range."""
MIN_ID_CHARS, MAX_FOUND = 4, 7
"""`MIN_ID_CHARS` is the minimum length of an id prefix to search for. `MAX_FOUND` is the maximum number of results of
each query, one more than the Find page shows of each kind."""
MAX_ATTACHABLE = 30
"""Number of recent artifacts that a page offers as attachments."""


@dataclass(frozen=True, slots=True)
class ArtifactPage:
    """A page of artifacts, newest first, and the cursor for the next page (None on the last page)."""

    rows: tuple[Artifact, ...]
    next_cursor: str | None


def list_artifacts(
    *, owner: str | None = None, cursor: str = "", limit: int = PAGE, q: str = "", kind: str = ""
) -> ArtifactPage:
    """Return a page of living artifacts, of all owners or of one, with a single query.

    `q` searches file name, type and id. Raise `InvalidError` for an invalid limit, kind or cursor.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidError([Problem("limit", f"limit must be a whole number from 1 to {MAX_PAGE}.", "range")])
    if kind and kind not in list(Kind):
        raise InvalidError([Problem("kind", f"kind must be one of: {', '.join(Kind)}.", "enum")])
    rows = select_artifacts(q, kind, owner)
    if cursor:
        moment, last = _open_cursor(cursor)
        rows = rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=last))
    artifacts = list(rows.order_by("-created_at", "-pk")[: limit + 1])
    return ArtifactPage(
        tuple(artifacts[:limit]), _write_cursor(artifacts[limit - 1]) if len(artifacts) > limit else None
    )


def select_artifacts(q: str = "", kind: str = "", owner: str | None = None) -> QuerySet[Artifact]:
    """Return the living artifacts that match the filters, of all owners or of one.

    `q` matches the file name, type or id.
    """
    rows = Artifact.objects.living() if owner is None else Artifact.objects.owned_by(owner)
    if kind:
        rows = rows.filter(kind=kind)
    # PostgreSQL rejects NUL in query parameters.
    q = q.replace("\0", "")
    if q:
        rows = rows.filter(Q(filename__icontains=q) | Q(type__icontains=q) | Q(pk=q.removeprefix("artifact:")))
    return rows


SORTS: Mapping[str, tuple[F | Lower, ...]] = {
    "name": (Lower("filename"),),
    "kind": (F("kind"),),
    "size": (F("size"),),
    "owner": (F("owner"), F("uploaded_by")),
    "time": (F("created_at"),),
}
"""Maps names of sort orders to columns."""


def sort_artifacts(rows: QuerySet[Artifact], sort: str) -> QuerySet[Artifact]:
    """Return the artifacts in one of the `SORTS`, descending if its name begins with a minus sign."""
    fields = SORTS[sort.removeprefix("-")]
    # Sorting by id as well keeps rows with equal values in the same order on every page.
    if sort.startswith("-"):
        return rows.order_by(*(field.desc() for field in fields), "-pk")
    return rows.order_by(*(field.asc() for field in fields), "pk")


@dataclass(frozen=True, slots=True)
class LibrarySize:
    """The number of living artifacts, and their total size in bytes."""

    count: int
    bytes: int


def count_kinds() -> dict[str, LibrarySize]:
    """Return the library's totals by kind, with a single query."""
    rows = Artifact.objects.living().order_by().values_list("kind").annotate(count=Count("pk"), bytes=Sum("size"))
    return {kind: LibrarySize(count, size) for kind, count, size in rows}


def find_artifact(ref: str) -> Artifact | None:
    """Return the living artifact with this id or reference, or None."""
    return Artifact.objects.living().filter(pk=ref.removeprefix("artifact:")).first()


def find_artifacts(ids: Collection[str]) -> dict[str, Artifact]:
    """Return the living artifacts by id, with at most one query."""
    return Artifact.objects.living().in_bulk(ids) if ids else {}


def find_artifacts_beginning(beginning: str) -> list[Artifact]:
    """Return a few living artifacts whose id or name begins with this text, ignoring case in names.

    Two queries are made, each of which reads a single index range.
    """
    artifacts = Artifact.objects.living().defer("evidence", "metadata", "correction")
    name = _lower(beginning)
    by_filename = artifacts.annotate(name=Lower("filename")).filter(name__gte=name, name__lt=name + LAST_CHARACTER)
    artifact_id = beginning.removeprefix("artifact:").lower()
    matches = list(by_filename.order_by("name")[:MAX_FOUND])
    if len(artifact_id) >= MIN_ID_CHARS and artifact_id.isalnum():
        matches += artifacts.filter(pk__gte=artifact_id, pk__lt=artifact_id + LAST_CHARACTER).order_by("pk")[:MAX_FOUND]
    return matches


def _lower(text: str) -> str:
    # Convert to lower case in the same way as the database index on names. SQLite converts only ASCII.
    if connection.vendor != "sqlite":
        return text.lower()
    return "".join(char.lower() if char.isascii() else char for char in text)


def has_copy(sha256: str, filename: str, owner: str) -> bool:
    return Artifact.objects.living().filter(sha256=sha256, filename=filename, owner=owner).exists()


def find_deletion(pk: str) -> datetime | None:
    """Return when an artifact was deleted, or None if it was not.

    Artifacts that were deleted together have the same time.
    """
    return Artifact.objects.filter(pk=pk).values_list("deleted_at", flat=True).first()


def list_deleted_at(moment: datetime) -> list[str]:
    return list(Artifact.objects.filter(deleted_at=moment).values_list("pk", flat=True))


def list_attachable(ids: Collection[str]) -> list[Artifact]:
    """Return the newest artifacts, followed by those that the user has already chosen (`ids`).

    The chosen ones may have been deleted. The page shows an error for these.
    """
    newest = list(Artifact.objects.living()[:MAX_ATTACHABLE])
    return newest + list(Artifact.objects.filter(pk__in=set(ids) - {row.pk for row in newest}))


def _write_cursor(row: Artifact) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.pk}".encode()).decode()


def _open_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        moment, last = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        created_at = datetime.fromisoformat(moment)
        if created_at.tzinfo is None:
            raise ValueError("a moment without its zone")
    except (ValueError, binascii.Error):
        raise InvalidError([Problem("cursor", "This cursor is not valid. Start without one.", "range")]) from None
    return created_at, last
