"""One limit of a holder in this process: its share, who waits for it, and what the ledger is to hear of it."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.ledger import Booking, Order
from routing_admin.core.limits.shares import GRANT_DIVISOR, PERIODS, Period, Share, Window, window_at

TELL_SECONDS = 2.0
"""How often the ledger hears what is used; and what is free goes back when nobody took of it for as long."""
PLACE_SECONDS = 0.1
"""The same for the places of calls under way."""
RENEW_SECONDS = 20.0
"""How often it hears of a share that nothing happens to, and after how long of silence the share no longer counts."""
LEASE_SECONDS = 60.0
NEVER = float("-inf")


@dataclass(slots=True, eq=False)
class Waiter:
    """A call that waits for so much of a cell, since that moment; `answer` is the window, or None for nothing left."""

    cell: LocalQuota
    amount: int
    since: float
    answer: Future[Window | None] = field(default_factory=Future)


@dataclass(slots=True, eq=False)
class LocalQuota:
    """`line` has who waits; `reported` is what the ledger heard to be committed, `heard_at` when, `taken_at`
    when a call last took of the share, both by a monotonic clock. `in_demand` says that another process lacks some.
    """

    holder: str
    meter: Meter
    share: Share
    reported: int = 0
    heard_at: float = NEVER
    taken_at: float = NEVER
    in_demand: bool = False
    line: list[Waiter] = field(default_factory=list)

    @property
    def is_of_moment(self) -> bool:
        """Whether what is used comes back with the end of the call."""
        return PERIODS[self.meter] is Period.NOW

    @property
    def is_settled(self) -> bool:
        """Whether the ledger knows all, and nothing free is held: nothing is to be done until a call comes."""
        return not self.line and self.share.granted == self.share.committed == self.reported

    def turn(self, limit: int, now: datetime, zone: tzinfo) -> None:
        """Follows the clock into the next window, and the administrator to another limit."""
        if self.share.window.is_over(now):
            window = window_at(PERIODS[self.meter], now, zone)
            self.share, self.reported, self.heard_at = self.share.move_to(window), 0, NEVER
        if self.share.limit != limit:
            self.share, self.heard_at = replace(self.share, limit=limit), NEVER

    def take(self, amount: int, clock: float) -> bool:
        """Whether so much was free; it is reserved then. Nothing is where the ledger was silent for too long."""
        if self._is_stale(clock) and not self.share.extension:
            return False
        share = self.share.reserve(amount)
        if share is None:
            return False
        self.share, self.taken_at = share, clock
        return True

    def may_grow(self, amount: int) -> bool:
        """Whether a draw could still bring so much: then no call is refused for want of it."""
        return self.share.limit - self.share.drawn >= amount

    def take_unasked(self, amount: int, clock: float) -> bool:
        """Whether so much is free of the share as it was extended, once, while the ledger is silent."""
        if self.take(amount, clock):
            return True
        share = self.share.extend()
        if share is None or share.reserve(amount) is None:
            return False
        self.share = share
        return self.take(amount, clock)

    def runs_low(self) -> bool:
        """Whether a share that was drawn for many calls is half gone, so that more is to be drawn ahead."""
        share = self.share
        return share.last > 1 and share.free * 2 < share.last and share.limit - share.drawn >= 2 * GRANT_DIVISOR

    def order(self, clock: float, *, tell: bool = False) -> Order | None:
        """What the ledger is to be told and asked now; None for nothing. `tell` tells all that it does not know."""
        share, stale = self.share, self._is_stale(clock)
        idle = clock - self.taken_at > (PLACE_SECONDS if self.is_of_moment else TELL_SECONDS)
        free = max(0, share.free - share.extension)
        give = free if stale or (not self.line and (idle or self.in_demand)) else 0
        at_hand = free - give
        ahead = 1 if not self.line and not give and self.runs_low() else 0
        want = max(0, sum(each.amount for each in self.line) - at_hand) or ahead
        age = clock - self.heard_at
        news = share.committed != self.reported and (tell or age > TELL_SECONDS)
        if not (give or want or news or share.debt or (share.granted and age > RENEW_SECONDS)):
            return None
        least = max(1, min((each.amount for each in self.line), default=1) - at_hand)
        place = (self.holder, self.meter, share.window, share.limit)
        return Order(*place, share.granted, share.committed, self.reported, give, want, least)

    def book(self, order: Order, booking: Booking, clock: float) -> None:
        """Takes over what the ledger booked; where the window or the limit is another one by now it says nothing."""
        if (order.window, order.limit) == (self.share.window, self.share.limit):
            self.share = self.share.book(booking.granted, booking.drawn, booking.grant)
            self.reported, self.heard_at, self.in_demand = order.committed, clock, booking.in_demand

    def serve(self, clock: float) -> None:
        """Lets those in line take of the share, in turn; whom no draw can help is told so.

        For a place among the calls under way one may wait, for another call may end.
        """
        waiting, self.line = self.line, []
        for each in waiting:
            if self.take(each.amount, clock):
                each.answer.set_result(self.share.window)
            elif self.is_of_moment or self._is_stale(clock) or self.may_grow(each.amount):
                self.line.append(each)
            else:
                each.answer.set_result(None)

    def _is_stale(self, clock: float) -> bool:
        return clock - self.heard_at > LEASE_SECONDS
