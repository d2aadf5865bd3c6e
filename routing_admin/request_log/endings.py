"""How a request ended, and whose doing it was: answered, left by its caller, refused for what it asks, or failed.

What a caller brought about counts against nobody: not as a failure of the installation, nor against a provider.
"""

from __future__ import annotations

from enum import StrEnum

from capabilities.core.wire import Fault
from routing_admin.core.fallback.chain import ABORTED, CANCELLED, OK
from routing_admin.core.fallback.errors import ALL_FAILED
from routing_admin.core.fallback.table import CALLERS_FAULTS, TABLE
from routing_admin.databases.away import UNAVAILABLE
from routing_admin.request_log.recorder import BROKEN
from routing_admin.server.draining import DRAINED
from routing_admin.server.places import OVERLOADED

NO_ROUTE = "no_route"


class RequestEnding(StrEnum):
    """What a row's outcome comes to."""

    ANSWERED = "answered"
    LEFT = "left"
    REFUSED = "refused"
    FAILED = "failed"


FAILURES = frozenset(
    {
        *(fault.value for fault in Fault if fault not in CALLERS_FAULTS),
        *(row.code for fault, row in TABLE.items() if fault not in CALLERS_FAULTS),
        *(ALL_FAILED, ABORTED, BROKEN, NO_ROUTE, UNAVAILABLE, DRAINED, OVERLOADED),
    }
)
"""Outcomes of requests that should have had an answer; every other that is none was the caller's own doing."""


def ending_of(outcome: str) -> RequestEnding:
    """What became of the request in whose row that outcome stands."""
    if outcome == OK:
        return RequestEnding.ANSWERED
    if outcome == CANCELLED:
        return RequestEnding.LEFT
    return RequestEnding.FAILED if outcome in FAILURES else RequestEnding.REFUSED
