"""What do the pages of the history need to know? Revisions with their neighbours, and the audit log."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from io import StringIO
from itertools import chain
from typing import Any

from django.db import connections
from django.db.models import QuerySet
from django.utils import timezone

from capabilities.core.permissions import PAGE_OF_KIND
from routing_admin.configuration.audit import entry_of
from routing_admin.console.base.keyset import KeysetPage, Place, read_page
from routing_admin.core.configuration.diff import right_of
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.json_lines import safe_cell
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.core.planning.effect import EffectSample, RevisionEffect, effect_between, routes_of_changes
from routing_admin.models import AuditEvent, RequestLog, Revision
from routing_admin.platform.databases.router import LOGS


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


@dataclass(frozen=True, slots=True, kw_only=True)
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


# What did a revision bring about? The requests of the routes it touches, for as long after it as before it.
#
# A window is 24 hours at most, and ends where another revision touches the same routes, so that nothing is put down
# to a revision that another one did. On each side the nearest requests are looked at, by an index for each route.

ANSWERED, FAILED = RequestEnding.ANSWERED.value, RequestEnding.FAILED.value
LONGEST = timedelta(hours=24)
MOST = 2000
"""Requests of a side that are looked at, shared among the routes."""
MAX_ROUTES = 40
MAX_LATER = 200
"""So many later revisions are searched for the one that ends the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectWindow:
    """The routes, how long before and after the revision is looked at, and the revision that ends it, if one does.

    `is_sampled` says that there were more requests than are looked at.
    """

    routes: tuple[str, ...]
    length: timedelta
    ends_with: int | None
    effect: RevisionEffect
    is_sampled: bool


def find_effect(row: Revision, before: Configuration, after: Configuration, now: datetime) -> EffectWindow | None:
    """What a revision between these configurations brought about; None where it touches no route. Two queries.

    What a process ran after it under the revision before, of which it had not heard, counts on neither side.
    """
    routes = routes_of_changes(row.changes, before, after)
    if not routes:
        return None
    number, stop = _find_end(row, routes, after, now)
    length = stop - row.created_at
    names = sorted(routes)[:MAX_ROUTES]
    most = MOST // len(names)
    rows = _read_rows(names, row.created_at, length, most)
    then = [each for each in rows if each[0] % 2 == 0]
    later = [each for each in rows if each[0] % 2 and (each[-1] is None or each[-1] >= row.number)]
    effect = effect_between(_samples(then), _samples(later))
    is_sampled = most in Counter(part for part, *_ in rows).values()
    return EffectWindow(routes=tuple(names), length=length, ends_with=number, effect=effect, is_sampled=is_sampled)


def _find_end(
    row: Revision, routes: frozenset[str], after: Configuration, now: datetime
) -> tuple[int | None, datetime]:
    """The next revision that touches one of the routes, and when; without one the end of the window."""
    stop = min(now, row.created_at + LONGEST)
    later = Revision.objects.filter(number__gt=row.number, created_at__lt=stop).order_by("number")
    for number, made_at, changes in later.values_list("number", "created_at", "changes")[:MAX_LATER]:
        if routes & routes_of_changes(changes, after):
            return number, max(made_at, row.created_at)
    return None, max(stop, row.created_at)


PART = (
    "SELECT * FROM (SELECT {number} AS part, ending, fell_back, duration_ms, revision FROM {table}"
    " WHERE task_type = %s AND started_at >= %s AND started_at < %s ORDER BY started_at {order} LIMIT {most})"
    " AS part{number}"
)


def _read_rows(routes: Sequence[str], moment: datetime, length: timedelta, most: int) -> list[Sequence[Any]]:
    """Of each route the requests before (even parts) and after (odd ones) that are nearest to the moment; one query."""
    connection = connections[LOGS]
    adapt = connection.ops.adapt_datetimefield_value
    start, middle, stop = map(adapt, (moment - length, moment, moment + length))
    facts = {"table": connection.ops.quote_name(RequestLog._meta.db_table), "most": most}
    parts, values = [], list[Any]()
    for number, route in enumerate(routes):
        parts.append(PART.format(number=2 * number, order="DESC", **facts))
        parts.append(PART.format(number=2 * number + 1, order="ASC", **facts))
        values += [route, start, middle, route, middle, stop]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), values)
        return list(cursor.fetchall())


def _samples(rows: Iterable[Sequence[Any]]) -> list[EffectSample]:
    """Those that were answered or should have been; what a caller brought about tells nothing of a revision."""
    return [
        EffectSample(ending == FAILED, bool(fell_back), ms)
        for _part, ending, fell_back, ms, _revision in rows
        if ending in (ANSWERED, FAILED)
    ]
