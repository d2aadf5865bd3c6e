"""What do the pages of the history need to know? Revisions with their neighbours, and the audit log."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from io import StringIO
from itertools import chain
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from capabilities.core.permissions import PAGE_OF_KIND
from routing_admin.configuration.audit import entry_of
from routing_admin.console.base.keyset import KeysetPage, Place, read_page
from routing_admin.core.configuration.diff import right_of
from routing_admin.core.documents.spreadsheet import safe_cell
from routing_admin.models import AuditEvent, Revision


def list_revisions(place: Place) -> KeysetPage[Revision]:
    """A page of revisions, newest first, without their snapshots."""
    return read_page(Revision.objects.defer("snapshot"), "number", place)


def list_newest_numbers(most: int) -> list[int]:
    """The numbers of the newest revisions, newest first."""
    return list(Revision.objects.order_by("-number").values_list("number", flat=True)[:most])


def find_barrier(kinds: Collection[str]) -> int:
    """The newest revision that changed a thing of another kind than these, behind which nobody goes who may not change
    such things; 0 for none.
    """
    if set(PAGE_OF_KIND) <= set(kinds):
        return 0
    rows = Revision.objects.order_by("-number").values_list("number", "changes").iterator(chunk_size=100)
    return next((number for number, changes in rows if not {_right_of(each) for each in changes} <= set(kinds)), 0)


def _right_of(change: Mapping[str, Any]) -> str:
    return right_of(change["kind"], change.get("field") or "")


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
    """Which acts are asked for: an action's name, parts of the names of who did it and to what, days; empty is any.

    `until` is the last day that counts.
    """

    action: str = ""
    actor: str = ""
    object: str = ""
    since: date | None = None
    until: date | None = None


def list_audit_events(audit_filter: AuditFilter, place: Place) -> KeysetPage[AuditEvent]:
    """A page of the acts asked for, newest first."""
    return read_page(select_audit_events(audit_filter), "number", place)


def select_audit_events(audit_filter: AuditFilter) -> QuerySet[AuditEvent]:
    """The acts asked for."""
    rows = AuditEvent.objects.all()
    if audit_filter.action:
        rows = rows.filter(action=audit_filter.action)
    if audit_filter.actor:
        rows = rows.filter(actor__icontains=audit_filter.actor)
    if audit_filter.object:
        rows = rows.filter(object_name__icontains=audit_filter.object)
    if audit_filter.since:
        rows = rows.filter(created_at__gte=_beginning(audit_filter.since))
    if audit_filter.until:
        rows = rows.filter(created_at__lt=_beginning(audit_filter.until + timedelta(days=1)))
    return rows


def _beginning(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


class AuditForm(StrEnum):
    """In which form the audit log is exported."""

    CSV = "csv"
    JSON_LINES = "jsonl"


def export_audit(audit_filter: AuditFilter, form: AuditForm) -> Iterator[str]:
    """The acts asked for, oldest first, a line each; JSON lines hold all that the chain of hashes is made of."""
    entries = map(entry_of, select_audit_events(audit_filter).order_by("number").iterator(chunk_size=1000))
    values = ({name: getattr(entry, field) for name, field in COLUMNS.items()} for entry in entries)
    if form is AuditForm.JSON_LINES:
        yield from (json.dumps(value, ensure_ascii=False) + "\n" for value in values)
        return
    buffer = StringIO()
    writer = csv.writer(buffer)
    for cells in chain([COLUMNS], map(_cells, values)):
        writer.writerow(cells)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


COLUMNS = {
    "number": "number",
    "at": "at",
    "actorKind": "actor_kind",
    "actor": "actor",
    "address": "address",
    "requestId": "request_id",
    "action": "action",
    "objectKind": "object_kind",
    "objectName": "object_name",
    "details": "details",
    "revision": "revision",
    "previous": "previous",
    "sha256": "sha256",
}
"""What an exported line has, by its name there."""


def _cells(value: Mapping[str, Any]) -> list[Any]:
    """A line as cells of a spreadsheet."""
    texts = {**value, "details": json.dumps(value["details"], ensure_ascii=False) if value["details"] else ""}
    return [safe_cell(each) if isinstance(each, str) else each for each in texts.values()]
