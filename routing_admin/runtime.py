"""Start the background parts of a server process in order, and stop them in reverse order when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from django.db import connection

from capabilities.runtime import owned, runtime
from routing_admin.api.mcp.application import McpApp
from routing_admin.configuration import snapshot
from routing_admin.configuration.publishing import hints, publisher
from routing_admin.console.alerts.conditions import watch
from routing_admin.console.drills.actions import record_drill_ends
from routing_admin.console.services.nightly import nightly_probes
from routing_admin.dispatch.cooldown_resets import cooldown_resets
from routing_admin.dispatch.send import process_run_context, share_health
from routing_admin.dispatch.stored_refusals import stored_refusals
from routing_admin.gateway.open_streams import open_streams
from routing_admin.limits.reservations import keeper
from routing_admin.platform.databases.explaining import pool_connections
from routing_admin.platform.databases.router import POSTGRESQL, close_pools
from routing_admin.platform.redis.link import link
from routing_admin.platform.server import resources
from routing_admin.platform.server.draining import draining
from routing_admin.platform.server.fair_semaphore import THREADS
from routing_admin.platform.server.redis_rounds import RedisRounds
from routing_admin.platform.server.rejected_calls import rejected_calls
from routing_admin.platform.server.resources import descriptor_limit, max_connections
from routing_admin.platform.server.store_monitor import store_monitor
from routing_admin.platform.server.upkeep import Upkeep
from routing_admin.platform.server.worker_board import board
from routing_admin.request_log.journal import journal
from routing_admin.request_log.tracing import tracing
from routing_admin.request_log.usage_rollups import usage_rollups
from routing_admin.upstream import process_upstream, run_sync

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

mcp_app = owned(McpApp)
upkeep = owned(
    lambda: Upkeep(
        first=[snapshot.current, snapshot.look],
        further=[
            publisher().look,
            cooldown_resets().look,
            stored_refusals().look,
            record_drill_ends,
            rejected_calls().write,
        ],
    )
)
redis_rounds = owned(lambda: RedisRounds(link(), hints()))


class Part(Protocol):
    """A part of the server process that runs in the background."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


async def lifespan(receive: Receive, send: Send) -> None:
    """Start the background parts and run until the server stops.

    At the end, stop the parts, so that they write what is still queued, and close connections.
    """
    await receive()
    pool_connections()
    # Work on files may occupy up to `THREADS` threads. Provide twice as many, so that the others are free for short
    # work.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * THREADS))
    # Each caller needs at most one upstream connection at a time.
    process_upstream().limit_connections(max_connections(descriptor_limit()))
    resources.settle()
    resources.note_loop()
    runtime().at_end(close_pools)
    stored_refusals().begin()
    share_health(process_run_context(), hints())
    run_until_end(redis_rounds(), upkeep(), tracing(), board(), journal())
    runtime().at_end(keeper().stop)
    runtime().at_end(lambda: run_sync(process_upstream().close()))
    listener = listen_for_changes()
    run_until_end(open_streams(), store_monitor(), watch(), usage_rollups(), nightly_probes())
    draining().listen()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await mcp_app().close()
    await process_upstream().close()
    if listener is not None:
        await asyncio.to_thread(listener.stop)
    await asyncio.to_thread(runtime().stop)
    await send({"type": "lifespan.shutdown.complete"})


def run_until_end(*parts: Part) -> None:
    for part in parts:
        part.start()
        # On shutdown, the runtime calls these functions in reverse order.
        runtime().at_end(part.stop)


def listen_for_changes() -> Any:
    """Listen for other processes' changes if the database sends notifications.

    With other databases, `upkeep` polls for changes.
    """
    if connection.vendor != POSTGRESQL:
        return None
    # This imports psycopg, which is needed only for PostgreSQL.
    from routing_admin.platform.databases.postgresql.notices import Listener

    listener = Listener(snapshot.look)
    listener.start()
    return listener
