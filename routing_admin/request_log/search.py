"""The search box of the request log: `status:failed task:planning provider:openai since:1h`, and pages by keyset.

What is typed becomes a value with its problems; the value becomes one query that the log's indexes answer, so that the
page is as quick at a million rows as at a hundred.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left
from django.utils import timezone

from capabilities.models import Agent, AgentKey
from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.operations import DESCRIBE, OPERATION_NAMES
from routing_admin.request_log.search_words import COUNTED_KEYS, ENDED, KEYS, LABELS, STATUSES, Search, moment, quote
from routing_admin.request_log.time_ranges import EVER, DayRange, back_from, on_from, within

PAGE = 50
MAX_COUNTED = 10_000
"""So many matches are counted; of more only that is said."""
MAX_NEW = 100
"""So many new rows are counted; of more only that is said."""

LONGEST = timedelta(days=1)
"""No attempt begins that much later than its request."""
LAST_CHARACTER = "\U0010ffff"
"""Stands behind every id with the same beginning, so that a range of the primary key finds them."""


@dataclass(frozen=True, slots=True)
class RequestPage:
    """A page of requests, newest first, and the cursors of its neighbours; empty where there is none."""

    rows: tuple[RequestLog, ...]
    newer: str = ""
    older: str = ""


def find(
    search: Search, before: str = "", after: str = "", now: datetime | None = None, size: int = PAGE
) -> RequestPage:
    """The page that ends before, or begins after, a cursor; without one, or with one that is none, the newest."""
    now = now or timezone.now()
    rows_of = _rows_by_stretch(search, now)
    place = read_cursor(after)
    if place is not None:
        back = _take(size, (_later(rows_of(each), place).order_by("started_at", "pk") for each in on_from(place[0])))
        return _page(list(reversed(back[:size])), has_newer=len(back) > size, has_older=True)
    place = read_cursor(before)
    newest = min(filter(None, (now, place and place[0], moment(search.get("until"), now))))
    found = _take(size, (_earlier(rows_of(each), place).order_by("-started_at", "-pk") for each in back_from(newest)))
    return _page(found[:size], has_newer=place is not None, has_older=len(found) > size)


def _take(size: int, parts: Iterable[QuerySet[RequestLog]]) -> list[RequestLog]:
    """The rows of a page and one more, of so many of the parts as have them."""
    found: list[RequestLog] = []
    for rows in parts:
        found += rows[: size + 1 - len(found)]
        if len(found) > size:
            break
    return found


def _earlier(rows: QuerySet[RequestLog], place: tuple[datetime, str] | None) -> QuerySet[RequestLog]:
    if place is None:
        return rows
    return rows.filter(started_at__lte=place[0]).exclude(started_at=place[0], pk__gte=place[1])


def _later(rows: QuerySet[RequestLog], place: tuple[datetime, str]) -> QuerySet[RequestLog]:
    return rows.filter(Q(started_at__gt=place[0]) | Q(started_at=place[0], pk__gt=place[1]))


def count_newer(search: Search, after: str, now: datetime | None = None) -> int:
    """How many rows that match came behind a cursor, at most `MAX_NEW`; 0 for a cursor that is none."""
    place = read_cursor(after)
    if place is None:
        return 0
    rows_of = _rows_by_stretch(search, now or timezone.now())
    rows = _later(rows_of(DayRange(place[0])), place).order_by("started_at", "pk")
    return len(rows.values_list("pk", flat=True)[:MAX_NEW])


def count_matches(search: Search, now: datetime) -> int | None:
    """Return how many rows match, at most `MAX_COUNTED` + 1; None where no index alone could say it."""
    keys = {key for key, _ in search.values}
    if search.text or not keys or keys - COUNTED_KEYS:
        return None
    return filter_rows(search, now).order_by().values("pk")[: MAX_COUNTED + 1].count()


def _page(rows: list[RequestLog], *, has_newer: bool, has_older: bool) -> RequestPage:
    if not rows:
        return RequestPage(())
    return RequestPage(
        tuple(rows), write_cursor(rows[0]) if has_newer else "", write_cursor(rows[-1]) if has_older else ""
    )


def filter_rows(search: Search, now: datetime) -> QuerySet[RequestLog]:
    """The rows a search asks for, in no order, without their bodies."""
    return _rows_by_stretch(search, now)(EVER)


def _rows_by_stretch(search: Search, now: datetime) -> Callable[[DayRange], QuerySet[RequestLog]]:
    """The rows a search asks for of each stretch of the log; what is rare is collected once."""
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    equal = {"task": "task_type", "agent": "agent", **LABELS}
    rows = rows.filter(**{column: search.get(key) for key, column in equal.items() if search.get(key)})
    for key, lookup in (("since", "started_at__gte"), ("until", "started_at__lt")):
        limit = moment(search.get(key), now) if search.get(key) else None
        rows = rows.filter(**{lookup: limit}) if limit else rows
    rows = _filter_key(rows, search.get("key"))
    rows = _filter_surface(_filter_id(rows, search.text), search.get("surface"))
    rows = _filter_status(rows, search.get("status"))
    chain = _chain_condition(search.get("provider"), search.get("model"))
    return lambda stretch: within(rows, stretch, "started_at").filter(chain(stretch))


def unanswered_condition() -> RawSQL:
    """Requests that got no answer; written out, because the partial index `request_failed` is found by its text."""
    return RawSQL("NOT (outcome = 'ok')", (), output_field=BooleanField())


def failed_condition() -> Q:
    """Requests that should have had an answer (`RequestEnding.FAILED`), found through `request_failed`."""
    return Q(unanswered_condition(), ending=RequestEnding.FAILED)


def fell_back_condition() -> RawSQL:
    """Requests that another than the first candidate answered; found through `request_fell_back`."""
    return RawSQL("fell_back", (), output_field=BooleanField())


def _filter_id(rows: QuerySet[RequestLog], beginning: str) -> QuerySet[RequestLog]:
    """Requests whose id begins so: few are collected first, of many the newest are soon met on the way."""
    if not beginning:
        return rows
    few = list_few(RequestLog.objects.filter(pk__gte=beginning, pk__lt=beginning + LAST_CHARACTER), "pk")
    if few is not None:
        return rows.filter(pk__in=few)
    return rows.annotate(beginning=Left("pk", len(beginning))).filter(beginning=beginning)


def _filter_key(rows: QuerySet[RequestLog], key: str) -> QuerySet[RequestLog]:
    """Requests made with an agent's key, by its first part `ra_xxxxxxxx`: among those of whom it could act as."""
    if not key:
        return rows
    public = key.removeprefix("ra_")[:8]
    row = AgentKey.objects.select_related("agent").filter(public_id=public).first()
    if row is not None:
        made = Agent.objects.filter(owner=row.agent).values_list("agent_id", flat=True)
        names = [row.agent.agent_id, *made]
        rows = rows.filter(agent__in=names) if made else rows.filter(agent=names[0])
    return rows.filter(key=public)


def _filter_surface(rows: QuerySet[RequestLog], surface: str) -> QuerySet[RequestLog]:
    """Requests of that door: nearly all come through one, and hardly any through another."""
    if not surface:
        return rows
    few = list_few(RequestLog.objects.filter(surface=surface), "pk")
    return rows.filter(surface=surface) if few is None else rows.filter(pk__in=few)


def _filter_status(rows: QuerySet[RequestLog], status: str) -> QuerySet[RequestLog]:
    """What succeeded has 200, so that every other number and code is looked for among what failed."""
    if status == "fallback":
        return rows.filter(fell_back_condition())
    if status.isdecimal():
        rows = rows.filter(status=int(status))
        return rows if int(status) == HTTPStatus.OK else rows.filter(unanswered_condition())
    if status in (OK, RequestEnding.ANSWERED):
        return rows.filter(outcome=OK)
    if status:
        rows = rows.filter(unanswered_condition())
    if status in ENDED:
        return rows.filter(ending=status)
    return rows.filter(outcome=status) if status not in ("", "error") else rows


def _chain_condition(provider: str, model: str) -> Callable[[DayRange], Q]:
    """Of requests in whose chain that provider or model was reached, whether it answered or not.

    The attempts are looked at where there was more than the one that the row itself names.
    """
    named = {name: value for name, value in (("provider", provider), ("model", model)) if value}
    if not named:
        return lambda _: Q()
    attempts = AttemptLog.objects.filter(**named).order_by()
    few = list_few(attempts, "request_id")
    if few is not None:
        return lambda _: Q(pk__in=few)
    has_others = Q(fell_back_condition()) | Q(unanswered_condition()) | Q(provider="")
    own = attempts.filter(request=OuterRef("pk"))
    if connections[LOGS].vendor == POSTGRESQL:  # which then looks into the tables of two days instead of all
        own = own.filter(at__gte=OuterRef("started_at"), at__lt=OuterRef("started_at") + LONGEST)
    return lambda stretch: Q(**named) | has_others & Q(Exists(within(own, stretch, "at", LONGEST)))


def write_cursor(row: RequestLog) -> str:
    """A row's place in the order of time."""
    return write_place(row.started_at, row.pk)


def write_place(moment: datetime, key: str) -> str:
    """A place in the order of time."""
    return base64.urlsafe_b64encode(f"{moment.isoformat()} {key}".encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[datetime, str] | None:
    """The place in a cursor; None when it is none of ours."""
    try:
        moment, _sep, last = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
        started_at = datetime.fromisoformat(moment)
    except (ValueError, binascii.Error):
        return None
    return (started_at, last) if started_at.tzinfo and last and "\0" not in last else None


# What do the pages of requests need to know? One request of the log with its attempts; the list is `search`'s.


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request of the log and its attempts, in the order of the chain."""

    row: RequestLog
    attempts: tuple[AttemptLog, ...]


def find_earlier_request(row: RequestLog) -> RequestLog | None:
    """The newest request of the same agent that this one continues, its attempts at hand; two queries, or none."""
    continues = (row.prefix or {}).get("continues")
    if continues is None:
        return None
    rows = RequestLog.objects.defer("body").filter(conversation=continues, agent=row.agent)
    earlier = rows.filter(started_at__lt=row.started_at).prefetch_related("attempts")
    return earlier.order_by("-started_at").first()


def find_logged_requests(keys: Iterable[str]) -> dict[str, RequestLog]:
    """The requests of those ids that the log has, by id, without bodies. One query."""
    return RequestLog.objects.defer("body").in_bulk(list(keys))


def find_logged_request(key: str, *, body: bool = False) -> LoggedRequest | None:
    """The request of that id; its recorded body only where it is asked for, which is for administrators alone.

    Without it the column is not read, now or later: `body` is None, whoever names it. Two queries.
    """
    rows = RequestLog.objects.all() if body else RequestLog.objects.defer("body")
    row = rows.filter(pk=key).first()
    if row is None:
        return None
    if not body:
        row.body = None  # a column that is only put off would be fetched by the first template that names it
    return LoggedRequest(row, tuple(row.attempts.order_by("position")))


def list_files_of(rows: Sequence[RequestLog]) -> dict[str, list[dict[str, Any]]]:
    """The files of those requests, newest request first, as they went to the last candidate that got any, by id.

    One query, none where no request had a file.
    """
    adapted = [row for row in rows if row.adaptation]
    if not adapted:
        return {}
    attempts = AttemptLog.objects.filter(request__in=[row.pk for row in adapted])
    attempts = attempts.filter(at__gte=adapted[-1].started_at, at__lt=adapted[0].started_at + LONGEST)
    found = attempts.order_by("position").values_list("request_id", "deliveries")
    return {request: deliveries for request, deliveries in found if deliveries}


# What the search box of the log offers while somebody types: keys, and the values that there are for a key.

MOST = 20
"""Suggestions at a time."""

FIXED: Mapping[str, Sequence[str]] = {
    "status": (*STATUSES, "429", "500", "502", "504", "all_providers_failed", "client_cancelled"),
    "surface": ("v1", *OPERATION_NAMES, "api", "page", DESCRIBE),
    "since": ("15m", "1h", "1d", "7d"),
    "until": ("15m", "1h", "1d", "7d"),
}
"""Values that are the same in every installation."""


def suggest(typed: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """The whole text with its last word completed, up to `MOST` times; `values` are this installation's, by key."""
    head, _space, word = typed.rpartition(" ")
    before = f"{head} " if head else ""
    return [before + each for each in _completions(word, {**FIXED, **values})][:MOST]


def _completions(word: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    key, colon, begun = word.partition(":")
    if not colon:
        yield from (f"{each}:" for each in KEYS if each.startswith(word))
        if not word:
            yield from ("status:failed", "status:fallback", "since:1h")
        return
    wanted = begun.strip('"').lower()
    found = [each for each in values.get(key, ()) if wanted in each.lower()]
    yield from (f"{key}:{quote(each)}" for each in sorted(found, key=lambda each: not each.lower().startswith(wanted)))


# How are the few rows collected that one rare word of a search stands for?

RARE = 2000
"""Rows of one provider, model, surface or beginning of an id up to which they are collected first, not looked for."""


def list_few(rows: QuerySet[Any], column: str) -> set[str] | None:
    """That column of the rows, found along their own index; None where there are more than `RARE`."""
    connection, found = connections[LOGS], rows.order_by().values_list(column)
    if connection.vendor != POSTGRESQL:
        few = {name for (name,) in found[: RARE + 1]}
        return few if len(few) <= RARE else None
    try:
        sql, values = found.query.sql_with_params()
    except EmptyResultSet:
        return set()
    with connection.cursor() as cursor:  # planned as if all were wanted: else it reads whole tables for the first few
        cursor.execute(f"WITH few AS MATERIALIZED ({sql}) SELECT * FROM few LIMIT {RARE + 1}", values)  # noqa: S608
        few = {name for (name,) in cursor.fetchall()}
        return few if cursor.rowcount <= RARE else None
