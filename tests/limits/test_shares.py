"""Properties of shares: whatever several processes do with a limit, together they never exceed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.ledger import Order, book
from routing_admin.core.limits.shares import GRANT_DIVISOR, Share, Window, size_of_grant

DAY = Window("2026-11-22", datetime(2026, 11, 23, tzinfo=UTC))


@dataclass
class Installation:
    """A ledger and the processes that draw from it, one exchange at a time."""

    limit: int
    drawn: int = 0
    held: dict[int, int] = field(default_factory=dict)
    shares: dict[int, Share] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)

    def share(self, process: int) -> Share:
        return self.shares.setdefault(process, Share(self.limit, DAY))

    def exchange(self, process: int, want: int = 0, give: int = 0) -> None:
        share = self.share(process)
        place = ("agent", Meter.TOKENS_PER_DAY, DAY, self.limit)
        order = Order(*place, share.granted, share.committed, self.told.get(process, 0), give, want, max(1, want))
        booking = book(self.drawn, self.held.get(process), order)
        self.drawn, self.held[process] = booking.drawn, booking.granted
        self.told[process] = share.committed
        self.shares[process] = share.book(booking.granted, booking.drawn, booking.grant)

    def lapse(self, process: int) -> None:
        """End the process's lease: its uncommitted grant returns to the ledger."""
        if process in self.held:
            self.drawn -= self.held.pop(process) - self.told[process]


def test_what_a_call_used_is_never_less_than_nothing():
    """Negative usage counts as zero, since it would refill a budget."""
    assert Share(100, DAY, granted=100, used=40, reserved=10).settle(10, -1_000_000).used == 40


acts = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["call", "end", "fail", "give", "tell"]), st.integers(1, 40)),
    max_size=60,
)


@given(st.integers(1, 200), acts)
def test_calls_that_use_what_they_reserved_or_less_never_pass_a_limit(limit, acts):
    """Three processes that use no more than they reserved never exceed a limit, in any order of events."""
    house = Installation(limit)
    for process, act, amount in acts:
        share = house.share(process)
        if act == "call":
            if share.reserve(amount) is None:
                house.exchange(process, want=amount - share.free)
            house.shares[process] = house.share(process).reserve(amount) or house.share(process)
        elif act == "end":
            ended = min(amount, share.reserved)
            house.shares[process] = share.settle(ended, ended // 2)
        elif act == "fail":
            house.shares[process] = share.settle(min(amount, share.reserved), 0)
        else:
            house.exchange(process, give=max(0, share.free) if act == "give" else 0)
        assert sum(each.committed for each in house.shares.values()) <= limit
        assert house.drawn == sum(house.held.values()) <= limit


@given(st.integers(1, 10_000), st.integers(0, 400), st.integers(0, 400))
def test_what_is_used_beyond_a_reservation_is_booked_whatever_is_left(limit, reserved, more):
    """Usage beyond a reservation is always booked."""
    house = Installation(limit)
    house.exchange(0, want=reserved)
    share = house.share(0).reserve(min(reserved, limit)) or house.share(0)
    used = share.reserved + more
    house.shares[0] = share.settle(share.reserved, used)
    house.exchange(0)
    assert house.drawn >= used
    assert house.share(0).free >= 0


@given(st.integers(10, 10_000), st.integers(1, 400), st.integers(0, 400))
def test_a_process_whose_lease_is_over_books_anew_what_it_used(limit, first, later):
    """After its lease has expired, a process's usage is counted exactly once."""
    house = Installation(limit)
    house.exchange(0, want=min(first, limit))
    house.shares[0] = house.share(0).settle(0, min(first, limit))
    house.exchange(0)
    house.lapse(0)
    house.shares[0] = house.share(0).settle(0, later)
    house.exchange(0)
    assert house.drawn == house.held[0] == min(first, limit) + later


@given(st.integers(1, 10_000), st.integers(0, 10_000), st.integers(1, 500), st.integers(1, 500))
def test_a_grant_is_never_more_than_is_left_and_small_where_little_is(limit, drawn, want, least):
    """A grant is at most what is left, at least what is wanted if available, and more only if much is left."""
    left, grant = limit - drawn, size_of_grant(limit, drawn, want, min(least, want))
    assert 0 <= grant <= max(0, left)
    assert grant == 0 or grant >= min(want, left)
    assert grant <= max(want, left // GRANT_DIVISOR)


def test_a_share_is_extended_once_and_by_its_last_draw():
    """A share is extended once, by its last draw, until the ledger responds and books its use."""
    share = Share(100, DAY).book(10, 10, 10)
    share = share.settle(0, 10)
    extended = share.extend()
    assert extended is not None
    assert (extended.free, extended.extend()) == (10, None)
    assert extended.settle(0, 4).debt == 4
    assert Share(100, DAY).extend() is None
