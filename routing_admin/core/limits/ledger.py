"""Port of the shared ledger from which every process draws its shares of limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import Window, size_of_grant


@dataclass(frozen=True, slots=True)
class Order:
    """One process's report and request for one limit of a holder (named as in `limit_holders`).

    `granted` is what the process holds. `committed` is what it used or reserved, possibly more than that. `reported` is
    the commitment of its previous order. `give` is returned to the ledger, `want` is requested, and `least` is the
    smallest grant that would help.
    """

    holder: str
    meter: Meter
    window: Window
    limit: int
    granted: int = 0
    committed: int = 0
    reported: int = 0
    give: int = 0
    want: int = 0
    least: int = 0


@dataclass(frozen=True, slots=True)
class Booking:
    """The ledger's state after an order: held by the process, drawn by all, and the size of this grant.

    `in_demand` is True if another process's order was refused a moment ago.
    """

    granted: int
    drawn: int
    grant: int = 0
    in_demand: bool = False


def book(drawn: int, held: int | None, order: Order) -> Booking:
    """Apply an order to a ledger where all processes drew `drawn` and this process holds `held`.

    `held` is None once the lease has expired.
    """
    if held is None:
        # An expired lease forfeits what was not reported as committed. For concurrency, whose window never ends, it
        # forfeits everything. What calls are found to use is booked again below as debt.
        held = min(order.reported, order.granted) if order.window.ends_at is not None else 0
    else:
        give = max(0, min(order.give, held - order.committed))
        held, drawn = held - give, drawn - give
    # Debt is booked whatever is left of the limit, because it has already been used.
    debt = max(0, order.committed - held)
    held, drawn = held + debt, drawn + debt
    grant = size_of_grant(order.limit, drawn, order.want, order.least) if order.want else 0
    return Booking(held + grant, drawn + grant, grant)


class Ledger(Protocol):
    """Shared account of every draw; a process silent for a whole lease forfeits what it did not commit."""

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> Sequence[Booking]:
        """Book all orders, or none. Raise an error if the ledger does not respond."""

    def leave(self, process: str) -> None:
        """Release what a stopping process holds and has not committed. Raise an error if the ledger is silent."""
