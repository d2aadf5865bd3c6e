"""How requests end: the classification that the request log stores and all statistics use.

Failures caused by the caller are not counted as failures of the installation or of a provider.
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
"""Outcomes of requests that reached no candidate: no route, internal error, no database, shutdown, overload."""


class RequestEnding(StrEnum):
    """How a request ended; the request log stores the value, and its search accepts it after `status:`."""

    ANSWERED = "answered"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


FAILURES = frozenset(
    {
        *(code for fault, row in TABLE.items() if not row.is_callers for code in (fault, row.code)),
        *(ALL_FAILED, ABORTED, BROKEN, NO_ROUTE, UNAVAILABLE, DRAINED, OVERLOADED),
    }
)
"""Outcomes that count as failures of the installation or of a provider. All other failures are due to the caller."""
ENDINGS = {OK: RequestEnding.ANSWERED, CANCELLED: RequestEnding.CANCELLED} | dict.fromkeys(
    FAILURES, RequestEnding.FAILED
)


def request_ending(outcome: str) -> RequestEnding:
    return ENDINGS.get(outcome, RequestEnding.REFUSED)
