"""This process's share of one limit, the calls that wait for part of it, and the orders that are sent to the ledger."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import GRANT_DIVISOR, PERIODS, Booking, Order, Period, Share, Window, window_at

REPORT_SECONDS = 2.0
"""Seconds between two reports of usage to the ledger. An unused share of a limit is also returned after this time."""
CONCURRENT_REPORT_SECONDS = 0.1
"""The same as `REPORT_SECONDS`, but for the limit on concurrent calls."""
RENEW_SECONDS = 20.0
"""Seconds between two renewals of an unchanged share of a limit. The share is no longer valid if the ledger does not
respond for `LEASE_SECONDS`.
"""
LEASE_SECONDS = 60.0
NEVER = float("-inf")


@dataclass(slots=True, eq=False)
class Waiter:
    """A call that waits for an amount of a limit; `since` is when it began to wait.

    `answer` becomes the window in which the amount was granted, or None if too little of the limit is left.
    """

    cell: LocalQuota
    amount: int
    since: float
    answer: Future[Window | None] = field(default_factory=Future)


@dataclass(slots=True, eq=False)
class LocalQuota:
    """This process's share of one limit of a holder; `waiters` are the calls that wait for an amount.

    `reported` is the used and reserved amount that was last reported to the ledger. `heard_at` is when the ledger last
    responded, and `taken_at` when a call last used the share, both on a monotonic clock. `in_demand` says that another
    process needs more.
    """

    holder: str
    meter: Meter
    share: Share
    reported: int = 0
    heard_at: float = NEVER
    taken_at: float = NEVER
    in_demand: bool = False
    waiters: list[Waiter] = field(default_factory=list)

    @property
    def is_released_at_end(self) -> bool:
        """Whether usage is released when its call ends, as for the limit on concurrent calls."""
        return PERIODS[self.meter] is Period.NOW

    @property
    def is_settled(self) -> bool:
        """Whether the ledger is up to date and no unused amount is held. If so, no order is needed."""
        return not self.waiters and self.share.granted == self.share.committed == self.reported

    def turn(self, limit: int, now: datetime, zone: tzinfo) -> None:
        """Begin a new window if the last one has ended, and adopt a changed limit."""
        if self.share.window.is_over(now):
            window = window_at(PERIODS[self.meter], now, zone)
            self.share, self.reported, self.heard_at = self.share.move_to(window), 0, NEVER
        if self.share.limit != limit:
            self.share, self.heard_at = replace(self.share, limit=limit), NEVER

    def take(self, amount: int, clock: float) -> bool:
        """Reserve an amount if it is free.

        Nothing counts as free if the ledger has not responded for the duration of a lease.
        """
        if self._is_stale(clock) and not self.share.extension:
            return False
        share = self.share.reserve(amount)
        if share is None:
            return False
        self.share, self.taken_at = share, clock
        return True

    def may_grow(self, amount: int) -> bool:
        """Return whether the ledger could still grant this amount."""
        return self.share.limit - self.share.drawn >= amount

    def take_unasked(self, amount: int, clock: float) -> bool:
        """Reserve an amount without asking the ledger. Until the ledger responds, the share may be extended once."""
        if self.take(amount, clock):
            return True
        share = self.share.extend()
        if share is None or share.reserve(amount) is None:
            return False
        self.share = share
        return self.take(amount, clock)

    def runs_low(self) -> bool:
        """Return whether more than half of the last draw is used, so that more should be drawn in advance."""
        share = self.share
        return share.last > 1 and share.free * 2 < share.last and share.limit - share.drawn >= 2 * GRANT_DIVISOR

    def order(self, clock: float, *, report: bool) -> Order | None:
        """Return an order that reports usage to the ledger and requests an amount, or None if there is nothing to send.

        With `report`, small changes are also reported.
        """
        share, stale = self.share, self._is_stale(clock)
        idle = clock - self.taken_at > (CONCURRENT_REPORT_SECONDS if self.is_released_at_end else REPORT_SECONDS)
        free = max(0, share.free - share.extension)
        give = free if stale or (not self.waiters and (idle or self.in_demand)) else 0
        available = free - give
        prefetch = 1 if not self.waiters and not give and self.runs_low() else 0
        want = max(0, sum(waiter.amount for waiter in self.waiters) - available) or prefetch
        age = clock - self.heard_at
        has_changes = share.committed != self.reported and (report or age > REPORT_SECONDS)
        if not (give or want or has_changes or share.debt or (share.granted and age > RENEW_SECONDS)):
            return None
        least = max(1, min((waiter.amount for waiter in self.waiters), default=1) - available)
        quota_key = (self.holder, self.meter, share.window, share.limit)
        return Order(*quota_key, share.granted, share.committed, self.reported, give, want, least)

    def book(self, order: Order, booking: Booking, clock: float) -> None:
        # The window or the limit may have changed while the ledger processed the order.
        if (order.window, order.limit) == (self.share.window, self.share.limit):
            self.share = self.share.book(booking.granted, booking.drawn, booking.grant)
            self.reported, self.heard_at, self.in_demand = order.committed, clock, booking.in_demand

    def serve(self, clock: float) -> None:
        """Grant waiting calls their amounts in order.

        A call receives None if too little of the limit is left for it.
        """
        waiting, self.waiters = self.waiters, []
        for waiter in waiting:
            if self.take(waiter.amount, clock):
                waiter.answer.set_result(self.share.window)
            # For a limit on concurrent calls it is worth waiting, because another call may end.
            elif self.is_released_at_end or self._is_stale(clock) or self.may_grow(waiter.amount):
                self.waiters.append(waiter)
            else:
                waiter.answer.set_result(None)

    def _is_stale(self, clock: float) -> bool:
        return clock - self.heard_at > LEASE_SECONDS
