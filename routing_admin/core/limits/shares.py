"""A process's share of a limit: what it drew of the ledger, what its calls reserved of that and what they used.

Calls reserve before and settle after, so that all shares together never pass the limit. What the real use of a call
exceeds its reservation by, and what a share was extended by while the ledger was silent, is a debt: the ledger books it
whatever is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum

from capabilities.core.services.agent_limits import Meter

# In which time is a limit counted? The minute of the clock, the day and the month of the calendar, or the moment.


class Period(StrEnum):
    """How long what is used counts; `NOW` as long as the call is under way."""

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
    """One minute, day or month: a name that is its own, and when it ends; that of the moment never does."""

    name: str
    ends_at: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """Whether another one counts by now."""
        return self.ends_at is not None and now >= self.ends_at


MOMENT = Window("now")


def window_at(period: Period, now: datetime, zone: tzinfo) -> Window:
    """The window that `now` lies in; days and months are those of the zone, whatever its clocks do."""
    if period is Period.NOW:
        return MOMENT
    if period is Period.MINUTE:
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        return Window(f"{minute:%Y-%m-%dT%H:%MZ}", minute + timedelta(minutes=1))
    today = now.astimezone(zone).date()
    if period is Period.DAY:
        return Window(f"{today:%Y-%m-%d}", _midnight(today + timedelta(days=1), zone))
    return Window(f"{today:%Y-%m}", _midnight((today.replace(day=1) + timedelta(days=32)).replace(day=1), zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


GRANT_DIVISOR = 16
"""Of what is left a process draws so many parts of one: so nobody holds much that others lack, and of a little left
each draws what its calls need and no more."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a process may let its calls use in a window; `drawn` is what all processes drew, when it last heard of it.

    `last` is the size of the last draw, `extension` what was added without the ledger.
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
        """What is used, or may be by calls under way."""
        return self.used + self.reserved

    @property
    def free(self) -> int:
        """What further calls may reserve; below zero where calls used more than they had reserved."""
        return self.granted + self.extension - self.committed

    @property
    def debt(self) -> int:
        """What is committed beyond what the ledger granted."""
        return max(0, self.committed - self.granted)

    @property
    def remaining(self) -> int:
        """What is left of the limit as far as this process knows; what others drew counts as used."""
        return max(0, self.limit - max(self.drawn, self.granted) + min(self.granted, self.free))

    def reserve(self, amount: int) -> Share | None:
        """The share with so much reserved; None where it has not so much free."""
        return replace(self, reserved=self.reserved + amount) if amount <= self.free else None

    def settle(self, reserved: int, used: int) -> Share:
        """The share once a call that reserved so much has used so much, which is never less than nothing."""
        return replace(self, reserved=self.reserved - reserved, used=self.used + max(used, 0))

    def book(self, granted: int, drawn: int, last: int) -> Share:
        """The share as the ledger has it now."""
        return replace(self, granted=granted, drawn=drawn, last=last or self.last, extension=0)

    def extend(self) -> Share | None:
        """Return the share with what a draw would have granted of what is left, but no less than the last one did.

        None where it was extended since the ledger was heard of, or nothing was ever drawn.
        """
        left = self.limit - max(self.drawn, self.granted)
        more = min(left, max(self.last, left // GRANT_DIVISOR))
        return replace(self, extension=more) if self.last and more > 0 and not self.extension else None

    def move_to(self, window: Window) -> Share:
        """A share of the next window, which begins with nothing but what is reserved of a moment that never ends."""
        return Share(self.limit, window, last=self.last)


def size_of_grant(limit: int, drawn: int, want: int, least: int) -> int:
    """How much a process gets that wants so much; nothing where not even `least` is left.

    Where more is left it gets more than it wants, so that its next calls need not ask.
    """
    left = limit - drawn
    return 0 if left < max(least, 1) else min(left, max(want, left // GRANT_DIVISOR))
