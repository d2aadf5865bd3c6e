"""One process's share of a limit: how much it has drawn from the ledger, reserved for calls, and used.

The ledger records how much of each limit all processes have drawn. Calls reserve an amount before they start and settle
it afterwards, so that all shares together never exceed the limit. The ledger books two amounts as debt, even if
they exceed the limit: usage beyond a reservation, and what a process added to its own share while the ledger did not
respond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Protocol

from capabilities.core.services.agent_limits import Meter


class Period(StrEnum):
    """Period over which usage is added up; `NOW` counts calls while they are running."""

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
    """One minute, day or month, with a unique name. The window of `Period.NOW` never ends."""

    name: str
    ends_at: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        return self.ends_at is not None and now >= self.ends_at


MOMENT = Window("now")


def window_at(period: Period, now: datetime, zone: tzinfo) -> Window:
    """Return the window that contains `now`. Days and months begin in the time zone `zone`, minutes in UTC."""
    if period is Period.NOW:
        return MOMENT
    if period is Period.MINUTE:
        # Windows are clock minutes, so a caller may use up two of them within sixty seconds. A token bucket or weighted
        # windows would allow almost as much.
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        return Window(f"{minute:%Y-%m-%dT%H:%MZ}", minute + timedelta(minutes=1))
    today = now.astimezone(zone).date()
    if period is Period.DAY:
        return Window(f"{today:%Y-%m-%d}", _midnight(today + timedelta(days=1), zone))
    # The first day of a month plus 32 days is always in the next month.
    return Window(f"{today:%Y-%m}", _midnight((today.replace(day=1) + timedelta(days=32)).replace(day=1), zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    # `datetime.combine` returns midnight in the zone even on days on which its clocks change.
    return datetime.combine(day, time(), zone).astimezone(UTC)


GRANT_DIVISOR = 16
"""A process draws 1/16 of what is left of a limit, or more if its calls need more. This leaves enough for other
processes. Near the limit, each process draws only what its calls need.
"""


@dataclass(frozen=True, slots=True)
class Share:
    """One process's share of a limit in one window.

    `drawn` is how much all processes have drawn, as last reported by the ledger. `last` is the size of the last draw,
    `extension` an amount that the process added itself while the ledger did not respond.
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
        """What calls have used, plus what is reserved for running calls."""
        return self.used + self.reserved

    @property
    def free(self) -> int:
        # The result is negative if calls used more than they had reserved.
        return self.granted + self.extension - self.committed

    @property
    def debt(self) -> int:
        return max(0, self.committed - self.granted)

    @property
    def remaining(self) -> int:
        """Amount of the limit that is left, as far as this process knows.

        What other processes have drawn counts as used.
        """
        return max(0, self.limit - max(self.drawn, self.granted) + min(self.granted, self.free))

    def reserve(self, amount: int) -> Share | None:
        """Return the share with `amount` reserved, or None if less than `amount` is free."""
        return replace(self, reserved=self.reserved + amount) if amount <= self.free else None

    def settle(self, reserved: int, used: int) -> Share:
        return replace(self, reserved=self.reserved - reserved, used=self.used + max(used, 0))

    def book(self, granted: int, drawn: int, last: int) -> Share:
        return replace(self, granted=granted, drawn=drawn, last=last or self.last, extension=0)

    def extend(self) -> Share | None:
        """Return the share with an amount added without asking the ledger.

        The amount is as large as a regular draw, and at least as large as the last draw. Return None if the share was
        already extended since the ledger last responded, or if the share never drew anything.
        """
        left = self.limit - max(self.drawn, self.granted)
        extension = min(left, max(self.last, left // GRANT_DIVISOR))
        return replace(self, extension=extension) if self.last and extension > 0 and not self.extension else None

    def move_to(self, window: Window) -> Share:
        return Share(self.limit, window, last=self.last)


def grant_size(limit: int, drawn: int, want: int, least: int) -> int:
    """Return how much to grant: at least `want`, or else all that is left, or 0 if less than `least` is left."""
    left = limit - drawn
    # While much is left, grant more than was requested, so that the next calls need no exchange with the ledger.
    return 0 if left < max(least, 1) else min(left, max(want, left // GRANT_DIVISOR))


@dataclass(frozen=True, slots=True)
class Order:
    """A process's message to the ledger about one limit of a holder (named as in `limit_holders`).

    `granted` is how much the process holds. `committed` is how much it has used or reserved, which may be more.
    `reported` is `committed` in its previous order. The process returns `give` and requests `want`; a grant of less
    than `least` would be useless.
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
    """The ledger's state after an order: what the process holds, what all processes have drawn, and what was granted.

    `in_demand` means that another process was recently refused a grant of this limit.
    """

    granted: int
    drawn: int
    grant: int = 0
    in_demand: bool = False


def book(drawn: int, held: int | None, order: Order) -> Booking:
    """Apply a process's order to the ledger, which records that all processes drew `drawn` and this one holds `held`.

    `held` is None if the process's lease has expired.
    """
    if held is None:
        # A process whose lease has expired loses everything that it had not reported as committed. It also loses its
        # whole share of the limit on concurrent calls, whose window never ends. Usage that it reports later is booked
        # below as debt.
        held = min(order.reported, order.granted) if order.window.ends_at is not None else 0
    else:
        give = max(0, min(order.give, held - order.committed))
        held, drawn = held - give, drawn - give
    # Book debt even if nothing is left of the limit, because the amount has already been used.
    debt = max(0, order.committed - held)
    held, drawn = held + debt, drawn + debt
    grant = grant_size(order.limit, drawn, order.want, order.least) if order.want else 0
    return Booking(held + grant, drawn + grant, grant)


class Ledger(Protocol):
    """Record of how much of each limit all processes have drawn.

    If a process sends nothing for the duration of a lease, it loses what it has not used.
    """

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> Sequence[Booking]:
        """Book all orders, or none of them. Raise an error if the ledger does not respond."""

    def leave(self, process: str) -> None:
        """Return to the ledger what a stopping process has neither used nor reserved.

        Raise an error if the ledger does not respond.
        """
