"""A slow ledger: calls wait only as long as it helps, and only the limit itself rejects them."""

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
from routing_admin.core.limits.ledger import Booking, Order, book
from routing_admin.core.limits.shares import Window
from routing_admin.limits.local_quota import Waiter
from routing_admin.limits.quota_client import QuotaClient
from routing_admin.limits.reservations import LimitReachedError, Reservation

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
LIMIT, CALLS = 1000, 200


@dataclass
class SlowLedger:
    """Ledger that responds when `gate` is set; `drawn` is the total of all processes, `asked` is set by a request."""

    drawn: int = 0
    held: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        self.asked.set()
        self.gate.wait()
        found = []
        for order in orders:
            booking = book(self.drawn, self.held, order)
            self.drawn, self.held = booking.drawn, booking.granted
            found.append(booking)
        return found

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
    made = QuotaClient(ledger, lambda: UTC, lambda: None, clock, lambda: NOON)
    yield made
    ledger.gate.set()
    made.stop()


def begin(keeper: QuotaClient, count: int = CALLS, amount: int = 1) -> list[Window | Waiter]:
    return [keeper.reserve("agent:a", Meter.REQUESTS_PER_MINUTE, LIMIT, amount) for _ in range(count)]


def test_200_calls_at_once_wait_for_most_of_a_second_and_are_all_let_in(
    keeper: QuotaClient, ledger: SlowLedger, clock: Clock
):
    """200 concurrent calls wait 0.9 s for the ledger, and none is rejected."""
    waiting = begin(keeper)
    assert keeper.count_waiting() == CALLS
    clock.seconds = 0.9
    assert all(isinstance(each, Waiter) and keeper.patience(each) > 0 for each in waiting)
    ledger.gate.set()
    assert all(isinstance(each, Waiter) and each.answer.result(60) is not None for each in waiting)
    assert keeper.count_waiting() == 0
    clock.seconds = 1.0
    assert [keeper.patience(each) for each in waiting if isinstance(each, Waiter)] == [0.0] * CALLS


def first_share(keeper: QuotaClient, ledger: SlowLedger) -> int:
    """Draw a first share, then block the ledger; return what is free."""
    ledger.gate.set()
    (waiter,) = begin(keeper, 1)
    assert isinstance(waiter, Waiter)
    assert waiter.answer.result(60) is not None
    ledger.gate.clear()
    return keeper.share_of("agent:a", Meter.REQUESTS_PER_MINUTE, LIMIT).free


def test_a_share_grows_within_the_limit_before_a_call_is_refused(keeper: QuotaClient, ledger: SlowLedger, clock: Clock):
    """Without a response of the ledger a share is extended once; calls beyond it get an error that allows a retry."""
    free = first_share(keeper, ledger)
    found = begin(keeper, free + CALLS)
    waiting = [each for each in found if isinstance(each, Waiter)]
    clock.seconds = 1.5
    let_in = 0
    for each in waiting:
        try:
            let_in += keeper.give_up(each) is not None
        except TimeoutError:
            break
    # An extension is as large as the last draw, which was 1/16 of the limit (`GRANT_DIVISOR`).
    assert let_in == LIMIT // 16


def test_calls_on_extended_shares_are_two_lines_with_their_number(
    keeper: QuotaClient, ledger: SlowLedger, clock: Clock, caplog: pytest.LogCaptureFixture
):
    """Extended shares are logged in two lines, at the first call and when the ledger responds again."""
    free = first_share(keeper, ledger)
    waiting = [each for each in begin(keeper, free + 5) if isinstance(each, Waiter)]
    clock.seconds = 1.5
    assert all(keeper.give_up(each) is not None for each in waiting)
    ledger.gate.set()
    keeper.report()
    said = [each.getMessage() for each in caplog.records if "extended shares" in each.getMessage()]
    assert said == [
        "the ledger of limits does not answer in time: calls are let in on extended shares",
        "the ledger of limits answers again: 5 calls used extended shares",
    ]


@dataclass
class ReadOnlyLedger(SlowLedger):
    """Ledger in a read-only database for a number of exchanges."""

    failures: int = 5

    def exchange(self, process: str, orders: Sequence[Order], now: datetime) -> list[Booking]:
        if self.failures:
            self.failures -= 1
            raise InternalError("cannot execute INSERT") from ReadOnlySqlTransaction()
        return super().exchange(process, orders, now)


def test_a_ledger_that_only_reads_is_one_line_and_another_when_it_takes_writes(caplog: pytest.LogCaptureFixture):
    """A read-only ledger is logged in one line, and its recovery in another."""
    ledger = ReadOnlyLedger()
    ledger.gate.set()
    keeper = QuotaClient(ledger, lambda: UTC, lambda: None, Clock(), lambda: NOON)
    (waiter,) = begin(keeper, 1)
    assert isinstance(waiter, Waiter)
    assert waiter.answer.result(60) is not None
    keeper.stop()
    said = [each for each in caplog.records if "drawing shares of limits" in each.getMessage()]
    assert [(each.levelname, each.exc_info) for each in said] == [("ERROR", None), ("WARNING", None)]
    assert "after 5 failed attempts" in said[1].getMessage()


def test_a_call_is_told_of_a_limit_only_where_the_limit_has_not_so_much_left(
    keeper: QuotaClient, ledger: SlowLedger, clock: Clock
):
    """A call is not rejected with 429 while another draw can help."""
    free = first_share(keeper, ledger)
    begin(keeper, free)
    (waiter,) = begin(keeper, 1, 10)
    assert isinstance(waiter, Waiter)
    waiter.cell.heard_at = clock.seconds + 0.5
    clock.seconds = 1.0
    assert keeper.give_up(waiter) is not None


async def test_a_call_that_the_limit_has_nothing_left_for_is_refused_with_429(keeper: QuotaClient, ledger: SlowLedger):
    """A call is rejected with 429 as soon as the ledger responds that nothing is left."""
    ledger.gate.set()
    holder = agent_holder("a", AgentLimits(most={Meter.REQUESTS_PER_MINUTE: 1}))
    assert holder is not None
    await Reservation([holder], keeper).enter(1)
    with pytest.raises(LimitReachedError) as refused:
        await Reservation([holder], keeper).enter(1)
    assert refused.value.status == 429
