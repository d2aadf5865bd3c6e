"""The ledger in database rows: several processes reach a limit together and never exceed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.ledger import Booking, Order
from routing_admin.core.limits.shares import MOMENT, Window
from routing_admin.limits.rows import LEASE, RowLedger, list_used
from routing_admin.platform.databases.router import LOGS

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = Window("2026-11-22", NOW + timedelta(hours=12))
LIMIT = 1000


@dataclass
class Process:
    """A process's grant and use of one limit."""

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
        """Use up to `amount`, as far as the ledger grants it."""
        if self.held - self.used < amount:
            self.exchange(want=amount - (self.held - self.used))
        taken = max(0, min(amount, self.held - self.used))
        self.used += taken
        return taken


def spend(*processes: Process) -> int:
    """Return the total that all processes get when they use the limit in turns until it is exhausted."""
    total = 0
    while taken := sum(process.use(7) for process in processes):
        total += taken
    return total


def test_processes_together_reach_a_limit_and_never_pass_it():
    one, two = Process("1"), Process("2")
    assert spend(one, two) == LIMIT
    assert min(one.used, two.used) > 0
    for each in (one, two):
        each.exchange()
    assert list_used(["a"], NOW)["a", Meter.TOKENS_PER_DAY] == LIMIT


def test_a_process_that_ends_gives_back_what_is_free():
    one, two = Process("1"), Process("2")
    one.use(500)
    one.exchange(want=300)
    one.ledger.leave("1")
    assert one.used + spend(two) == LIMIT


def test_a_killed_process_keeps_only_what_it_reported_once_its_lease_is_over():
    one, two = Process("1"), Process("2")
    one.use(500)
    one.exchange(want=500)
    assert two.exchange(want=1).grant == 0
    assert two.exchange(want=LIMIT, now=NOW + LEASE).grant == LIMIT - one.used


def test_places_of_a_killed_process_are_all_free_once_its_lease_is_over():
    one, two = Process("1", MOMENT), Process("2", MOMENT)
    one.exchange(want=4, limit=4)
    one.used = 4
    one.exchange(limit=4)
    assert two.exchange(want=1, limit=4).grant == 0
    assert two.exchange(want=4, limit=4, now=NOW + LEASE).grant == 4


def test_a_process_that_holds_some_hears_of_another_that_asked_in_vain():
    one, two = Process("1"), Process("2")
    one.exchange(want=LIMIT)
    assert two.exchange(want=10).grant == 0
    assert one.exchange(want=1).in_demand
    one.exchange(give=900)
    assert two.exchange(want=10).grant >= 10


def test_a_lowered_limit_holds_at_once():
    one = Process("1")
    one.use(100)
    assert one.exchange(want=50, limit=120).grant <= 20


def test_an_exchange_takes_hardly_more_statements_for_200_orders_than_for_one():
    """An exchange needs about as many statements for 200 orders as for one, since a starting server sends many."""
    ledger, counts = RowLedger(), []
    for size in (1, 200):
        orders = [Order(f"{size}:{number}", Meter.TOKENS_PER_DAY, DAY, LIMIT, want=1) for number in range(size)]
        with CaptureQueriesContext(connections[LOGS]) as statements:
            bookings = ledger.exchange("1", orders, NOW)
        # A draw grants 1/16 of what is left (`GRANT_DIVISOR`).
        assert [booking.grant for booking in bookings] == [LIMIT // 16] * size
        counts.append(len(statements))
    assert counts[0] <= 10, counts
    assert counts[1] <= counts[0] + 3, counts  # SQLite accepts 999 parameters per statement
