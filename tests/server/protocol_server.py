"""An application behind real sockets, served by our protocol in this loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from routing_admin.server.connections import Connections
from routing_admin.server.http_protocol import Protocol


@asynccontextmanager
async def listen(
    app: Any, connections: Connections, state: ServerState, protocol: type[Protocol] = Protocol, **options: Any
) -> AsyncIterator[int]:
    """The port at which it is answered; `options` are uvicorn's."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", **options)
    config.load()
    made = partial(protocol, config, state, {}, connections=connections)
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
