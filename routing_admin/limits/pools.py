"""What Redis has of the limits: a pool of each, which is a share of the rows' ledger like that of a process.

So whatever is drawn of Redis was drawn of the rows first, and neither knows of a thing that the other could give away
again. Pools live in epochs. An epoch goes on while somebody prolongs it, here first and then in Redis, where it ends a
little earlier; when it is over what the processes hold is carried back here, and once `LEASE` is over the rest is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.ledger import Order
from routing_admin.limits.rows import LEASE as HOLD
from routing_admin.limits.rows import WAIT_SECONDS, find_window, take_back
from routing_admin.models import LimitShare, LimitWindow
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import LOGS, renew_connections

LEASE = timedelta(seconds=3)
"""How long an epoch lasts that nobody prolongs; also how long its pools keep what they have once it was ended."""
EPOCH = "epoch"
"""What stands in place of a meter in the row of an epoch."""
GRANT_DIVISOR = 2
"""Of what is left a pool draws half: the other half is at hand while an epoch ends."""

Place = tuple[str, Meter, str]
"""A holder's limit in a window: holder, meter, the window's name."""


class PoolOverError(Exception):
    """The epoch is over: what is held of its pools is to be carried to the rows.

    `is_lost` says that Redis dropped a pool of it, so that it is to be ended for all.
    """

    def __init__(self, *, is_lost: bool = False) -> None:
        super().__init__("the epoch is over")
        self.is_lost = is_lost


@dataclass(frozen=True, slots=True)
class Draw:
    """What a pool got of one limit: what the process held of the rows, of which it had said so much to be committed,
    and so much more. `outside` is what all drew beside the pool.
    """

    carried: int
    committed: int
    grant: int
    outside: int


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds of a pool: of that is committed what it said in Redis, `in_rows` what it said here."""

    place: Place
    held: int
    committed: int
    in_rows: int


def begin(epoch: str, now: datetime) -> None:
    """Begins an epoch. Raises what the database raises."""
    renew_connections()
    with lock_timeout(WAIT_SECONDS):
        LimitWindow.objects.create(holder="", meter=EPOCH, window=epoch, ends_at=now + LEASE)


def prolong(epoch: str, now: datetime) -> None:
    """Lets an epoch go on. Raises `PoolOverError` where it is over, and what the database raises."""
    renew_connections()
    with lock_timeout(WAIT_SECONDS), transaction.atomic(using=LOGS):
        if not _rows_of(epoch).filter(ends_at__gt=now).update(ends_at=now + LEASE):
            raise PoolOverError
        LimitShare.objects.filter(process=epoch).update(held_until=now + LEASE)


def draw(epoch: str, process: str, orders: Sequence[Order], *, enters: bool, now: datetime) -> list[Draw]:
    """Draws for pools what the orders want, and more; one that `enters` brings what it holds of the rows.

    Raises `PoolOverError`, and what the database raises.
    """
    renew_connections()
    with lock_timeout(WAIT_SECONDS), transaction.atomic(using=LOGS):
        row = _rows_of(epoch).select_for_update().filter(ends_at__gt=now).first()
        if row is None or row.ends_at is None:
            raise PoolOverError
        return [_draw(row.window, row.ends_at, process, order, enters, now) for order in orders]


def _draw(epoch: str, until: datetime, process: str, order: Order, enters: bool, now: datetime) -> Draw:
    window = find_window(order, now)
    drawn = window.drawn - take_back(window, now)
    carried, committed = _carry(window, process, order) if enters else (0, 0)
    pool = LimitShare.objects.filter(limit_window=window, process=epoch).first()
    in_pool = pool.granted if pool else 0
    left = max(0, order.limit - drawn)
    grant = min(left, max(order.want, left // GRANT_DIVISOR)) if order.want else 0
    held = {
        "granted": in_pool + carried + grant,
        "committed": (pool.committed if pool else 0) + committed,
        "held_until": until,
    }
    LimitShare.objects.update_or_create(limit_window=window, process=epoch, defaults=held)
    changes = {"wanted_at": now, "wanted_by": epoch} if order.want and not grant else {}
    LimitWindow.objects.filter(pk=window.pk).update(drawn=drawn + grant, **changes)
    return Draw(carried, committed, grant, drawn - in_pool - carried)


def _carry(window: LimitWindow, process: str, order: Order) -> tuple[int, int]:
    """What the process brings: its share here, or, once that is gone, what stayed drawn of it since it was used."""
    own = LimitShare.objects.filter(limit_window=window, process=process).first()
    if own is None:
        used = min(order.reported, order.granted) if order.window.ends_at is not None else 0
        return used, used
    own.delete()
    return own.granted, own.committed


def end(epoch: str, process: str, holdings: Iterable[Holding], now: datetime) -> None:
    """Ends an epoch for all, and books what this process holds of its pools as its share here.

    Raises what the database raises.
    """
    renew_connections()
    with lock_timeout(WAIT_SECONDS), transaction.atomic(using=LOGS):
        _rows_of(epoch).filter(ends_at__gt=now).update(ends_at=now)
        for each in holdings:
            _carry_back(epoch, process, each, now)


def _carry_back(epoch: str, process: str, holding: Holding, now: datetime) -> None:
    holder, meter, name = holding.place
    window = LimitWindow.objects.select_for_update().filter(holder=holder, meter=meter.value, window=name).first()
    if window is None:
        return
    in_pool = LimitShare.objects.filter(limit_window=window, process=epoch)
    changes = {"granted": F("granted") - holding.held, "committed": F("committed") - holding.in_rows}
    if not in_pool.update(**changes):  # taken back already, but for what is used
        used = holding.in_rows if window.ends_at else 0
        LimitWindow.objects.filter(pk=window.pk).update(drawn=F("drawn") + holding.held - used)
    share, _ = LimitShare.objects.get_or_create(
        limit_window=window, process=process, defaults={"granted": 0, "committed": 0, "held_until": now}
    )
    share.granted, share.committed = share.granted + holding.held, holding.committed
    share.held_until = now + HOLD
    share.save()


def tell(epoch: str, news: Iterable[tuple[Place, int]]) -> None:
    """So much more of each pool is committed. Raises `PoolOverError`, and what the database raises."""
    renew_connections()
    with lock_timeout(WAIT_SECONDS), transaction.atomic(using=LOGS):
        for (holder, meter, name), more in news:
            place = {"limit_window__holder": holder, "limit_window__meter": meter.value, "limit_window__window": name}
            shares = LimitShare.objects.filter(process=epoch, **place)
            if not shares.update(committed=F("committed") + more):
                raise PoolOverError


def _rows_of(epoch: str):  # type: ignore[no-untyped-def]
    return LimitWindow.objects.filter(holder="", meter=EPOCH, window=epoch)
