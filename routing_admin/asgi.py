"""The ASGI application that `manage.py serve` runs: Django, and what starts and stops with the process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import connection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
site = get_asgi_application()

from routing_admin.api.mcp.callers import PATH as MCP_PATH  # noqa: E402
from routing_admin.api.mcp.door import McpDoor  # noqa: E402
from routing_admin.configuration import snapshot  # noqa: E402
from routing_admin.configuration.publishing import publisher  # noqa: E402
from routing_admin.console.alerts.watch import watch  # noqa: E402
from routing_admin.console.drills.actions import note_drill_ends  # noqa: E402
from routing_admin.console.services.nightly_rounds import nightly_probes  # noqa: E402
from routing_admin.dispatch.fresh_starts import fresh_starts  # noqa: E402
from routing_admin.dispatch.kept_refusals import kept_refusals  # noqa: E402
from routing_admin.dispatch.send import process_run_context  # noqa: E402
from routing_admin.dispatch.sharing import share_health  # noqa: E402
from routing_admin.gateway.application import DOORS, SLOWEST_READER_SECONDS, answer_call, find_door  # noqa: E402
from routing_admin.gateway.key_cache import cached_principal  # noqa: E402
from routing_admin.gateway.open_streams import open_streams  # noqa: E402
from routing_admin.limits.gate import keeper, ledger  # noqa: E402
from routing_admin.platform.databases.pooling import pool_connections  # noqa: E402
from routing_admin.platform.databases.router import POSTGRESQL, close_pools  # noqa: E402
from routing_admin.platform.redis.link import link  # noqa: E402
from routing_admin.platform.redis.news import news  # noqa: E402
from routing_admin.platform.server import memory  # noqa: E402
from routing_admin.platform.server.body_limit import App, limit_bodies  # noqa: E402  # after Django is ready
from routing_admin.platform.server.cross_origin import share  # noqa: E402
from routing_admin.platform.server.descriptors import descriptor_limit, max_connections  # noqa: E402
from routing_admin.platform.server.draining import draining  # noqa: E402
from routing_admin.platform.server.places import THREADS  # noqa: E402
from routing_admin.platform.server.redis_rounds import RedisRounds  # noqa: E402
from routing_admin.platform.server.rejected_calls import missed_calls  # noqa: E402
from routing_admin.platform.server.request_limit import limit_requests  # noqa: E402
from routing_admin.platform.server.scrapes import answer_scrape, is_metrics_port  # noqa: E402
from routing_admin.platform.server.store_monitor import store_watch  # noqa: E402
from routing_admin.platform.server.upkeep import upkeep  # noqa: E402
from routing_admin.platform.server.url_aliases import meant_path  # noqa: E402
from routing_admin.platform.server.worker_board import board  # noqa: E402
from routing_admin.request_log.journal import journal  # noqa: E402
from routing_admin.request_log.tracing import tracing  # noqa: E402
from routing_admin.request_log.usage_rollups import usage_rollups  # noqa: E402
from routing_admin.upstream import process_upstream, run_sync  # noqa: E402


def agent_of(headers: Mapping[str, str]) -> str:
    """The agent whose key came in a moment ago, empty for everybody else."""
    caller = cached_principal(headers)
    return "" if caller is None else caller.key_owner


SWITCH_SECONDS = 0.001
"""A call gives the interpreter away some ten times, and waits so long for it each time while a thread computes."""
pages = limit_requests(limit_bodies(cast(App, site)), agent_of)
mcp_door = McpDoor()
redis_rounds = RedisRounds(link, news, (ledger.beat,))
tools = limit_requests(limit_bodies(mcp_door), agent_of)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def answer_request(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """Serves a request, or follows the process through its life."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    if is_metrics_port(scope):
        await answer_scrape(scope, send)
        return
    if scope["path"] not in DOORS:
        scope["path"] = meant_path(scope["path"])
    door = find_door(scope) if scope["type"] == "http" else None
    if door is not None:
        await answer_call(door, scope, receive, send)
    elif scope["path"] == MCP_PATH and scope["type"] == "http":
        await tools(scope, receive, limit_slow_readers(send))
    else:
        await pages(scope, receive, limit_slow_readers(send))


application = share(cast(App, answer_request), settings.CORS_ORIGINS)


def limit_slow_readers(send: Send, seconds: float = SLOWEST_READER_SECONDS) -> Send:
    """`send`, which gives up on a caller that takes nothing for so long: its stream ends, and its upstream with it."""

    async def sending(message: Message) -> None:
        async with asyncio.timeout(seconds):
            await send(message)

    return sending


async def lifespan(receive: Receive, send: Send) -> None:
    """Starts the journal's writer, upkeep and other rounds; at the end writes what waits, lets connections go."""
    await receive()
    pool_connections()
    # THREADS of them may wait for files' readers; as many more never do
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * THREADS))
    process_upstream().limit_connections(max_connections(descriptor_limit()))  # each caller needs one at a time
    sys.setswitchinterval(SWITCH_SECONDS)
    memory.settle()
    memory.note_loop()
    tracing.start()
    journal.start()
    board.start()
    kept_refusals.begin()
    looks = (publisher.look, fresh_starts.look, kept_refusals.look, note_drill_ends, missed_calls.write)
    upkeep.further[:] = looks
    upkeep.start()
    share_health(process_run_context(), news)
    redis_rounds.start()
    listener = listen_for_changes()
    nightly_probes.start()
    usage_rollups.start()
    watch.start()
    store_watch.start()
    open_streams.start()
    draining.listen()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await mcp_door.close()
    await process_upstream().close()
    if listener is not None:
        await asyncio.to_thread(listener.stop)
    await asyncio.to_thread(threads_end)
    await send({"type": "lifespan.shutdown.complete"})


def threads_end() -> None:
    """The same for what lives in threads: connections without an event loop, shares of limits, the log, upkeep."""
    nightly_probes.stop()
    usage_rollups.stop()
    watch.stop()
    store_watch.stop()
    open_streams.stop()
    run_sync(process_upstream().close())
    keeper.stop()
    journal.stop()
    board.stop()
    tracing.stop()
    upkeep.stop()
    redis_rounds.stop()
    close_pools()


def listen_for_changes() -> Any:
    """Who hears of other processes' changes at once, where the database tells of them; else None, and upkeep looks."""
    if connection.vendor != POSTGRESQL:
        return None
    from routing_admin.platform.databases.postgresql.notices import Listener

    listener = Listener(snapshot.look)
    listener.start()
    return listener
