"""What did a revision bring about? The requests of the routes it touches, for as long after it as before it.

A window is 24 hours at most, and ends where another revision touches the same routes, so that nothing is put down to a
revision that another one did. On each side the nearest requests are looked at, by an index for each route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.core.planning.effect import EffectSample, RevisionEffect, effect_between, routes_of_changes
from routing_admin.models import RequestLog, Revision
from routing_admin.platform.databases.router import LOGS

ANSWERED, FAILED = RequestEnding.ANSWERED.value, RequestEnding.FAILED.value
LONGEST = timedelta(hours=24)
MOST = 2000
"""Requests of a side that are looked at, shared among the routes."""
MAX_ROUTES = 40
MAX_LATER = 200
"""So many later revisions are searched for the one that ends the window."""


@dataclass(frozen=True, slots=True)
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
    return EffectWindow(tuple(names), length, number, effect, is_sampled)


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
