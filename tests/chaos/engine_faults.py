"""Faults of an installation's engines (PostgreSQL, Redis, S3) and processes.

Each fault begins, lasts for some time while calls are sent, and ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from tests.chaos.machines import MACHINES, Machines

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

HOT_TABLES = (
    "routing_admin_requestlog",
    "routing_admin_limitwindow",
    "routing_admin_installation",
    "artifacts_artifact",
)
END_BACKENDS = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'routing_admin'"


@dataclass(frozen=True)
class EngineFault:
    """A fault. It lasts for at least `seconds`, and until its `alert` is sent if it has one.

    The context manager `lasting` causes the fault and ends it. `cuts` is true if the fault can interrupt calls because
    it kills a machine.
    """

    name: str
    lasting: Callable[[Machines], AbstractContextManager[object]]
    seconds: float = 4.0
    alert: str = ""
    cuts: bool = False


@contextmanager
def nothing(_: Machines) -> Iterator[None]:
    yield


@contextmanager
def stopped_database(machines: Machines) -> Iterator[None]:
    machines.cluster.stop()
    try:
        yield
    finally:
        machines.cluster.start()


@contextmanager
def restarted_database(machines: Machines) -> Iterator[None]:
    machines.cluster.stop("immediate")
    machines.cluster.start()
    yield


@contextmanager
def read_only_database(machines: Machines) -> Iterator[None]:
    """Make PostgreSQL reject all writes, as after a failover that leaves connections to the old primary open."""
    _set_read_only(machines, "on")
    try:
        yield
    finally:
        _set_read_only(machines, "off")


def _set_read_only(machines: Machines, value: str) -> None:
    machines.cluster.ask("postgres", f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    machines.cluster.ask("postgres", "SELECT pg_reload_conf()")


@contextmanager
def ended_backends(machines: Machines) -> Iterator[None]:
    """Terminate all of the product's database connections, several times."""
    for _ in range(5):
        machines.cluster.ask("postgres", END_BACKENDS)
        machines.finished.wait(0.3)
    yield


@contextmanager
def exhausted_connections(machines: Machines) -> Iterator[None]:
    connections = []
    try:
        for _ in range(3):
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    connections.append(psycopg.connect(machines.environments[0]["DATABASE_URL"], autocommit=True))
            connections[0].execute(END_BACKENDS)
        yield
    finally:
        for connection in connections:
            connection.close()


@contextmanager
def locked_tables(machines: Machines) -> Iterator[None]:
    """Lock the most used tables from another database connection, so that even reads must wait."""
    with psycopg.connect(machines.environments[0]["DATABASE_URL"]) as connection:
        connection.execute(f"LOCK TABLE {', '.join(HOT_TABLES)} IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()


@contextmanager
def killed_redis(machines: Machines) -> Iterator[None]:
    machines.redis.kill()
    try:
        yield
    finally:
        machines.redis.start()


@contextmanager
def paused_redis(machines: Machines) -> Iterator[None]:
    """Freeze Redis, so that it accepts connections but does not respond."""
    machines.redis.freeze()
    try:
        yield
    finally:
        machines.redis.thaw()


@contextmanager
def flushed_redis(machines: Machines) -> Iterator[None]:
    machines.redis.client().flushall()
    yield


@contextmanager
def hanging_store(machines: Machines) -> Iterator[None]:
    machines.store_proxy.hold()
    try:
        yield
    finally:
        machines.store_proxy.open()


@contextmanager
def stopped_store(machines: Machines) -> Iterator[None]:
    machines.store_proxy.shut()
    try:
        yield
    finally:
        machines.store_proxy.open()


@contextmanager
def killed_worker(machines: Machines) -> Iterator[None]:
    machines.kill_worker()
    yield


@contextmanager
def killed_machine(machines: Machines) -> Iterator[None]:
    machines.kill_last()
    yield


@contextmanager
def rolling_restart(machines: Machines) -> Iterator[None]:
    """Restart one machine after another with SIGTERM. The callers of the stopped machine use another one."""
    for number in range(MACHINES):
        process = machines.servers[number].process
        process.terminate()
        process.wait(timeout=60)
        machines.servers[number] = machines.start(number)
    yield


FAULTS = (
    EngineFault("nothing", nothing),
    EngineFault("PostgreSQL stopped", stopped_database, alert="database"),
    EngineFault("PostgreSQL restarted", restarted_database, 1.0),
    EngineFault("PostgreSQL read-only", read_only_database, alert="database"),
    EngineFault("PostgreSQL backends ended", ended_backends, 1.0),
    EngineFault("PostgreSQL connections exhausted", exhausted_connections),
    EngineFault("PostgreSQL tables locked", locked_tables),
    EngineFault("Redis killed", killed_redis, alert="redis"),
    EngineFault("Redis paused", paused_redis, alert="redis"),
    EngineFault("Redis flushed", flushed_redis, 1.0),
    EngineFault("S3 hanging", hanging_store, 6.0, alert="artifact_store"),
    EngineFault("S3 down", stopped_store, alert="artifact_store"),
    EngineFault("worker killed", killed_worker, 1.0, alert="process_crashed", cuts=True),
    EngineFault("server killed", killed_machine, 1.0, cuts=True),
    EngineFault("rolling restart", rolling_restart, 1.0),
)
