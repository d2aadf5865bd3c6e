"""How a request ended: the one decision that rows of the log keep and that every number of requests counts.

What a caller brought about counts against nothing: not as a failure of the installation, nor against a provider.
"""

from __future__ import annotations

from enum import StrEnum

from routing_admin.core.fallback.chain import ABORTED, CANCELLED, OK
from routing_admin.core.fallback.errors import ALL_FAILED
from routing_admin.core.fallback.table import TABLE

NO_ROUTE = "no_route"
BROKEN = "internal_error"
UNAVAILABLE = "unavailable"
DRAINED = "server_draining"
OVERLOADED = "overloaded"
"""Outcomes that no candidate has: no route, an error of our own, a database away, a server that stops or is full."""


class RequestEnding(StrEnum):
    """How a request ended; the value is what the log's column and `status:` of its search say."""

    ANSWERED = "answered"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


FAILURES = frozenset(
    {
        *(word for fault, row in TABLE.items() if not row.is_callers for word in (fault, row.code)),
        *(ALL_FAILED, ABORTED, BROKEN, NO_ROUTE, UNAVAILABLE, DRAINED, OVERLOADED),
    }
)
"""Outcomes of requests that should have had an answer; every other that is none was the caller's own doing."""
ENDINGS = {OK: RequestEnding.ANSWERED, CANCELLED: RequestEnding.CANCELLED} | dict.fromkeys(
    FAILURES, RequestEnding.FAILED
)


def ending_of(outcome: str) -> RequestEnding:
    """Return how a request with that outcome ended."""
    return ENDINGS.get(outcome, RequestEnding.REFUSED)
