"""What a call does in a thread: reading rows and looking into files, with a short wait for the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from capabilities.fair_slots import heavy_work, requester
from routing_admin.gateway.http import HttpCall
from routing_admin.platform.databases.lock_timeout import in_line, lock_timeout
from routing_admin.platform.databases.router import borrowed_connections
from routing_admin.platform.databases.unavailable import WAIT_SECONDS, is_unavailable
from routing_admin.platform.server.fair_semaphore import slot, threads

T = TypeVar("T")


async def run_in_thread(call: HttpCall, work: Callable[[], T]) -> T:
    """What `work` gives, in any thread where the call allows it, else in the one that Django gave the request."""
    with lock_timeout(WAIT_SECONDS):
        queued = in_line(work)
        if not call.in_own_threads:
            return await sync_to_async(queued)()
        return await asyncio.to_thread(_with_rows, queued)


async def run_in_own_share(call: HttpCall, work: Callable[[], T], *, is_heavy: bool = False) -> T:
    """Return what `work` gives, which may wait for a file's reader: one agent's files never take all threads.

    What `is_heavy` computes alone; raises `OverloadedError` where others do for long.
    """
    async with slot(threads(), requester.get()):
        return await run_in_thread(call, partial(_alone, work) if is_heavy else work)


def _alone(work: Callable[[], T]) -> T:
    with heavy_work().hold():
        return work()


def _with_rows(work: Callable[[], T]) -> T:
    """`work` in a thread that outlives the call, whose database connections are renewed now and then."""
    with borrowed_connections():
        try:
            return work()
        except Exception as error:
            if is_unavailable(error):
                close_old_connections()
            raise
