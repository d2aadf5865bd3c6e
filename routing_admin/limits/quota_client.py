"""This process's shares of the limits: calls reserve of them in memory; a thread beside them draws from the ledger.

The thread draws ahead once half of a share is gone, says what is used, and gives back what nobody needs. A call waits
for it only where its share is spent.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.ledger import Ledger, Order
from routing_admin.core.limits.shares import PERIODS, Share, Window, window_at
from routing_admin.limits.local_quota import LocalQuota, Waiter
from routing_admin.platform.databases.outage_log import OutageLog

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""Between two rounds of the thread, where no call asks for one."""
AGAIN_SECONDS = 0.02
"""The same while calls wait."""
MAX_ORDERS = 200
"""So many are carried out in one transaction."""
MANY_CELLS = 1000
"""Where there are more, those that are over are looked for."""
END_SECONDS = 10
WAIT_SECONDS = 1.0
"""How long a call waits for a share of its limits, all of them together: a busy machine may take most of it."""
PLACE_SECONDS = 0.5
"""The same where only places among the calls under way are missing."""


class QuotaClient:
    """The shares of one process; `clock` is monotonic, `now` and `zone` say in which window a call falls.

    `close` lets go of what the thread held.
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
        """Hold nothing, under a name of its own."""
        with self._lock:
            self.process = secrets.token_hex(16)
            self._cells: dict[tuple[str, Meter], LocalQuota] = {}
            self._active: dict[LocalQuota, None] = {}
            self._most_cells = MANY_CELLS

    def reserve(self, holder: str, meter: Meter, limit: int, amount: int) -> Window | Waiter:
        """The window in which so much is reserved, at once where the share has it; nothing can always be had.

        Else who waits for it: the answer is the window, or None where the limit has not so much left.
        """
        with self._lock:
            cell, clock = self._find(holder, meter, limit), self._clock()
            self._active[cell] = None
            if amount == 0:
                return cell.share.window
            if not cell.line and cell.take(amount, clock):
                if cell.runs_low():
                    self._wake.set()
                    self._start()
                return cell.share.window
            waiter = Waiter(cell, amount, clock)
            cell.line.append(waiter)
            self._start()
        self._wake.set()
        return waiter

    def patience(self, waiter: Waiter) -> float:
        """Return for how many seconds more a call is to wait; 0 when it has waited long enough."""
        most = PLACE_SECONDS if waiter.cell.is_of_moment else WAIT_SECONDS
        return max(0.0, waiter.since + most - self._clock())

    def count_waiting(self) -> int:
        """Return how many calls wait for a share or a place."""
        with self._lock:
            return sum(len(cell.line) for cell in self._active)

    def give_up(self, waiter: Waiter) -> Window | None:
        """Return what a call has that waited long enough: what came at the last moment, or of the share extended.

        None where the limit has not so much left. Raises `TimeoutError` where the ledger did not answer in time.
        """
        with self._lock:
            if waiter.answer.done():
                return waiter.answer.result()
            cell = waiter.cell
            cell.line.remove(waiter)
            if cell.heard_at >= waiter.since and (cell.is_of_moment or not cell.may_grow(waiter.amount)):
                return None
            if cell.take_unasked(waiter.amount, self._clock()):
                self._note_extension()
                return cell.share.window
        raise TimeoutError("the ledger of limits does not answer")

    def _note_extension(self) -> None:
        self._extended += 1
        if self._extended == 1:
            log.warning("the ledger of limits does not answer in time: calls are let in on extended shares")

    def withdraw(self, waiter: Waiter) -> None:
        """Somebody waits no longer; what came at the last moment is free again."""
        cell, window = waiter.cell, None
        with self._lock:
            if waiter.answer.done():
                window = waiter.answer.result()
            elif waiter in cell.line:
                cell.line.remove(waiter)
        if window is not None:
            self.settle(cell.holder, cell.meter, window, waiter.amount, 0)

    def settle(self, holder: str, meter: Meter, window: Window, reserved: int, used: int) -> None:
        """A call that reserved so much in that window has ended and used so much; late is late once it is over."""
        with self._lock:
            cell = self._cells.get((holder, meter))
            if cell is None or cell.share.window != window:
                return
            cell.share = cell.share.settle(reserved, used)
            self._active[cell] = None
            if cell.line:
                cell.serve(self._clock())
            if cell.in_demand:
                self._wake.set()

    def share_of(self, holder: str, meter: Meter, limit: int) -> Share:
        """The share as it is now."""
        with self._lock:
            return self._find(holder, meter, limit).share

    def tell(self) -> None:
        """Tells the ledger all that this process knows, now, in the caller's thread. Raises what the ledger raises."""
        self._exchange(tell=True)

    def stop(self) -> None:
        """Ends the thread and gives back what nobody used; what the ledger does not take goes back with the lease."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ends = True
            self._wake.set()
            thread.join(timeout=END_SECONDS)
        try:
            self._exchange(tell=True)
            self._ledger.leave(self.process)
        except Exception as error:
            self._outage.note(error)
            log.warning("this process's shares of limits go back when their lease ends")
        self._begin()

    def _find(self, holder: str, meter: Meter, limit: int) -> LocalQuota:
        """The cell of a holder's limit, in the window of now."""
        cell, now = self._cells.get((holder, meter)), self._now()
        if cell is None:
            if len(self._cells) >= self._most_cells:
                self._drop_cells(now)
            window = window_at(PERIODS[meter], now, self._zone())
            cell = self._cells[holder, meter] = LocalQuota(holder, meter, Share(limit, window))
        cell.turn(limit, now, self._zone())
        return cell

    def _drop_cells(self, now: datetime) -> None:
        """Lets go of what is told and whose time is over: of end users there are new ones every day."""
        self._cells = {
            place: cell
            for place, cell in self._cells.items()
            if cell in self._active or not (cell.is_of_moment or cell.share.window.is_over(now))
        }
        self._most_cells = max(MANY_CELLS, 2 * len(self._cells))

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
        """Sleeps until the next round is due: until somebody calls, where nothing is held."""
        waiting = any(cell.line for cell in list(self._active))
        self._wake.wait(AGAIN_SECONDS if waiting else PAUSE_SECONDS if self._active else None)
        self._wake.clear()

    def _exchange(self, *, tell: bool = False) -> None:
        with self._in_round:
            with self._lock:
                clock = self._clock()
                asked = [(cell, order) for cell in self._active if (order := cell.order(clock, tell=tell))]
            for start in range(0, len(asked), MAX_ORDERS):
                self._carry_out(asked[start : start + MAX_ORDERS])
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
