"""The port of the ledger, which all processes draw their shares from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import Window, size_of_grant


@dataclass(frozen=True, slots=True)
class Order:
    """What a process says and asks of one limit of a holder, named as `limit_holders` says.

    `granted` is what it holds, `committed` what is used or reserved, beyond that even; `reported` is what it said last
    time that was. So much of what it holds comes back as `give` says; `want` is wanted, and `least` of it would help.
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
    """What the ledger has then: what the process holds, what all drew, the size of this grant.

    `in_demand` says that another process asked in vain a moment ago.
    """

    granted: int
    drawn: int
    grant: int = 0
    in_demand: bool = False


def book(drawn: int, held: int | None, order: Order) -> Booking:
    """An order carried out where all drew so much and the process holds so much, None where its lease is over.

    Then it has lost what it had not said to be committed, and of calls under way everything: what they are found to
    use now is booked anew, as is all that is committed beyond what is held, whatever is left.
    """
    if held is None:
        held = min(order.reported, order.granted) if order.window.ends_at is not None else 0
    else:
        give = max(0, min(order.give, held - order.committed))
        held, drawn = held - give, drawn - give
    debt = max(0, order.committed - held)
    held, drawn = held + debt, drawn + debt
    grant = size_of_grant(order.limit, drawn, order.want, order.least) if order.want else 0
    return Booking(held + grant, drawn + grant, grant)


class Ledger(Protocol):
    """Who drew how much. A process that says nothing for as long as its lease loses what it did not commit."""

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> Sequence[Booking]:
        """Books every order, all or none. Raises where the ledger does not answer."""

    def leave(self, process: str) -> None:
        """Takes back what the process holds and had not said to be committed; it ends. Raises the same."""
