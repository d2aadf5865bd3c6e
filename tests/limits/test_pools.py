"""The ledger with Redis: pools there while it answers, rows while it does not, and never more than the limit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.limits.ledger import Booking, Order
from routing_admin.core.limits.shares import MOMENT, Window
from routing_admin.limits.pooled import PooledLedger
from routing_admin.limits.rows import RowLedger, list_used
from routing_admin.platform.redis.link import RedisLink
from tests.engines.redis import RedisServer

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

DAY = Window("2026-11-22", datetime.now(UTC) + timedelta(days=1))
LIMIT = 1000


@dataclass
class Process:
    """A process with a link of its own, and what it holds and uses of one limit."""

    name: str
    ledger: PooledLedger
    link: RedisLink
    window: Window = DAY
    held: int = 0
    used: int = 0
    reported: int = 0
    drawn: int = field(default=0)

    def exchange(self, want: int = 0, give: int = 0, least: int = 1, limit: int = LIMIT) -> Booking:
        order = Order(
            *("a", Meter.TOKENS_PER_DAY if self.window.ends_at else Meter.IN_FLIGHT, self.window, limit),
            *(self.held, self.used, self.reported, give, want, least),
        )
        booking = self.ledger.exchange(self.name, [order], datetime.now(UTC))[0]
        self.held, self.reported, self.drawn = booking.granted, self.used, booking.drawn
        return booking

    def use(self, amount: int) -> int:
        """Uses as much of it as the ledger gives."""
        if self.held - self.used < amount:
            self.exchange(want=amount - (self.held - self.used))
        taken = max(0, min(amount, self.held - self.used))
        self.used += taken
        return taken


@dataclass
class House:
    server: RedisServer
    prefix: str
    now: timedelta = timedelta()

    def process(self, name: str, window: Window = DAY) -> Process:
        link = RedisLink(self.server.url, self.prefix)
        link.beat()
        process = Process(name, PooledLedger(link, RowLedger()), link, window)
        process.exchange()
        process.ledger.beat()
        return process


@pytest.fixture
def house(redis_server: RedisServer, request: pytest.FixtureRequest) -> House:
    """Links to the Redis of all tests, under a name of the test's own."""
    return House(redis_server, f"test:{request.node.name}:{time.monotonic_ns()}")


@pytest.fixture
def own_house(own_redis: RedisServer) -> House:
    """The same, with a Redis that the test may stop."""
    return House(own_redis, "test")


def spend(*processes: Process, each: int = 7) -> int:
    """What all get together, in turns, until nobody gets any."""
    total = 0
    while taken := sum(process.use(each) for process in processes):
        total += taken
    return total


def test_processes_that_draw_from_redis_never_pass_a_limit_and_reach_it(house):
    """All of it is given, and none of it twice."""
    one, two = house.process("1"), house.process("2")
    assert spend(one, two) == LIMIT
    assert one.link.is_up
    assert min(one.used, two.used) > 0


def test_what_is_used_stands_in_the_rows(house):
    """For pages, and for whoever cannot reach Redis."""
    one, two = house.process("1"), house.process("2")
    one.use(100)
    two.use(50)
    for each in (one, two):
        each.exchange()
        each.ledger.publish()
    assert list_used(["a"], datetime.now(UTC))["a", Meter.TOKENS_PER_DAY] == 150


def test_a_process_without_redis_and_one_with_it_share_a_limit(house):
    """A pool is one holder among the rows' others."""
    one, two = house.process("1"), house.process("2")
    two.link.lead_to("")
    total = spend(one, two)
    assert total == LIMIT
    assert min(one.used, two.used) > 0


def test_killed_and_started_anew_redis_loses_and_doubles_nothing(own_house):
    """What was used before, without it and after it is one sum, and never more than the limit."""
    one, two = own_house.process("1"), own_house.process("2")
    before = one.use(100) + two.use(100)
    own_house.server.kill()
    without = one.use(60) + two.use(60)
    assert (before, without, one.link.is_up, two.link.is_up) == (200, 120, False, False)
    own_house.server.start()
    for each in (one, two):
        assert each.link.look() is None
        each.ledger.beat()
    after = spend_until(one, two)
    assert before + without + after == LIMIT


def spend_until(*processes: Process) -> int:
    """What all get together, until the limit is reached: what an epoch had that is over comes back in seconds."""
    total, until = 0, time.monotonic() + 20
    while sum(each.used for each in processes) < LIMIT and time.monotonic() < until:
        total += spend(*processes)
        for each in processes:
            each.ledger.beat()
    return total + spend(*processes)


def test_a_pool_that_redis_drops_is_drawn_anew(house):
    """Whatever it had: what the processes hold counts, and the rest is free again."""
    one, two = house.process("1"), house.process("2")
    used = one.use(100) + two.use(100)
    client = house.server.client()
    client.delete(*client.keys(f"{house.prefix}:pool:*"))
    assert used + spend_until(one, two) == LIMIT


def test_everything_that_redis_had_may_go(house):
    """As when it is emptied while nobody looks."""
    one, two = house.process("1"), house.process("2")
    used = one.use(300) + two.use(300)
    client = house.server.client()
    client.delete(*client.keys(f"{house.prefix}:*"))
    assert used + spend_until(one, two) == LIMIT


def test_one_that_loses_redis_alone_takes_its_share_with_it(house):
    """While the other goes on: neither gets what the other has."""
    one, two = house.process("1"), house.process("2")
    used = one.use(100) + two.use(100)
    one.link.lead_to("redis://127.0.0.1:1")
    assert used + spend_until(one, two) == LIMIT
    assert not one.link.is_up


def test_places_of_calls_under_way_outlive_redis(own_house):
    """A call that holds one goes on holding it, and others get the rest."""
    one, two = own_house.process("1", MOMENT), own_house.process("2", MOMENT)
    assert one.exchange(want=3, limit=4).grant == 3
    one.used = 3
    own_house.server.kill()
    one.ledger.beat()
    granted, until = 0, time.monotonic() + 20
    while not granted and time.monotonic() < until:
        granted = two.exchange(want=1, limit=4).grant
        assert one.exchange(want=1, limit=4).grant + granted <= 1


def test_a_process_that_ends_gives_back_what_is_free(house):
    """At once: the next one has it."""
    one, two = house.process("1"), house.process("2")
    one.use(500)
    one.exchange()
    one.ledger.leave("1")
    assert one.used + spend(two) == LIMIT


def test_who_asked_in_vain_is_heard_by_who_holds_some(house):
    """So that it gives back what is free."""
    one, two = house.process("1"), house.process("2")
    one.exchange(want=LIMIT)
    assert two.exchange(want=10).grant == 0
    assert one.exchange(want=1).in_demand
    one.exchange(give=900)
    assert two.exchange(want=10).grant >= 10


def test_a_lower_limit_holds_for_what_a_pool_has(house):
    """Although the pool drew by the limit of before."""
    one = house.process("1")
    one.use(100)
    assert one.exchange(want=50, limit=120).grant <= 20
