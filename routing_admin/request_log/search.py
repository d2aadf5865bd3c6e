"""Search the request log: `status:failed task:planning provider:openai since:1h`, with keyset pagination.

The text is parsed into a `Search`, which lists the text's problems. The `Search` becomes a query that the log's indexes
can answer, so a page is as fast with a million rows as with a hundred.
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
from routing_admin.request_log.search_words import (
    ANY_FILE,
    ENDING_VALUES,
    FILES,
    KEYS,
    LABELS,
    STATUSES,
    Search,
    moment,
    quote,
)
from routing_admin.request_log.sent_files import PATTERNS
from routing_admin.request_log.time_ranges import EVER, DayRange, back_from, on_from, within

PAGE = 50
MAX_COUNTED = 10_000
"""Maximum number of matches to count exactly; if there are more, pages only say so."""
MAX_NEW = 100
"""Maximum number of new rows to count exactly; if there are more, pages only say so."""

MAX_ATTEMPT_DELAY = timedelta(days=1)
"""Maximum time between the start of a request and the start of one of its attempts."""
LAST_CHARACTER = "\U0010ffff"
"""The last character in sort order.

Appended to a prefix, it ends the range of ids with that prefix.
"""


@dataclass(frozen=True, slots=True)
class RequestPage:
    """A page of requests, newest first.

    `newer` and `older` are the cursors of the neighbouring pages, or empty if there are none.
    """

    rows: tuple[RequestLog, ...]
    newer: str = ""
    older: str = ""


def find(
    search: Search, before: str = "", after: str = "", now: datetime | None = None, size: int = PAGE
) -> RequestPage:
    """Return the page before or after a cursor, or the newest page if there is no valid cursor."""
    now = now or timezone.now()
    rows_in = _rows_by_range(search, now)
    cursor = read_cursor(after)
    if cursor is not None:
        # Read the rows in ascending order from the cursor on, and then reverse them.
        rows = _take(
            size, (_later(rows_in(day_range), cursor).order_by("started_at", "pk") for day_range in on_from(cursor[0]))
        )
        return _page(list(reversed(rows[:size])), has_newer=len(rows) > size, has_older=True)
    cursor = read_cursor(before)
    newest = min(filter(None, (now, cursor and cursor[0], moment(search.get("until"), now))))
    found = _take(
        size, (_earlier(rows_in(day_range), cursor).order_by("-started_at", "-pk") for day_range in back_from(newest))
    )
    return _page(found[:size], has_newer=cursor is not None, has_older=len(found) > size)


def _take(size: int, parts: Iterable[QuerySet[RequestLog]]) -> list[RequestLog]:
    # Read one row more than the page shows, which reveals whether another page follows.
    found: list[RequestLog] = []
    for rows in parts:
        found += rows[: size + 1 - len(found)]
        if len(found) > size:
            break
    return found


def _earlier(rows: QuerySet[RequestLog], cursor: tuple[datetime, str] | None) -> QuerySet[RequestLog]:
    if cursor is None:
        return rows
    return rows.filter(started_at__lte=cursor[0]).exclude(started_at=cursor[0], pk__gte=cursor[1])


def _later(rows: QuerySet[RequestLog], cursor: tuple[datetime, str]) -> QuerySet[RequestLog]:
    return rows.filter(Q(started_at__gt=cursor[0]) | Q(started_at=cursor[0], pk__gt=cursor[1]))


def count_newer(search: Search, after: str, now: datetime | None = None) -> int:
    """Return the number of matching rows newer than a cursor, at most `MAX_NEW`, or 0 for an invalid cursor."""
    cursor = read_cursor(after)
    if cursor is None:
        return 0
    rows_in = _rows_by_range(search, now or timezone.now())
    rows = _later(rows_in(DayRange(cursor[0])), cursor).order_by("started_at", "pk")
    return len(rows.values_list("pk", flat=True)[:MAX_NEW])


def _page(rows: list[RequestLog], *, has_newer: bool, has_older: bool) -> RequestPage:
    if not rows:
        return RequestPage(())
    return RequestPage(
        tuple(rows), write_cursor(rows[0]) if has_newer else "", write_cursor(rows[-1]) if has_older else ""
    )


def filter_rows(search: Search, now: datetime) -> QuerySet[RequestLog]:
    """Return an unordered query for the rows that a search matches, without bodies."""
    return _rows_by_range(search, now)(EVER)


def _rows_by_range(search: Search, now: datetime) -> Callable[[DayRange], QuerySet[RequestLog]]:
    # Do not read columns that a list of requests does not show.
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    equal = {"task": "task_type", "agent": "agent", **LABELS}
    rows = rows.filter(**{column: search.get(key) for key, column in equal.items() if search.get(key)})
    for key, lookup in (("since", "started_at__gte"), ("until", "started_at__lt")):
        limit = moment(search.get(key), now) if search.get(key) else None
        rows = rows.filter(**{lookup: limit}) if limit else rows
    rows = _filter_key(rows, search.get("key"))
    rows = _filter_surface(_filter_id(rows, search.text), search.get("surface"))
    rows = _filter_files(_filter_status(rows, search.get("status")), search.get("files"))
    chain = _chain_condition(search.get("provider"), search.get("model"))
    return lambda day_range: within(rows, day_range, "started_at").filter(chain(day_range))


def find_last_use(search: Search) -> datetime | None:
    """Return when the agent, route or provider in a search was last used, or None if the log has no such request.

    No index sorts a model's attempts by time, so a model that was ever used counts as used now. This takes one query.
    """
    provider, model = search.get("provider"), search.get("model")
    if model:
        is_used = AttemptLog.objects.filter(provider=provider, model=model).exists()
        return timezone.now() if is_used else None
    if provider:
        return AttemptLog.objects.filter(provider=provider).order_by("-at").values_list("at", flat=True).first()
    rows = filter_rows(search, timezone.now()).order_by("-started_at")
    return rows.values_list("started_at", flat=True).first()


def unanswered_condition() -> RawSQL:
    """Return the condition for requests that were not answered."""
    # Write the condition as literal SQL, because PostgreSQL and SQLite use the partial index `request_failed` only for
    # the same text.
    return RawSQL("NOT (outcome = 'ok')", (), output_field=BooleanField())


def failed_condition() -> Q:
    """Return the condition for requests with `RequestEnding.FAILED`, which uses the index `request_failed`."""
    return Q(unanswered_condition(), ending=RequestEnding.FAILED)


def fell_back_condition() -> RawSQL:
    """Return the condition for requests that a later candidate answered, which uses the index `request_fell_back`."""
    return RawSQL("fell_back", (), output_field=BooleanField())


def _filter_id(rows: QuerySet[RequestLog], beginning: str) -> QuerySet[RequestLog]:
    if not beginning:
        return rows
    # Try to collect the ids first. If there are too many of them, a scan from the newest row soon finds a page of
    # matches.
    ids = list_few(RequestLog.objects.filter(pk__gte=beginning, pk__lt=beginning + LAST_CHARACTER), "pk")
    if ids is not None:
        return rows.filter(pk__in=ids)
    return rows.annotate(beginning=Left("pk", len(beginning))).filter(beginning=beginning)


def _filter_key(rows: QuerySet[RequestLog], key: str) -> QuerySet[RequestLog]:
    if not key:
        return rows
    public = key.removeprefix("ra_")[:8]
    row = AgentKey.objects.select_related("agent").filter(public_id=public).first()
    if row is not None:
        # A key can act for its own agent, and for the agents that its agent owns.
        made = Agent.objects.filter(owner=row.agent).values_list("agent_id", flat=True)
        names = [row.agent.agent_id, *made]
        rows = rows.filter(agent__in=names) if made else rows.filter(agent=names[0])
    return rows.filter(key=public)


def _filter_surface(rows: QuerySet[RequestLog], surface: str) -> QuerySet[RequestLog]:
    if not surface:
        return rows
    # Nearly all requests have the same surface, so collect the requests of any other surface first.
    ids = list_few(RequestLog.objects.filter(surface=surface), "pk")
    return rows.filter(surface=surface) if ids is None else rows.filter(pk__in=ids)


def _filter_status(rows: QuerySet[RequestLog], status: str) -> QuerySet[RequestLog]:
    if status == "fallback":
        return rows.filter(fell_back_condition())
    if status.isdecimal():
        rows = rows.filter(status=int(status))
        # Answered requests have status 200, so any other status occurs only among unanswered requests.
        return rows if int(status) == HTTPStatus.OK else rows.filter(unanswered_condition())
    if status in (OK, RequestEnding.ANSWERED):
        return rows.filter(outcome=OK)
    if status:
        rows = rows.filter(unanswered_condition())
    if status in ENDING_VALUES:
        return rows.filter(ending=status)
    return rows.filter(outcome=status) if status not in ("", "error") else rows


def _filter_files(rows: QuerySet[RequestLog], form: str) -> QuerySet[RequestLog]:
    if not form:
        return rows
    # Write the condition as literal SQL, so that the partial index `request_files` is used, which also contains the
    # adaptations that the patterns match.
    rows = rows.filter(RawSQL("NOT (adaptation = '')", (), output_field=BooleanField()))
    return rows if form == ANY_FILE else rows.filter(adaptation__regex=PATTERNS[form])


def _chain_condition(provider: str, model: str) -> Callable[[DayRange], Q]:
    named = {name: value for name, value in (("provider", provider), ("model", model)) if value}
    if not named:
        return lambda _: Q()
    attempts = AttemptLog.objects.filter(**named).order_by()
    ids = list_few(attempts, "request_id")
    if ids is not None:
        return lambda _: Q(pk__in=ids)
    # A request's row names the candidate that answered, so read the attempts only if there may have been others.
    has_others = Q(fell_back_condition()) | Q(unanswered_condition()) | Q(provider="")
    own = attempts.filter(request=OuterRef("pk"))
    # With this bound, PostgreSQL reads the partitions of two days instead of all days.
    if connections[LOGS].vendor == POSTGRESQL:
        own = own.filter(at__gte=OuterRef("started_at"), at__lt=OuterRef("started_at") + MAX_ATTEMPT_DELAY)
    return lambda day_range: Q(**named) | has_others & Q(Exists(within(own, day_range, "at", MAX_ATTEMPT_DELAY)))


def write_cursor(row: RequestLog) -> str:
    return write_position(row.started_at, row.pk)


def write_position(moment: datetime, key: str) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()} {key}".encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[datetime, str] | None:
    """Return the time and the id that a cursor contains, or None if the cursor is invalid."""
    try:
        moment, _sep, last = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
        started_at = datetime.fromisoformat(moment)
    except (ValueError, binascii.Error):
        return None
    return (started_at, last) if started_at.tzinfo and last and "\0" not in last else None


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A logged request and its attempts, in the order in which they were made."""

    row: RequestLog
    attempts: tuple[AttemptLog, ...]


def find_earlier_request(row: RequestLog) -> RequestLog | None:
    """Return the newest earlier request of the same agent that `row` continues, or None, with up to two queries."""
    continues = (row.prefix or {}).get("continues")
    if continues is None:
        return None
    rows = RequestLog.objects.defer("body").filter(conversation=continues, agent=row.agent)
    earlier = rows.filter(started_at__lt=row.started_at).prefetch_related("attempts")
    return earlier.order_by("-started_at").first()


def find_logged_requests(keys: Iterable[str]) -> dict[str, RequestLog]:
    return RequestLog.objects.defer("body").in_bulk(list(keys))


def find_logged_request(key: str, *, body: bool = False) -> LoggedRequest | None:
    """Return the request with this id, including its recorded body if `body` is set, with two queries.

    Only administrators may read bodies. Without `body`, the field is None, and the column is not read later either.
    """
    rows = RequestLog.objects.all() if body else RequestLog.objects.defer("body")
    row = rows.filter(pk=key).first()
    if row is None:
        return None
    if not body:
        row.body = None  # A template that uses the deferred column would otherwise fetch it.
    return LoggedRequest(row, tuple(row.attempts.order_by("position")))


def list_request_files(rows: Sequence[RequestLog]) -> dict[str, list[dict[str, Any]]]:
    """Map request ids to the request's files as sent to the last candidate that received files.

    `rows` must be sorted newest first. This takes one query, or none if no request had a file.
    """
    adapted = [row for row in rows if row.adaptation]
    if not adapted:
        return {}
    attempts = AttemptLog.objects.filter(request__in=[row.pk for row in adapted])
    attempts = attempts.filter(at__gte=adapted[-1].started_at, at__lt=adapted[0].started_at + MAX_ATTEMPT_DELAY)
    found = attempts.order_by("position").values_list("request_id", "deliveries")
    return {request: deliveries for request, deliveries in found if deliveries}


# Suggestions for the search box: keys, and the values of a key.

MAX_SUGGESTIONS = 20
"""Maximum number of suggestions."""

FIXED_VALUES: Mapping[str, Sequence[str]] = {
    "status": (*STATUSES, "429", "500", "502", "504", "all_providers_failed", "client_cancelled"),
    "surface": ("v1", *OPERATION_NAMES, "api", "page", DESCRIBE),
    "files": FILES,
    "since": ("15m", "1h", "1d", "7d"),
    "until": ("15m", "1h", "1d", "7d"),
}
"""Values of search keys that are the same in every installation."""


def suggest(typed: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """Return up to `MAX_SUGGESTIONS` completions of the text's last word.

    `values` maps each search key to the values that occur in this installation.
    """
    head, _space, word = typed.rpartition(" ")
    before = f"{head} " if head else ""
    return [before + completion for completion in _completions(word, {**FIXED_VALUES, **values})][:MAX_SUGGESTIONS]


def _completions(word: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    key, colon, typed_value = word.partition(":")
    if not colon:
        yield from (f"{known_key}:" for known_key in KEYS if known_key.startswith(word))
        if not word:
            yield from ("status:failed", "status:fallback", "since:1h")
        return
    yield from (f"{key}:{quote(value)}" for value in match_names(typed_value.strip('"'), values.get(key, ())))


def match_names(part: str, names: Sequence[str]) -> list[str]:
    """Return the names that contain `part`, ignoring case; names that start with it are first."""
    needle = part.casefold()
    found = [name for name in names if needle in name.casefold()]
    return sorted(found, key=lambda name: not name.casefold().startswith(needle))


# If a search contains a rare term, the rows with this term are collected first, and the other terms filter these rows.

MAX_RARE_ROWS = 2000
"""Maximum number of rows of one provider, model, surface or id prefix to collect first."""


def list_few(rows: QuerySet[Any], column: str) -> set[str] | None:
    """Return one column of the rows that an index finds, or None if there are more than `MAX_RARE_ROWS` rows."""
    connection, found = connections[LOGS], rows.order_by().values_list(column)
    if connection.vendor != POSTGRESQL:
        ids = {name for (name,) in found[: MAX_RARE_ROWS + 1]}
        return ids if len(ids) <= MAX_RARE_ROWS else None
    try:
        sql, values = found.query.sql_with_params()
    except EmptyResultSet:
        return set()
    # MATERIALIZED prevents a plan that is optimized for returning the first rows and would read whole tables.
    with connection.cursor() as cursor:
        cursor.execute(f"WITH few AS MATERIALIZED ({sql}) SELECT * FROM few LIMIT {MAX_RARE_ROWS + 1}", values)  # noqa: S608
        ids = {name for (name,) in cursor.fetchall()}
        return ids if cursor.rowcount <= MAX_RARE_ROWS else None
