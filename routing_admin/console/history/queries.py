"""Queries for the history: revisions, the audit log, and how a revision affected requests."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import reduce
from io import StringIO
from itertools import chain
from operator import or_
from typing import Any

from django.db import connections
from django.db.models import Q, QuerySet
from django.utils import timezone

from capabilities.core.permissions import PAGE_OF_KIND
from routing_admin.configuration.audit import build_audit_entry
from routing_admin.console.base.keyset import KeysetPage, PageCursor, read_page
from routing_admin.core.configuration.diff import required_right
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.json_lines import safe_cell
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.core.planning.effect import EffectSample, RevisionEffect, changed_routes, effect_between
from routing_admin.models import AuditEvent, RequestLog, Revision
from routing_admin.platform.databases.router import LOGS


def list_revisions(cursor: PageCursor, size: int, q: str = "") -> KeysetPage[Revision]:
    """Return a page of revisions, newest first, without their snapshots.

    `q` must occur in the description, the changes or the author's name.
    """
    rows = Revision.objects.defer("snapshot")
    if q := q.replace("\0", ""):
        # SQLite stores changes as JSON text with escaped characters; PostgreSQL does not.
        texts = {q, json.dumps(q)[1:-1]}
        found = (Q(message__icontains=text) | Q(actor__icontains=text) | Q(changes__icontains=text) for text in texts)
        rows = rows.filter(reduce(or_, found))
    return read_page(rows, "number", cursor, size)


def list_newest_numbers(limit: int) -> list[int]:
    return list(Revision.objects.order_by("-number").values_list("number", flat=True)[:limit])


def find_revision_row(number: int) -> Revision | None:
    """Return a revision without its snapshot, or None for an unknown number. This takes one query."""
    return Revision.objects.defer("snapshot").filter(number=number).first()


def find_revisions(part: str, limit: int) -> Iterable[Revision]:
    """Return the newest revisions whose number begins with `part`, or whose author or description contains it."""
    if part.isdecimal():
        return Revision.objects.defer("snapshot").filter(number__startswith=part).order_by("-number")[:limit]
    return list_revisions(PageCursor(), limit, part).rows


def find_barrier(kinds: Collection[str]) -> int:
    """Return the number of the newest revision that changed entries outside `kinds`, or 0 if there is none.

    A user who may change only these kinds cannot restore an older revision.
    """
    if set(PAGE_OF_KIND) <= set(kinds):
        return 0
    rows = Revision.objects.order_by("-number").values_list("number", "changes").iterator(chunk_size=100)
    return next(
        (number for number, changes in rows if not {_required_right(change) for change in changes} <= set(kinds)), 0
    )


def _required_right(change: Mapping[str, Any]) -> str:
    return required_right(change["kind"], change.get("field") or "")


@dataclass(frozen=True, slots=True)
class PlacedRevision:
    """A revision and the numbers of its neighbours.

    `before` is 0 for the first revision; `after` is None for the newest.
    """

    row: Revision
    before: int
    after: int | None
    newest: int | None


def find_revision(number: int) -> PlacedRevision | None:
    """Return a revision and its neighbours' numbers, or None for an unknown number. This takes four queries."""
    row = Revision.objects.filter(number=number).first()
    if row is None:
        return None
    numbers = Revision.objects.order_by("number").values_list("number", flat=True)
    before, after = numbers.filter(number__lt=number).last(), numbers.filter(number__gt=number).first()
    return PlacedRevision(row, before or 0, after, numbers.last())


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """A filter for audit events: by action code, by part of the actor's or object's name, by revision and by day.

    An empty field matches all events. `until` is inclusive.
    """

    action: str = ""
    actor: str = ""
    object: str = ""
    revision: int | None = None
    since: date | None = None
    until: date | None = None


def list_audit_events(audit_filter: AuditFilter, cursor: PageCursor, size: int) -> KeysetPage[AuditEvent]:
    return read_page(select_audit_events(audit_filter), "number", cursor, size)


def count_entries(revisions: Iterable[int]) -> Mapping[int, int]:
    """Return the number of changed entries for each of these revisions.

    This takes one query, or none if there are no revisions.
    """
    numbers = set(revisions)
    rows = Revision.objects.filter(number__in=numbers).values_list("number", "changes") if numbers else ()
    return {number: len({(change["kind"], change["name"]) for change in changes}) for number, changes in rows}


def select_audit_events(audit_filter: AuditFilter) -> QuerySet[AuditEvent]:
    rows = AuditEvent.objects.all()
    if audit_filter.action:
        rows = rows.filter(action=audit_filter.action)
    if audit_filter.actor:
        rows = rows.filter(actor__icontains=audit_filter.actor)
    if audit_filter.object:
        text = audit_filter.object  # Search file names too, because the page shows a file by its name.
        rows = rows.filter(Q(object_name__icontains=text) | Q(details__filename__icontains=text))
    if audit_filter.revision is not None:
        rows = rows.filter(revision=audit_filter.revision)
    if audit_filter.since:
        rows = rows.filter(created_at__gte=_beginning(audit_filter.since))
    if audit_filter.until:
        rows = rows.filter(created_at__lt=_beginning(audit_filter.until + timedelta(days=1)))
    return rows


def _beginning(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


class AuditForm(StrEnum):
    CSV = "csv"
    JSON_LINES = "jsonl"


def export_audit(audit_filter: AuditFilter, form: AuditForm) -> Iterator[str]:
    """Yield the audit events that match the filter as lines, oldest first.

    A JSON line contains all fields that the hash chain covers.
    """
    entries = map(build_audit_entry, select_audit_events(audit_filter).order_by("number").iterator(chunk_size=1000))
    values = ({name: getattr(entry, field) for name, field in COLUMNS.items()} for entry in entries)
    if form is AuditForm.JSON_LINES:
        yield from (json.dumps(value, ensure_ascii=False) + "\n" for value in values)
        return
    # The buffer is emptied after each row, so an export of any size needs memory for only one line.
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
"""Maps columns of the export to attributes of an audit event."""


def _cells(value: Mapping[str, Any]) -> list[Any]:
    texts = {**value, "details": json.dumps(value["details"], ensure_ascii=False) if value["details"] else ""}
    return [safe_cell(cell) if isinstance(cell, str) else cell for cell in texts.values()]


# The effect of a revision is measured on requests to the routes that it changes, during equally long windows before and
# after it. A window is at most 24 hours long. It ends where another revision changes the same routes, so that their
# effects are not mixed. In each window, the requests closest to the revision are read, by one index range per route.

ANSWERED, FAILED = RequestEnding.ANSWERED.value, RequestEnding.FAILED.value
MAX_WINDOW = timedelta(hours=24)
MAX_REQUESTS = 2000
"""Maximum number of requests to read per window, divided equally among the routes."""
MAX_ROUTES = 40
MAX_LATER = 200
"""How many later revisions to search for the one that ends the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectWindow:
    """The compared routes, the length of each window, and the revision that ended the later window, or None.

    `not_compared` is the number of changed routes beyond `MAX_ROUTES`. `is_sampled` is true if there were more requests
    than were read.
    """

    routes: tuple[str, ...]
    not_compared: int
    length: timedelta
    ends_with: int | None
    effect: RevisionEffect
    is_sampled: bool


def find_effect(row: Revision, before: Configuration, after: Configuration, now: datetime) -> EffectWindow | None:
    """Compare the requests before and after a revision. Return None if it changes no route. This takes two queries."""
    routes = changed_routes(row.changes, before, after)
    if not routes:
        return None
    number, stop = _find_end(row, routes, after, now)
    length = stop - row.created_at
    names = sorted(routes)[:MAX_ROUTES]
    # Each route gets an equal share of the rows, so that a busy route does not displace the others.
    limit = MAX_REQUESTS // len(names)
    rows = _read_rows(names, row.created_at, length, limit)
    earlier = [entry for entry in rows if entry[0] % 2 == 0]
    # Exclude later requests that still used the old configuration because their process had not yet reloaded.
    later = [entry for entry in rows if entry[0] % 2 and (entry[-1] is None or entry[-1] >= row.number)]
    effect = effect_between(_samples(earlier), _samples(later))
    is_sampled = limit in Counter(part for part, *_ in rows).values()
    return EffectWindow(
        routes=tuple(names),
        not_compared=len(routes) - len(names),
        length=length,
        ends_with=number,
        effect=effect,
        is_sampled=is_sampled,
    )


def _find_end(
    row: Revision, routes: frozenset[str], after: Configuration, now: datetime
) -> tuple[int | None, datetime]:
    stop = min(now, row.created_at + MAX_WINDOW)
    newer = Revision.objects.filter(number__gt=row.number, created_at__lt=stop).order_by("number")
    for number, made_at, changes in newer.values_list("number", "created_at", "changes")[:MAX_LATER]:
        if routes & changed_routes(changes, after):
            # Even if the clocks of several processes differ, the window must not end before the revision.
            return number, max(made_at, row.created_at)
    return None, max(stop, row.created_at)


PART_QUERY = (
    "SELECT * FROM (SELECT {number} AS part, ending, fell_back, duration_ms, revision FROM {table}"
    " WHERE task_type = %s AND started_at >= %s AND started_at < %s ORDER BY started_at {order} LIMIT {most})"
    " AS part{number}"
)


def _read_rows(routes: Sequence[str], moment: datetime, length: timedelta, limit: int) -> list[Sequence[Any]]:
    # Each branch of the UNION needs its own LIMIT to use the index. Django's ORM does not allow this on SQLite, so this
    # is raw SQL.
    connection = connections[LOGS]
    adapt = connection.ops.adapt_datetimefield_value
    start, middle, stop = map(adapt, (moment - length, moment, moment + length))
    facts = {"table": connection.ops.quote_name(RequestLog._meta.db_table), "most": limit}
    parts, values = [], list[Any]()
    # Parts with even numbers are for windows before the revision, and parts with odd numbers for windows after it.
    # `find_effect` relies on this.
    for number, route in enumerate(routes):
        parts.append(PART_QUERY.format(number=2 * number, order="DESC", **facts))
        parts.append(PART_QUERY.format(number=2 * number + 1, order="ASC", **facts))
        values += [route, start, middle, route, middle, stop]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), values)
        return list(cursor.fetchall())


def _samples(rows: Iterable[Sequence[Any]]) -> list[EffectSample]:
    # Cancelled and invalid requests do not depend on the revision, so they are excluded.
    return [
        EffectSample(ending == FAILED, bool(fell_back), ms)
        for _part, ending, fell_back, ms, _revision in rows
        if ending in (ANSWERED, FAILED)
    ]
