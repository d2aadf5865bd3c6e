"""While the ledger is slow, calls wait only if waiting can help. They are rejected only if the limit is used up.

The ledger grants parts of a limit, called shares, to processes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from django.db import InternalError
from psycopg.errors import ReadOnlySqlTransaction

from capabilities.core.services.agent_limits import AgentLimits, Meter
from capabilities.core.services.limit_holders import agent_holder
from routing_admin.core.limits.shares import GRANT_DIVISOR, PERIODS, Booking, Order, Share, Window, book, window_at
from routing_admin.limits.local_quota import LocalQuota, Waiter
from routing_admin.limits.quota_client import QuotaClient
from routing_admin.limits.reservations import LimitReachedError, Reservation

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
LIMIT, CALLS = 1000, 200


@dataclass
class SlowLedger:
    """A ledger that sets `called` at each exchange and blocks until `gate` is set.

    `drawn` is the total of all shares, and `held` is the process's share.
    """

    drawn: int = 0
    held: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    called: threading.Event = field(default_factory=threading.Event)

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        self.called.set()
        self.gate.wait()
        bookings = []
        for order in orders:
            booking = book(self.drawn, self.held, order)
            self.drawn, self.held = booking.drawn, booking.granted
            bookings.append(booking)
        return bookings

    def leave(self, process: str) -> None:
        self.held = 0


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> SlowLedger:
    return SlowLedger()


@pytest.fixture
def keeper(ledger: SlowLedger, clock: Clock):
    client = QuotaClient(ledger, lambda: UTC, lambda: None, clock, lambda: NOON)
    yield client
    ledger.gate.set()
    client.stop()


def begin(keeper: QuotaClient, count: int = CALLS, amount: int = 1) -> list[Window | Waiter]:
    return [keeper.reserve("agent:a", Meter.REQUESTS_PER_MINUTE, LIMIT, amount) for _ in range(count)]


def test_200_concurrent_calls_wait_for_the_ledger_and_are_all_accepted(
    keeper: QuotaClient, ledger: SlowLedger, clock: Clock
):
    waiting = begin(keeper)
    assert keeper.count_waiting() == CALLS
    clock.seconds = 0.9
    assert all(isinstance(waiter, Waiter) and keeper.wait_limit(waiter) > 0 for waiter in waiting)
    ledger.gate.set()
    assert all(isinstance(waiter, Waiter) and waiter.answer.result(60) is not None for waiter in waiting)
    assert keeper.count_waiting() == 0
    clock.seconds = 1.0
    assert [keeper.wait_limit(waiter) for waiter in waiting if isinstance(waiter, Waiter)] == [0.0] * CALLS


def first_share(keeper: QuotaClient, ledger: SlowLedger) -> int:
    """Draw a share, and let the ledger block all later exchanges. Return the unused part of the share."""
    ledger.gate.set()
    (waiter,) = begin(keeper, 1)
    assert isinstance(waiter, Waiter)
    assert waiter.answer.result(60) is not None
    ledger.gate.clear()
    return keeper.find_share("agent:a", Meter.REQUESTS_PER_MINUTE, LIMIT).free


def test_share_is_extended_within_the_limit_before_a_call_is_refused(
    keeper: QuotaClient, ledger: SlowLedger, clock: Clock
):
    free = first_share(keeper, ledger)
    calls = begin(keeper, free + CALLS)
    waiting = [call for call in calls if isinstance(call, Waiter)]
    clock.seconds = 1.5
    accepted = 0
    for waiter in waiting:
        try:
            accepted += keeper.give_up(waiter) is not None
        except TimeoutError:
            break
    # While the ledger is slow, a share may grow by as much as the last grant, 1/16 of the limit (`GRANT_DIVISOR`).
    assert accepted == LIMIT // 16


def test_calls_on_extended_shares_are_logged_in_two_lines_with_their_number(
    keeper: QuotaClient, ledger: SlowLedger, clock: Clock, caplog: pytest.LogCaptureFixture
):
    free = first_share(keeper, ledger)
    waiting = [call for call in begin(keeper, free + 5) if isinstance(call, Waiter)]
    clock.seconds = 1.5
    assert all(keeper.give_up(waiter) is not None for waiter in waiting)
    ledger.gate.set()
    keeper.report()
    messages = [record.getMessage() for record in caplog.records if "extended shares" in record.getMessage()]
    assert messages == [
        "the ledger of limits does not answer in time: calls are let in on extended shares",
        "the ledger of limits answers again: 5 calls used extended shares",
    ]


@dataclass
class ReadOnlyLedger(SlowLedger):
    """A ledger whose database rejects writes during the first `failures` exchanges."""

    failures: int = 5

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        if self.failures:
            self.failures -= 1
            raise InternalError("cannot execute INSERT") from ReadOnlySqlTransaction()
        return super().exchange(process, orders, now)


def test_read_only_ledger_and_its_recovery_are_logged_in_one_line_each(caplog: pytest.LogCaptureFixture):
    ledger = ReadOnlyLedger()
    ledger.gate.set()
    keeper = QuotaClient(ledger, lambda: UTC, lambda: None, Clock(), lambda: NOON)
    (waiter,) = begin(keeper, 1)
    assert isinstance(waiter, Waiter)
    assert waiter.answer.result(60) is not None
    keeper.stop()
    records = [record for record in caplog.records if "drawing shares of limits" in record.getMessage()]
    assert [(record.levelname, record.exc_info) for record in records] == [("ERROR", None), ("WARNING", None)]
    assert "after 5 failed attempts" in records[1].getMessage()


@dataclass
class RecordingLedger(SlowLedger):
    """A ledger that records, for each exchange with a process, the agents whose limits it covered."""

    holders: list[set[str]] = field(default_factory=list)

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        self.holders.append({order.holder for order in orders})
        return super().exchange(process, orders, now)


def test_more_is_drawn_in_advance_once_more_than_half_of_the_last_draw_is_used() -> None:
    window = window_at(PERIODS[Meter.REQUESTS_PER_MINUTE], NOON, UTC)

    def runs_low(used: int, drawn: int = 10) -> bool:
        share = Share(LIMIT, window, granted=10, used=used, drawn=drawn, last=10)
        return LocalQuota("agent:a", Meter.REQUESTS_PER_MINUTE, share).runs_low()

    assert [used for used in range(11) if runs_low(used)] == [6, 7, 8, 9, 10]
    # Near the limit, nothing is drawn in advance, so that other processes can use the rest.
    assert runs_low(10, LIMIT - 2 * GRANT_DIVISOR)
    assert not runs_low(10, LIMIT - 2 * GRANT_DIVISOR + 1)


def test_drawing_a_share_does_not_report_the_usage_of_other_agents() -> None:
    """Otherwise, a call by one agent would also write the rows of all others."""
    ledger = RecordingLedger()
    ledger.gate.set()
    keeper = QuotaClient(ledger, lambda: UTC, lambda: None, Clock(), lambda: NOON)
    for holder in ("agent:a", "agent:b"):
        waiter = keeper.reserve(holder, Meter.REQUESTS_PER_MINUTE, LIMIT, 1)
        assert isinstance(waiter, Waiter)
        window = waiter.answer.result(60)
        assert window is not None
        keeper.settle(holder, Meter.REQUESTS_PER_MINUTE, window, 1, 1)
    assert ledger.holders == [{"agent:a"}, {"agent:b"}]
    keeper.report()
    assert ledger.holders[2:] == [{"agent:a", "agent:b"}]
    keeper.stop()


def test_call_is_not_rejected_while_another_draw_can_help(keeper: QuotaClient, ledger: SlowLedger, clock: Clock):
    free = first_share(keeper, ledger)
    begin(keeper, free)
    (waiter,) = begin(keeper, 1, 10)
    assert isinstance(waiter, Waiter)
    waiter.cell.heard_at = clock.seconds + 0.5
    clock.seconds = 1.0
    assert keeper.give_up(waiter) is not None


async def test_call_is_refused_with_429_when_the_limit_is_used_up(keeper: QuotaClient, ledger: SlowLedger):
    ledger.gate.set()
    holder = agent_holder("a", AgentLimits(maximums={Meter.REQUESTS_PER_MINUTE: 1}))
    assert holder is not None
    await Reservation([holder], keeper).enter(1)
    with pytest.raises(LimitReachedError) as refused:
        await Reservation([holder], keeper).enter(1)
    assert refused.value.status == 429
