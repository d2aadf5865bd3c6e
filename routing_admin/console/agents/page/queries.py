"""What does an agent's own page need of the request log? Its calls, the newest first, and one of them.

Calls from before the agent was made are another's, who had its id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from routing_admin.models import RequestLog
from routing_admin.request_log.search import LoggedRequest, find_logged_request, read_cursor, write_cursor

CALLS = 20
"""Calls of a page."""


@dataclass(frozen=True, slots=True)
class CallsPage:
    """Calls, newest first, and where the older ones begin; empty where there are none."""

    rows: tuple[RequestLog, ...]
    older: str = ""


def list_calls(agent: str, since: datetime, before: str = "") -> CallsPage:
    """The agent's calls since then that came before a cursor; the newest where that is none. One query.

    Neither bodies nor what providers said is read.
    """
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    rows = rows.filter(agent=agent, started_at__gte=since)
    place = read_cursor(before)
    if place is not None:
        rows = rows.filter(started_at__lte=place[0]).exclude(started_at=place[0], pk__gte=place[1])
    found = list(rows.order_by("-started_at", "-pk")[: CALLS + 1])
    return CallsPage(tuple(found[:CALLS]), write_cursor(found[CALLS - 1]) if len(found) > CALLS else "")


def find_call(agent: str, since: datetime, key: str, *, body: bool = False) -> LoggedRequest | None:
    """The agent's call of that id with its attempts, its recorded body where that is asked for; None for another's.

    Two queries.
    """
    found = find_logged_request(key, body=body)
    is_own = found is not None and found.row.agent == agent and found.row.started_at >= since
    return found if is_own else None
