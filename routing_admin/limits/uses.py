"""How much of each limit has been used, in all processes.

Usage in other processes may be missing for a few seconds, until they report it to the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import PERIODS, window_at
from routing_admin.limits.reservations import keeper
from routing_admin.limits.rows import list_used
from routing_admin.platform.databases.unavailable import is_unavailable


def find_uses(holders: Iterable[str]) -> Mapping[tuple[str, Meter], int]:
    """Return how much each holder has used or reserved in the current windows, by meter. Database errors propagate."""
    try:
        keeper().report()
    except (DatabaseError, InterfaceError) as error:
        if not is_unavailable(error):
            raise
    return list_used(holders, datetime.now(UTC))


def window_end(meter: Meter) -> datetime | None:
    """Return when a meter's current window ends, or None for the limit on concurrent calls."""
    return window_at(PERIODS[meter], datetime.now(UTC), timezone.get_default_timezone()).ends_at
