"""After an idle period, a call uses the changes that another process made more than a second ago.

The tests set the clock. The other process is a separate connection to the same database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from django.db import DatabaseError, connection, connections

from capabilities.access import Principal, make_key
from routing_admin.configuration import snapshot
from routing_admin.configuration.stamped_cache import StampedCache
from routing_admin.gateway.key_cache import OUTAGE_SECONDS, KeyCache
from tests.gateway.plane import execute_in_other_connection, unreadable_tables

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)

T = TypeVar("T")
CALLERS = 12
# The delay is longer than `FRESH_SECONDS`, so the next call has to read the version stamp.
PAUSE = 5.0
NEXT_STAMP = "UPDATE routing_admin_installation SET version = version + 1"
REVOKED = "UPDATE capabilities_agentkey SET revoked_at = '2026-11-20 00:00:00'"


@dataclass
class Clock:
    """A clock that a test sets and that records which threads have read it."""

    now: float = 1000.0
    threads_asked: set[int] = field(default_factory=set)
    all_have_asked: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> float:
        self.threads_asked.add(threading.get_ident())
        if len(self.threads_asked) >= CALLERS:
            self.all_have_asked.set()
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def newest(clock: Clock) -> StampedCache[snapshot.Snapshot]:
    return StampedCache(snapshot.build, snapshot.stamp, clock)


def run_concurrently(call: Callable[[], T]) -> list[T]:
    results: list[T] = []

    def run() -> None:
        try:
            results.append(call())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def is_admitted(cache: KeyCache, key: str) -> bool:
    return isinstance(cache.authenticate({"authorization": f"Bearer {key}"}), Principal)


def test_one_caller_rebuilds_the_cached_value_for_all_after_an_idle_period(key, clock):
    stamp_reads = []

    def stamp() -> int:
        stamp_reads.append(clock.all_have_asked.wait(60))
        return snapshot.stamp()

    newest = StampedCache(snapshot.build, stamp, clock)
    old = newest.current()
    execute_in_other_connection(
        NEXT_STAMP, "UPDATE routing_admin_taskroute SET temperature = 0.125 WHERE task_type = 'planning'"
    )
    clock.now += PAUSE
    clock.threads_asked.clear()
    snapshots = run_concurrently(newest.current)
    assert {current.stamp for current in snapshots} == {old.stamp + 1}
    assert {current.configuration.route("planning").temperature for current in snapshots} == {0.125}
    assert stamp_reads == [True]


def test_key_revoked_by_another_process_is_rejected_after_an_idle_period(key, clock, newest):
    cache = KeyCache(newest, clock)
    assert is_admitted(cache, key)
    execute_in_other_connection(REVOKED, NEXT_STAMP)
    clock.now += PAUSE
    assert run_concurrently(lambda: is_admitted(cache, key)) == [False] * CALLERS


def test_value_checked_less_than_a_second_ago_needs_no_query(key, newest, django_assert_num_queries):
    newest.current()
    with django_assert_num_queries(0):
        newest.current()


def test_failed_revalidation_keeps_the_cached_value_and_its_age(key, clock, newest):
    old = newest.current()
    with unreadable_tables("routing_admin_alias"):
        execute_in_other_connection(NEXT_STAMP)
        clock.now += PAUSE
        assert newest.current() is old
        since = newest.unread_since()
        assert since is not None
        clock.now += PAUSE
        assert newest.current() is old
        assert newest.unread_since() == since
    clock.now += PAUSE
    assert newest.current().stamp == old.stamp + 1
    assert newest.unread_since() is None


def test_failed_check_is_not_retried_sooner_than_a_successful_check(key, clock, newest, django_assert_num_queries):
    newest.current()
    with unreadable_tables("routing_admin_installation"):
        clock.now += PAUSE
        newest.current()
        with django_assert_num_queries(0):
            newest.current()


def test_revoked_key_is_rejected_even_if_the_configuration_is_unreadable(key, clock, newest):
    cache = KeyCache(newest, clock)
    assert is_admitted(cache, key)
    with unreadable_tables("routing_admin_alias"):
        execute_in_other_connection(REVOKED, NEXT_STAMP)
        clock.now += PAUSE
        assert not is_admitted(cache, key)


def test_known_keys_are_accepted_for_fifteen_minutes_of_a_database_outage(key, clock, newest):
    cache = KeyCache(newest, clock)
    assert is_admitted(cache, key)
    with unreadable_tables("routing_admin_installation", "capabilities_agentkey"):
        clock.now += OUTAGE_SECONDS - 1
        assert is_admitted(cache, key)
        with pytest.raises(DatabaseError):
            is_admitted(cache, make_key()[0])
        clock.now += 2
        with pytest.raises(DatabaseError):
            is_admitted(cache, key)
    clock.now += PAUSE
    assert is_admitted(cache, key)


def test_snapshot_never_mixes_two_revisions(key):
    before = snapshot.build()
    changed = []

    def write_between(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if not changed and "routing_admin_installation" in sql:
            changed.append(sql)
            execute_in_other_connection(NEXT_STAMP, "UPDATE routing_admin_taskroute SET temperature = 0.125")
        return result

    with connection.execute_wrapper(write_between):
        built = snapshot.build()
    assert changed
    assert (built.stamp, built.configuration) == (before.stamp, before.configuration)
    assert snapshot.build().configuration != before.configuration
