"""Run a call's database and file work in threads, with a short lock timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from capabilities.fair_slots import heavy_work, requester
from routing_admin.gateway.http import HttpCall
from routing_admin.platform.databases.lock_timeout import lock_timeout, queued_work
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS, is_unavailable
from routing_admin.platform.server.fair_semaphore import slot, threads
from routing_admin.platform.server.resources import short_switches

T = TypeVar("T")


async def run_in_thread(call: HttpCall, work: Callable[[], T]) -> T:
    """Run `work` in any thread if the call allows it, or else in the thread of Django's request."""
    with lock_timeout(WAIT_SECONDS), short_switches():
        queued = queued_work(work)
        if not call.in_own_threads:
            return await sync_to_async(queued)()
        return await asyncio.to_thread(_with_rows, queued)


async def run_in_own_share(call: HttpCall, work: Callable[[], T], *, is_heavy: bool = False) -> T:
    """Run `work` in a thread from the agent's share of threads, so that one agent's files never occupy all threads.

    With `is_heavy`, wait until no other heavy work runs; raise `OverloadedError` if that takes too long.
    """
    async with slot(threads(), requester.get()):
        return await run_in_thread(call, partial(_alone, work) if is_heavy else work)


def _alone(work: Callable[[], T]) -> T:
    with heavy_work().hold():
        return work()


def _with_rows(work: Callable[[], T]) -> T:
    # These threads outlive the call, so they must renew stale database connections.
    with borrowed_connections():
        try:
            return work()
        except Exception as error:
            if is_unavailable(error):
                # Close the broken connection, so that the next call in this thread opens a new one.
                close_old_connections()
            raise
