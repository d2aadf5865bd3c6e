"""Properties of shares (parts of a limit that the ledger grants to processes). Their total never exceeds the limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.shares import GRANT_DIVISOR, Order, Share, Window, book, grant_size

DAY = Window("2026-11-22", datetime(2026, 11, 23, tzinfo=UTC))


@dataclass
class Installation:
    """A ledger and the processes that draw shares from it. Exchanges do not overlap."""

    limit: int
    drawn: int = 0
    held: dict[int, int] = field(default_factory=dict)
    shares: dict[int, Share] = field(default_factory=dict)
    reported: dict[int, int] = field(default_factory=dict)

    def share(self, process: int) -> Share:
        return self.shares.setdefault(process, Share(self.limit, DAY))

    def exchange(self, process: int, want: int = 0, give: int = 0) -> None:
        share = self.share(process)
        key = ("agent", Meter.TOKENS_PER_DAY, DAY, self.limit)
        order = Order(*key, share.granted, share.committed, self.reported.get(process, 0), give, want, max(1, want))
        booking = book(self.drawn, self.held.get(process), order)
        self.drawn, self.held[process] = booking.drawn, booking.granted
        self.reported[process] = share.committed
        self.shares[process] = share.book(booking.granted, booking.drawn, booking.grant)

    def lapse(self, process: int) -> None:
        """Let a process's lease expire. The ledger gets back the part of its share that was not reported as used."""
        if process in self.held:
            self.drawn -= self.held.pop(process) - self.reported[process]


def test_negative_usage_counts_as_zero():
    """Otherwise, a negative usage would refill a budget."""
    assert Share(100, DAY, granted=100, used=40, reserved=10).settle(10, -1_000_000).used == 40


events = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["call", "end", "fail", "give", "tell"]), st.integers(1, 40)),
    max_size=60,
)


@given(st.integers(1, 200), events)
def test_calls_within_their_reservations_never_exceed_a_limit(limit, events):
    installation = Installation(limit)
    for process, event, amount in events:
        share = installation.share(process)
        if event == "call":
            if share.reserve(amount) is None:
                installation.exchange(process, want=amount - share.free)
            installation.shares[process] = installation.share(process).reserve(amount) or installation.share(process)
        elif event == "end":
            ended = min(amount, share.reserved)
            installation.shares[process] = share.settle(ended, ended // 2)
        elif event == "fail":
            installation.shares[process] = share.settle(min(amount, share.reserved), 0)
        else:
            installation.exchange(process, give=max(0, share.free) if event == "give" else 0)
        assert sum(share.committed for share in installation.shares.values()) <= limit
        assert installation.drawn == sum(installation.held.values()) <= limit


@given(st.integers(1, 10_000), st.integers(0, 400), st.integers(0, 400))
def test_usage_beyond_a_reservation_is_always_booked(limit, reserved, excess):
    installation = Installation(limit)
    installation.exchange(0, want=reserved)
    share = installation.share(0).reserve(min(reserved, limit)) or installation.share(0)
    used = share.reserved + excess
    installation.shares[0] = share.settle(share.reserved, used)
    installation.exchange(0)
    assert installation.drawn >= used
    assert installation.share(0).free >= 0


@given(st.integers(10, 10_000), st.integers(1, 400), st.integers(0, 400))
def test_usage_after_an_expired_lease_is_counted_exactly_once(limit, first, later):
    installation = Installation(limit)
    installation.exchange(0, want=min(first, limit))
    installation.shares[0] = installation.share(0).settle(0, min(first, limit))
    installation.exchange(0)
    installation.lapse(0)
    installation.shares[0] = installation.share(0).settle(0, later)
    installation.exchange(0)
    assert installation.drawn == installation.held[0] == min(first, limit) + later


@given(st.integers(1, 10_000), st.integers(0, 10_000), st.integers(1, 500), st.integers(1, 500))
def test_grant_never_exceeds_the_remaining_limit_and_is_small_if_little_remains(limit, drawn, want, minimum):
    """A grant never exceeds what is left of the limit. It exceeds the wanted amount only if much is left."""
    remaining, grant = limit - drawn, grant_size(limit, drawn, want, min(minimum, want))
    assert 0 <= grant <= max(0, remaining)
    assert grant == 0 or grant >= min(want, remaining)
    assert grant <= max(want, remaining // GRANT_DIVISOR)


def test_share_is_extended_by_its_last_draw_even_after_an_empty_grant():
    share = Share(100, DAY).book(10, 10, 10).book(10, 100, 0)
    assert share.last == 10


def test_share_is_extended_once_by_its_last_draw():
    share = Share(100, DAY).book(10, 10, 10)
    share = share.settle(0, 10)
    extended = share.extend()
    assert extended is not None
    assert (extended.free, extended.extend()) == (10, None)
    assert extended.settle(0, 4).debt == 4
    assert Share(100, DAY).extend() is None
