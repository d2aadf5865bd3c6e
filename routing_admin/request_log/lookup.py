"""What do the pages of requests need to know? One request of the log with its attempts; the list is `search`'s."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.search import LONGEST


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
