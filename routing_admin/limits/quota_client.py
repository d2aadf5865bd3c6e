"""This process's shares of all limits: calls reserve from them in memory, and a thread draws them from the ledger.

Once half of a share is used, the thread draws more in advance. It also reports usage to the ledger and returns amounts
that are not needed. A call waits for the thread only if the share is used up.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import PERIODS, Ledger, Order, Share, Window, window_at
from routing_admin.limits.local_quota import LocalQuota, Waiter
from routing_admin.platform.databases.outage_log import OutageLog

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""Seconds between two rounds of the background thread, unless a call wakes it earlier."""
WAITING_PAUSE_SECONDS = 0.02
"""The same as `PAUSE_SECONDS`, but while calls are waiting."""
MAX_ORDERS = 200
"""Maximum number of orders to send to the ledger in one transaction."""
MAX_CACHED_QUOTAS = 1000
"""If more quotas than this are cached, quotas of past windows are dropped."""
END_SECONDS = 10
WAIT_SECONDS = 1.0
"""Maximum time that a call waits for all its limits together, in seconds. On a busy machine it may need most of this
time.
"""
CONCURRENT_WAIT_SECONDS = 0.5
"""Maximum time that a call waits for the limit on concurrent calls, in seconds, if it waits for no other limit."""


class QuotaClient:
    """Holds this process's share of each quota.

    `now` and `zone` determine the window in which a call is counted. `close` closes the thread's database connections.
    """

    def __init__(
        self,
        ledger: Ledger,
        zone: Callable[[], tzinfo],
        close: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._ledger, self._zone, self._close = ledger, zone, close
        self._clock, self._now = clock, now
        self._lock, self._in_round, self._wake = threading.Lock(), threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._ends, self._extended = False, 0
        self._outage = OutageLog(log, "drawing shares of limits")
        self._begin()

    def _begin(self) -> None:
        with self._lock:
            # The process starts without shares, and under a new name in the ledger.
            self.process = secrets.token_hex(16)
            self._cells: dict[tuple[str, Meter], LocalQuota] = {}
            self._active: dict[LocalQuota, None] = {}
            self._max_cells = MAX_CACHED_QUOTAS

    def reserve(self, holder: str, meter: Meter, limit: int, amount: int) -> Window | Waiter:
        """Reserve an amount from this process's share of the limit, and return the window that it counts towards.

        If the share is too small, return a `Waiter`. Its answer is the window once more has been granted, or None if
        too little of the limit is left. An amount of 0 is always available.
        """
        with self._lock:
            cell, clock = self._find(holder, meter, limit), self._clock()
            self._active[cell] = None
            if amount == 0:
                return cell.share.window
            # A new call must not overtake calls that are already waiting.
            if not cell.waiters and cell.take(amount, clock):
                if cell.runs_low():
                    self._wake.set()
                    self._start()
                return cell.share.window
            waiter = Waiter(cell, amount, clock)
            cell.waiters.append(waiter)
            self._start()
        self._wake.set()
        return waiter

    def wait_limit(self, waiter: Waiter) -> float:
        """Return how many more seconds the call should wait."""
        timeout = CONCURRENT_WAIT_SECONDS if waiter.cell.is_released_at_end else WAIT_SECONDS
        return max(0.0, waiter.since + timeout - self._clock())

    def count_waiting(self) -> int:
        with self._lock:
            return sum(len(cell.waiters) for cell in self._active)

    def give_up(self, waiter: Waiter) -> Window | None:
        """End a call's wait; return the window of its amount if it can still be reserved, or None if it cannot.

        The amount may have been granted at the last moment, or it may be taken from an extension of the share. Raise
        `TimeoutError` if the ledger did not respond in time.
        """
        with self._lock:
            if waiter.answer.done():
                return waiter.answer.result()
            cell = waiter.cell
            cell.waiters.remove(waiter)
            # The ledger has responded in the meantime, and too little of the limit is left.
            if cell.heard_at >= waiter.since and (cell.is_released_at_end or not cell.may_grow(waiter.amount)):
                return None
            if cell.take_unasked(waiter.amount, self._clock()):
                self._note_extension()
                return cell.share.window
        raise TimeoutError("the ledger of limits does not answer")

    def _note_extension(self) -> None:
        self._extended += 1
        if self._extended == 1:
            # Log this once per outage. `_carry_out` logs the end of the outage, with the number of calls.
            log.warning("the ledger of limits does not answer in time: calls are let in on extended shares")

    def withdraw(self, waiter: Waiter) -> None:
        """Stop waiting, and release an amount that was granted at the last moment."""
        cell, window = waiter.cell, None
        with self._lock:
            if waiter.answer.done():
                window = waiter.answer.result()
            elif waiter in cell.waiters:
                cell.waiters.remove(waiter)
        if window is not None:
            self.settle(cell.holder, cell.meter, window, waiter.amount, 0)

    def settle(self, holder: str, meter: Meter, window: Window, reserved: int, used: int) -> None:
        with self._lock:
            cell = self._cells.get((holder, meter))
            # If the window has ended, its usage no longer matters in this process.
            if cell is None or cell.share.window != window:
                return
            cell.share = cell.share.settle(reserved, used)
            self._active[cell] = None
            if cell.waiters:
                cell.serve(self._clock())
            if cell.in_demand:
                self._wake.set()

    def find_share(self, holder: str, meter: Meter, limit: int) -> Share:
        with self._lock:
            return self._find(holder, meter, limit).share

    def report(self) -> None:
        """Report all usage to the ledger in the caller's thread. Errors of the ledger propagate."""
        self._exchange(report=True)

    def stop(self) -> None:
        """Stop the thread and return unused amounts to the ledger.

        If the ledger fails, it gets them back when the process's lease expires.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ends = True
            self._wake.set()
            thread.join(timeout=END_SECONDS)
        try:
            self._exchange(report=True)
            self._ledger.leave(self.process)
        except Exception as error:
            self._outage.note(error)
            log.warning("this process's shares of limits are returned when their lease expires")
        self._begin()

    def _find(self, holder: str, meter: Meter, limit: int) -> LocalQuota:
        cell, now = self._cells.get((holder, meter)), self._now()
        if cell is None:
            if len(self._cells) >= self._max_cells:
                self._drop_cells(now)
            window = window_at(PERIODS[meter], now, self._zone())
            cell = self._cells[holder, meter] = LocalQuota(holder, meter, Share(limit, window))
        cell.turn(limit, now, self._zone())
        return cell

    def _drop_cells(self, now: datetime) -> None:
        # Drop quotas of past windows. End users also have quotas, so each new user would add some to the cache.
        self._cells = {
            key: cell
            for key, cell in self._cells.items()
            if cell in self._active or not (cell.is_released_at_end or cell.share.window.is_over(now))
        }
        self._max_cells = max(MAX_CACHED_QUOTAS, 2 * len(self._cells))

    def _start(self) -> None:
        if self._thread is None:
            self._ends = False
            self._thread = threading.Thread(target=self._run, name="limits", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._ends:
            try:
                self._exchange()
            except Exception as error:
                self._outage.note(error)
            else:
                self._outage.end()
            self._wait()
        self._close()

    def _wait(self) -> None:
        # Without shares the thread has nothing to renew, so it sleeps until a call wakes it.
        waiting = any(cell.waiters for cell in list(self._active))
        self._wake.wait(WAITING_PAUSE_SECONDS if waiting else PAUSE_SECONDS if self._active else None)
        self._wake.clear()

    def _exchange(self, *, report: bool = False) -> None:
        with self._in_round:
            with self._lock:
                clock = self._clock()
                pending = [(cell, order) for cell in self._active if (order := cell.order(clock, report=report))]
            for start in range(0, len(pending), MAX_ORDERS):
                self._carry_out(pending[start : start + MAX_ORDERS])
            with self._lock:
                self._active = {cell: None for cell in self._active if not cell.is_settled}

    def _carry_out(self, exchange: list[tuple[LocalQuota, Order]]) -> None:
        bookings = self._ledger.exchange(self.process, [order for _, order in exchange], self._now())
        with self._lock:
            clock = self._clock()
            if self._extended:
                log.warning("the ledger of limits answers again: %d calls used extended shares", self._extended)
                self._extended = 0
            for (cell, order), booking in zip(exchange, bookings, strict=True):
                cell.book(order, booking, clock)
                cell.serve(clock)
