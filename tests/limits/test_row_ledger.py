"""The ledger of limits in database rows: several processes together can use up a limit, but never exceed it.

The ledger grants parts of a limit, called shares, to processes. Each process then makes reservations from its share in
memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import MOMENT, Booking, Order, Window
from routing_admin.limits.rows import LEASE, RowLedger, list_used
from routing_admin.models import LimitWindow
from routing_admin.platform.databases.router import LOGS

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = Window("2026-11-22", NOW + timedelta(hours=12))
LIMIT = 1000


@dataclass
class Process:
    """A process with its share of a limit: what the ledger granted, and how much of it was used."""

    name: str
    window: Window = DAY
    held: int = 0
    used: int = 0
    reported: int = 0
    ledger: RowLedger = field(default_factory=RowLedger)

    def exchange(self, want: int = 0, give: int = 0, limit: int = LIMIT, now: datetime = NOW) -> Booking:
        meter = Meter.TOKENS_PER_DAY if self.window.ends_at else Meter.IN_FLIGHT
        order = Order("a", meter, self.window, limit, self.held, self.used, self.reported, give, want, 1)
        (booking,) = self.ledger.exchange(self.name, [order], now)
        self.held, self.reported = booking.granted, self.used
        return booking

    def use(self, amount: int) -> int:
        """Use up to `amount`, or less if the ledger does not grant it, and return the amount used."""
        if self.held - self.used < amount:
            self.exchange(want=amount - (self.held - self.used))
        taken = max(0, min(amount, self.held - self.used))
        self.used += taken
        return taken


def spend(*processes: Process) -> int:
    """Let the processes take turns until the limit is used up, and return their total usage."""
    total = 0
    while taken := sum(process.use(7) for process in processes):
        total += taken
    return total


def test_processes_together_reach_a_limit_and_never_exceed_it():
    first, second = Process("1"), Process("2")
    assert spend(first, second) == LIMIT
    assert min(first.used, second.used) > 0
    for process in (first, second):
        process.exchange()
    assert list_used(["a"], NOW)["a", Meter.TOKENS_PER_DAY] == LIMIT


def test_limit_without_shares_has_nothing_in_use() -> None:
    LimitWindow.objects.create(holder="a", meter=Meter.IN_FLIGHT, window="")
    assert list_used(["a"], NOW) == {("a", Meter.IN_FLIGHT): 0}


def test_stopped_process_returns_its_unused_grant():
    first, second = Process("1"), Process("2")
    first.use(500)
    first.exchange(want=300)
    first.ledger.leave("1")
    assert first.used + spend(second) == LIMIT


def test_only_the_reported_usage_of_a_killed_process_remains_after_its_lease():
    killed, other = Process("1"), Process("2")
    killed.use(500)
    killed.exchange(want=500)
    assert other.exchange(want=1).grant == 0
    assert other.exchange(want=LIMIT, now=NOW + LEASE).grant == LIMIT - killed.used


def test_all_slots_of_a_killed_process_are_free_after_its_lease():
    killed, other = Process("1", MOMENT), Process("2", MOMENT)
    killed.exchange(want=4, limit=4)
    killed.used = 4
    killed.exchange(limit=4)
    assert other.exchange(want=1, limit=4).grant == 0
    assert other.exchange(want=4, limit=4, now=NOW + LEASE).grant == 4


def test_process_with_a_grant_is_informed_of_unmet_demand():
    holder, other = Process("1"), Process("2")
    holder.exchange(want=LIMIT)
    assert other.exchange(want=10).grant == 0
    assert holder.exchange(want=1).in_demand
    holder.exchange(give=900)
    assert other.exchange(want=10).grant >= 10


def test_lowered_limit_applies_at_once():
    process = Process("1")
    process.use(100)
    assert process.exchange(want=50, limit=120).grant <= 20


def test_exchange_of_200_orders_needs_about_as_many_statements_as_one_order():
    """A starting process sends many orders at once, so more orders must not need more SQL statements."""
    ledger, counts = RowLedger(), []
    for size in (1, 200):
        orders = [Order(f"{size}:{number}", Meter.TOKENS_PER_DAY, DAY, LIMIT, want=1) for number in range(size)]
        with CaptureQueriesContext(connections[LOGS]) as statements:
            bookings = ledger.exchange("1", orders, NOW)
        # Each exchange grants 1/16 of what is left of the limit (`GRANT_DIVISOR`).
        assert [booking.grant for booking in bookings] == [LIMIT // 16] * size
        counts.append(len(statements))
    assert counts[0] <= 10, counts
    assert counts[1] <= counts[0] + 3, counts  # SQLite accepts 999 parameters per statement.


def test_used_slots_of_a_killed_process_are_granted_again_only_once() -> None:
    """Slots that other processes use are not granted again."""
    killed, living, other = Process("1", MOMENT), Process("2", MOMENT), Process("3", MOMENT)
    for process in (killed, living):
        process.exchange(want=4, limit=9)
        process.used = process.held
        process.exchange(limit=9)
    living.exchange(limit=9, now=NOW + LEASE / 2)
    assert other.exchange(want=9, limit=9, now=NOW + LEASE).drawn == 9
    assert other.held == 9 - living.used
