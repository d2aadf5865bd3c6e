"""The ledger of an installation with Redis: pools there while it answers, rows while it does not.

A call waits for an exchange with Redis; the database is asked where a process first comes to a pool, where a pool runs
out, and by `beat` beside the calls, which knows of the epoch. What a process holds of pools it carries to the rows as
soon as it finds that Redis is away or that the epoch is over, and back again when it next draws.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from routing_admin.core.limits.ledger import Booking, Ledger, Order
from routing_admin.core.limits.shares import Window
from routing_admin.limits import pools
from routing_admin.limits.pool_script import EXCHANGE, LEAVE, LOST, OVER, PROLONG
from routing_admin.limits.pools import Draw, Holding, Place, PoolOverError
from routing_admin.limits.rows import LEASE, WANTED
from routing_admin.platform.redis.link import RedisLink, RedisUnavailableError

EPOCH_MILLISECONDS = 2600
"""How long an epoch lasts in Redis that nobody prolongs: less than in the rows, so that it ends here first."""
LATE_MILLISECONDS = 2200
"""An epoch that lasts longer yet was prolonged by somebody a moment ago."""
TELL_SECONDS = 2.0
"""How often the rows hear what is used."""
IDLE_SECONDS = 2.0
"""After how long without an exchange this process prolongs no epoch that it holds nothing free of."""
DRY_SECONDS = 0.1
"""How long rows that had nothing left for a pool are not asked again."""
LATE = timedelta(seconds=10)
"""How long after the end of a window this process remembers what it held in it: an exchange may be under way."""
POOL_SECONDS = 3600
"""How long Redis keeps a pool that nobody comes to."""


@dataclass(slots=True)
class _Stake:
    """What this process holds of one pool; of that is committed what it said in Redis, `in_rows` what it said there."""

    window: Window
    held: int
    committed: int
    in_rows: int
    dry_until: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether the rows know all of it, so that it needs no carrying when the epoch ends."""
        return self.committed == self.in_rows == self.held and (self.window.ends_at is not None or not self.held)


class PooledLedger:
    """One process's; safe between threads. `clock` is monotonic."""

    def __init__(
        self,
        link: RedisLink,
        rows: Ledger,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._link, self._rows, self._clock, self._now = link, rows, clock, now
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._process = self._epoch = self._left = ""
        self._stakes: dict[Place, _Stake] = {}
        self._exchanged_at = self._told_at = float("-inf")

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> Sequence[Booking]:
        """Books every order, all or none. Raises what the database raises."""
        if not self._link.is_set:
            return self._rows.exchange(process, orders, now)
        with self._lock:
            self._meet(process)
            self._exchanged_at = self._clock()
            try:
                if self._epoch and self._link.is_up:
                    return self._exchange_in_pools(orders, now)
            except PoolOverError as over:
                self._leave_epoch(now, for_all=over.is_lost)
            except RedisUnavailableError:
                pass
            self._leave_epoch(now)
            return self._rows.exchange(process, orders, now)

    def leave(self, process: str) -> None:
        """Takes back what the process holds and had not said to be committed. Raises what the database raises."""
        with self._lock:
            if process == self._process and self._stakes:
                try:
                    self._tell()
                    self._leave_pools()
                except PoolOverError:
                    self._leave_epoch(self._now())
            self._stakes, self._epoch = {}, ""
        self._rows.leave(process)

    def publish(self) -> None:
        """Tells the rows what was said in Redis, for whoever reads them. Raises what the database raises."""
        with suppress(PoolOverError):  # what is held of it the next exchange, or beat, carries to the rows
            self._tell()

    def beat(self) -> None:
        """Finds the epoch of now, or begins one, and lets it go on while this process needs it; tells the rows what is
        used, now and then. Raises what the database raises.
        """
        now, clock, epoch = self._now(), self._clock(), self._epoch
        is_needed = clock - self._exchanged_at < IDLE_SECONDS or not self._is_settled()
        if not is_needed and not self._stakes:
            return
        try:
            if not epoch:
                self._epoch = self._find_epoch(now)
            elif is_needed:
                self._prolong(epoch, now)
            if clock - self._told_at > TELL_SECONDS:
                self._tell()
        except (RedisUnavailableError, PoolOverError):
            with self._lock:
                if self._epoch == epoch:
                    self._leave_epoch(now)

    def _meet(self, process: str) -> None:
        if process != self._process:  # forgotten by its keeper, and begun anew: what it held lapses
            self._process, self._stakes, self._epoch = process, {}, ""

    def _is_settled(self) -> bool:
        return all(stake.is_settled for stake in tuple(self._stakes.values()))

    def _exchange_in_pools(self, orders: Sequence[Order], now: datetime) -> list[Booking]:
        """Raises `RedisUnavailableError`, `PoolOverError` and what the database raises."""
        draws: list[Draw | None] = [None] * len(orders)
        new = [place for place, order in enumerate(orders) if _place_of(order) not in self._stakes]
        if new:
            drawn = pools.draw(self._epoch, self._process, [orders[each] for each in new], enters=True, now=now)
            for place, each in zip(new, drawn, strict=True):
                draws[place] = each
                stake = _Stake(orders[place].window, each.carried, each.committed, each.committed)
                self._stakes[_place_of(orders[place])] = stake
        bookings = self._ask(orders, draws, enters=True)
        dry = [place for place, booking in enumerate(bookings) if self._may_refill(orders[place], booking)]
        if dry:
            more = self._refill([orders[each] for each in dry], now)
            for place, booking in zip(dry, more, strict=True):
                bookings[place] = booking
        return bookings

    def _may_refill(self, order: Order, booking: Booking) -> bool:
        return bool(order.want and not booking.grant and self._clock() >= self._stakes[_place_of(order)].dry_until)

    def _refill(self, orders: Sequence[Order], now: datetime) -> list[Booking]:
        draws = pools.draw(self._epoch, self._process, orders, enters=False, now=now)
        for order, each in zip(orders, draws, strict=True):
            if not each.grant:
                self._stakes[_place_of(order)].dry_until = self._clock() + DRY_SECONDS
        return self._ask([_remainder_of(order, self._stakes[_place_of(order)]) for order in orders], draws, last=True)

    def _ask(
        self, orders: Sequence[Order], draws: Sequence[Draw | None], *, enters: bool = False, last: bool = False
    ) -> list[Booking]:
        """The orders booked in Redis, whose pools get what was drawn for them."""
        keys = [self._link.key("epoch"), *(self._key(_place_of(order)) for order in orders)]
        arguments: list[object] = [self._epoch, self._process, _milliseconds(LEASE), _milliseconds(WANTED), int(last)]
        for order, draw in zip(orders, draws, strict=True):
            arguments += _arguments_of(order, draw, enters=enters and draw is not None)
        found = self._link.run(EXCHANGE, keys, arguments)
        if found in (OVER, LOST):
            raise PoolOverError(is_lost=found == LOST)
        bookings = [Booking(held, drawn, grant, bool(demand)) for held, drawn, grant, demand in found]
        for order, booking in zip(orders, bookings, strict=True):
            stake = self._stakes[_place_of(order)]
            stake.held, stake.committed = booking.granted, order.committed
        return bookings

    def _find_epoch(self, now: datetime) -> str:
        """Raises `RedisUnavailableError`; `PoolOverError` while the epoch goes on that this process left."""
        key = self._link.key("epoch")
        epoch = self._link.ask(lambda client: client.get(key))
        if not epoch:
            own = secrets.token_hex(8)
            pools.begin(own, now)
            self._link.ask(lambda client: client.set(key, own, nx=True, px=EPOCH_MILLISECONDS))
            epoch = self._link.ask(lambda client: client.get(key))
        if not epoch or epoch == self._left:
            raise PoolOverError
        return str(epoch)

    def _leave_epoch(self, now: datetime, *, for_all: bool = False) -> None:
        """Carries to the rows what is held of pools; what they know already stays used. Raises what they raise."""
        if not self._epoch:
            return
        with self._telling:
            unsettled = [
                Holding(place, stake.held, stake.committed, stake.in_rows)
                for place, stake in self._stakes.items()
                if not stake.is_settled and not stake.window.is_over(now)
            ]
            if unsettled or for_all:
                pools.end(self._epoch, self._process, unsettled, now)
                self._left = self._epoch
            self._stakes, self._epoch = {}, ""

    def _prolong(self, epoch: str, now: datetime) -> None:
        key, began = self._link.key("epoch"), self._clock()
        left = self._link.ask(lambda client: client.pttl(key))
        if int(left) > LATE_MILLISECONDS:
            return
        pools.prolong(epoch, now)
        lasts = EPOCH_MILLISECONDS - int((self._clock() - began) * 1000)
        if not self._link.run(PROLONG, [key], [epoch, max(1, lasts)]):
            raise PoolOverError

    def _tell(self) -> None:
        """Tells the rows what they do not know; never while it is carried to them. Calls need not wait for it."""
        with self._telling:
            self._told_at, stakes = self._clock(), dict(self._stakes)
            news = [
                (place, stake.committed - stake.in_rows)
                for place, stake in stakes.items()
                if stake.committed != stake.in_rows
            ]
            if news:
                pools.tell(self._epoch, news)
                for place, more in news:
                    stakes[place].in_rows += more
            before = self._now() - LATE
            for place in [place for place, stake in stakes.items() if stake.window.is_over(before)]:
                self._stakes.pop(place, None)

    def _leave_pools(self) -> None:
        keys = [self._link.key("epoch"), *(self._key(place) for place in self._stakes)]
        stays = [int(stake.window.ends_at is not None) for stake in self._stakes.values()]
        with suppress(RedisUnavailableError):  # then the epoch ends, and the rows have what is free
            self._link.run(LEAVE, keys, [self._epoch, self._process, *stays])

    def _key(self, place: Place) -> str:
        holder, meter, window = place
        return self._link.key("pool", self._epoch, meter.value, window, holder)


def _place_of(order: Order) -> Place:
    return order.holder, order.meter, order.window.name


def _remainder_of(order: Order, stake: _Stake) -> Order:
    """An order once it was booked: what it gave is given."""
    return replace(order, granted=stake.held, reported=order.committed, give=0)


def _arguments_of(order: Order, draw: Draw | None, *, enters: bool) -> list[int]:
    carried, grown, outside = (draw.carried if enters else 0, draw.grant, draw.outside) if draw else (0, 0, -1)
    ends = int(order.window.ends_at is not None)
    own = [order.limit, order.granted, order.committed, order.reported, order.give, order.want, order.least]
    return [int(enters), carried, grown, outside, POOL_SECONDS, ends, *own]


def _milliseconds(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)
