"""A process's share of a limit: the amounts drawn from the ledger, reserved for calls, and used.

Calls reserve before they start and settle afterwards, so the shares together never exceed the limit. Two amounts become
debt, which the ledger books regardless of how much of the limit is left: usage beyond a reservation, and extensions of
a share while the ledger did not respond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Protocol

from capabilities.core.services.agent_limits import Meter


class Period(StrEnum):
    """Period over which usage is summed; `NOW` counts a call while it is running."""

    NOW = "now"
    MINUTE = "minute"
    DAY = "day"
    MONTH = "month"


PERIODS: Mapping[Meter, Period] = {
    Meter.REQUESTS_PER_MINUTE: Period.MINUTE,
    Meter.IN_FLIGHT: Period.NOW,
    Meter.BYTES_PER_DAY: Period.DAY,
    Meter.TOKENS_PER_DAY: Period.DAY,
    Meter.TOKENS_PER_MONTH: Period.MONTH,
    Meter.MONEY_PER_DAY: Period.DAY,
    Meter.MONEY_PER_MONTH: Period.MONTH,
}


@dataclass(frozen=True, slots=True)
class Window:
    """One minute, day or month with a unique name; the window of `Period.NOW` never ends."""

    name: str
    ends_at: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        return self.ends_at is not None and now >= self.ends_at


MOMENT = Window("now")


def window_at(period: Period, now: datetime, zone: tzinfo) -> Window:
    """Return the window that contains `now`; days and months follow `zone`, minutes UTC."""
    if period is Period.NOW:
        return MOMENT
    if period is Period.MINUTE:
        # Windows are clock minutes, so a caller may use up two of them within sixty seconds. A token bucket or weighted
        # windows would admit nearly as much.
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        return Window(f"{minute:%Y-%m-%dT%H:%MZ}", minute + timedelta(minutes=1))
    today = now.astimezone(zone).date()
    if period is Period.DAY:
        return Window(f"{today:%Y-%m-%d}", _midnight(today + timedelta(days=1), zone))
    # The first day of a month plus 32 days is always in the next month.
    return Window(f"{today:%Y-%m}", _midnight((today.replace(day=1) + timedelta(days=32)).replace(day=1), zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    # `datetime.combine` yields midnight in the zone even on days when its clocks change.
    return datetime.combine(day, time(), zone).astimezone(UTC)


GRANT_DIVISOR = 16
"""A process draws 1/16 of what is left, or what its calls need if that is more. This leaves enough for other processes,
and near the limit each process draws only what its calls need.
"""


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one process in a window; `drawn` is the total of all processes as last reported by the ledger.

    `last` is the size of the last draw, `extension` the amount added without the ledger.
    """

    limit: int
    window: Window
    granted: int = 0
    used: int = 0
    reserved: int = 0
    drawn: int = 0
    last: int = 0
    extension: int = 0

    @property
    def committed(self) -> int:
        """The amount that has been used or that running calls may still use."""
        return self.used + self.reserved

    @property
    def free(self) -> int:
        # The result is negative once calls used more than they had reserved.
        return self.granted + self.extension - self.committed

    @property
    def debt(self) -> int:
        return max(0, self.committed - self.granted)

    @property
    def remaining(self) -> int:
        """Amount of the limit that is left as far as this process knows; other processes' draws count as used."""
        return max(0, self.limit - max(self.drawn, self.granted) + min(self.granted, self.free))

    def reserve(self, amount: int) -> Share | None:
        """Return the share with `amount` reserved, or None if less than that is free."""
        return replace(self, reserved=self.reserved + amount) if amount <= self.free else None

    def settle(self, reserved: int, used: int) -> Share:
        return replace(self, reserved=self.reserved - reserved, used=self.used + max(used, 0))

    def book(self, granted: int, drawn: int, last: int) -> Share:
        return replace(self, granted=granted, drawn=drawn, last=last or self.last, extension=0)

    def extend(self) -> Share | None:
        """Return the share extended without the ledger.

        It grows by the amount of a regular draw, and at least by the size of the last one. Return None if the share was
        already extended since the ledger last responded, or if nothing was ever drawn.
        """
        left = self.limit - max(self.drawn, self.granted)
        extension = min(left, max(self.last, left // GRANT_DIVISOR))
        return replace(self, extension=extension) if self.last and extension > 0 and not self.extension else None

    def move_to(self, window: Window) -> Share:
        return Share(self.limit, window, last=self.last)


def grant_size(limit: int, drawn: int, want: int, least: int) -> int:
    """Return how much to grant: `want` or more, or else all that is left, but 0 if less than `least` is left."""
    left = limit - drawn
    # While much is left, grant more than requested, so that the next calls need no exchange with the ledger.
    return 0 if left < max(least, 1) else min(left, max(want, left // GRANT_DIVISOR))


@dataclass(frozen=True, slots=True)
class Order:
    """One process's report on, and request for, one limit of a holder (named as in `limit_holders`).

    `granted` is what the process holds. `committed` is what it used or reserved, which may exceed that. `reported` is
    the commitment in its previous order. `give` is returned to the ledger, `want` is requested, and `least` is the
    smallest useful grant.
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
    """The ledger's state after an order: the amount held by the process, drawn by all processes, and granted now.

    `in_demand` says that another process's order was refused a moment ago.
    """

    granted: int
    drawn: int
    grant: int = 0
    in_demand: bool = False


def book(drawn: int, held: int | None, order: Order) -> Booking:
    """Apply an order to a ledger from which all processes drew `drawn`, and of which this process holds `held`.

    `held` is None once the lease has expired.
    """
    if held is None:
        # When its lease expires, a process loses everything that it has not reported as committed, and its whole share
        # of the limit on concurrent calls, whose window never ends. Usage that is reported later is booked below as
        # debt.
        held = min(order.reported, order.granted) if order.window.ends_at is not None else 0
    else:
        give = max(0, min(order.give, held - order.committed))
        held, drawn = held - give, drawn - give
    # Book debt regardless of how much of the limit is left, because the amount has already been used.
    debt = max(0, order.committed - held)
    held, drawn = held + debt, drawn + debt
    grant = grant_size(order.limit, drawn, order.want, order.least) if order.want else 0
    return Booking(held + grant, drawn + grant, grant)


class Ledger(Protocol):
    """Account of all draws, shared by the processes.

    A process that sends nothing for a whole lease loses what it has not used.
    """

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> Sequence[Booking]:
        """Book all orders, or none. Raise an error if the ledger does not respond."""

    def leave(self, process: str) -> None:
        """Return everything that a stopping process holds but has neither used nor reserved.

        Raise an error if the ledger does not respond.
        """
