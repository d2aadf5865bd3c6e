"""What do the pages of the history need to know? Revisions with their neighbours, and the audit log."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from capabilities.core.permissions import PAGE_OF_KIND
from routing_admin.models import AuditEvent, Revision
from routing_admin.queries.keyset import KeysetPage, Place, read_page


def list_revisions(place: Place) -> KeysetPage[Revision]:
    """A page of revisions, newest first, without their snapshots."""
    return read_page(Revision.objects.defer("snapshot"), "number", place)


def list_newest_numbers(most: int) -> list[int]:
    """The numbers of the newest revisions, newest first."""
    return list(Revision.objects.order_by("-number").values_list("number", flat=True)[:most])


def find_barrier(kinds: Collection[str]) -> int:
    """The newest revision that changed a thing of another kind than these, behind which nobody goes who may not change
    such things; 0 for none."""
    if set(PAGE_OF_KIND) <= set(kinds):
        return 0
    rows = Revision.objects.order_by("-number").values_list("number", "changes").iterator(chunk_size=100)
    return next((number for number, changes in rows if any(each["kind"] not in kinds for each in changes)), 0)


@dataclass(frozen=True, slots=True)
class PlacedRevision:
    """A revision, the numbers before (0 is the empty configuration) and after it (None: none), and the newest."""

    row: Revision
    before: int
    after: int | None
    newest: int | None


def find_revision(number: int) -> PlacedRevision | None:
    """That revision and where it stands; None for a number that no revision has. Four queries."""
    row = Revision.objects.filter(number=number).first()
    if row is None:
        return None
    numbers = Revision.objects.order_by("number").values_list("number", flat=True)
    before, after = numbers.filter(number__lt=number).last(), numbers.filter(number__gt=number).first()
    return PlacedRevision(row, before or 0, after, numbers.last())


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which acts are asked for: an action's name, parts of the names of who did it and to what; empty is any."""

    action: str = ""
    actor: str = ""
    object: str = ""


def list_audit_events(audit_filter: AuditFilter, place: Place) -> KeysetPage[AuditEvent]:
    """A page of the acts asked for, newest first."""
    rows = AuditEvent.objects.all()
    if audit_filter.action:
        rows = rows.filter(action=audit_filter.action)
    if audit_filter.actor:
        rows = rows.filter(actor__icontains=audit_filter.actor)
    if audit_filter.object:
        rows = rows.filter(object_name__icontains=audit_filter.object)
    return read_page(rows, "number", place)
