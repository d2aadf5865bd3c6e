"""Find an agent's own calls for its page.

Calls from before the agent was created belong to a deleted agent that had the same id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from routing_admin.models import RequestLog
from routing_admin.request_log.search import LoggedRequest, find_logged_request, read_cursor, write_cursor

CALLS = 20
"""Calls per page."""


@dataclass(frozen=True, slots=True)
class CallsPage:
    """Calls, newest first. `older` is the cursor of the next page, empty on the last page."""

    rows: tuple[RequestLog, ...]
    older: str = ""


def list_calls(agent: str, since: datetime, before: str = "") -> CallsPage:
    """Return the agent's calls since `since` that are older than the cursor, or the newest without it. One query."""
    # The list shows neither bodies nor providers' messages, so they are not read.
    rows = RequestLog.objects.defer("body", "error", "sentence", "token_details", "answer", "prefix")
    rows = rows.filter(agent=agent, started_at__gte=since)
    position = read_cursor(before)
    # The rows are ordered by (started_at, pk), so calls with the same start time are paged by their ids.
    if position is not None:
        rows = rows.filter(started_at__lte=position[0]).exclude(started_at=position[0], pk__gte=position[1])
    found = list(rows.order_by("-started_at", "-pk")[: CALLS + 1])
    return CallsPage(tuple(found[:CALLS]), write_cursor(found[CALLS - 1]) if len(found) > CALLS else "")


def find_call(agent: str, since: datetime, key: str, *, body: bool = False) -> LoggedRequest | None:
    """Return the agent's call with its attempts, or None if the call is not this agent's. Two queries."""
    call = find_logged_request(key, body=body)
    is_own = call is not None and call.row.agent == agent and call.row.started_at >= since
    return call if is_own else None
