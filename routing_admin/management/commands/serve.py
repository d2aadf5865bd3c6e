"""Serves the installation: ASGI, any number of processes, an orderly end on SIGTERM."""

from __future__ import annotations

import logging
import warnings
from contextlib import suppress
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connections

from routing_admin.configuration import integrity
from routing_admin.management import command
from routing_admin.platform.server.resources import find_descriptor_shortage, raise_descriptor_limit
from routing_admin.platform.server.worker_board import shared_folder
from routing_admin.platform.server.workers import Workers

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
"""Longer than nginx and load balancers keep a connection (60 s): it is for them to close one that nobody uses, since a
request that meets our closing cannot be sent to another server."""


class Command(command.Command):
    """The server."""

    help = "Serve the installation until SIGTERM or Ctrl-C; requests in flight are finished first."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to listen, and with how many processes."""
        parser.add_argument("--host", default=settings.HOST, help=f"address to listen on (default {settings.HOST})")
        parser.add_argument("--port", type=int, default=settings.PORT, help=f"port (default {settings.PORT})")
        parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")

    def run(self, **options: Any) -> None:
        """Runs until it is told to stop. Raises `CommandError` where the database has not this version's tables."""
        if missing := integrity.migrations():
            raise CommandError(f"{missing[0]} (and {len(missing) - 2} more). {missing[-1]}")
        for path in integrity.take_back_rights():
            log.warning("%s was readable by others on this machine; now only by its owner", path)
        raise_descriptor_limit()
        if shortage := find_descriptor_shortage():
            log.warning("%s", shortage)
        connections.close_all()  # processes that begin here must not share them
        # WhiteNoise gives small static files as a plain iterator, which costs nothing worth a line in the log.
        warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
        config = uvicorn.Config(
            "routing_admin.asgi:application",
            host=options["host"],
            port=options["port"],
            workers=options["workers"],
            http="routing_admin.platform.server.http_protocol:Protocol",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.TRUSTED_PROXIES > 0,
            timeout_graceful_shutdown=settings.DRAIN_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            lifespan="auto",
        )
        sockets = metrics_sockets(config.port)
        if config.workers > 1:
            with shared_folder():
                Workers(config, [config.bind_socket(), *sockets]).run()
        else:
            self.serve(uvicorn.Server(config), [config.bind_socket(), *sockets] if sockets else None)

    def serve(self, server: uvicorn.Server, sockets: list[socket] | None) -> None:
        """Serves in this process. Raises `CommandError` when it cannot begin to."""
        with suppress(KeyboardInterrupt):  # it has ended in order by then
            server.run(sockets)
        if not server.started:
            raise CommandError("The server could not start. The log names the cause.", returncode=3)


def metrics_sockets(port: int) -> list[socket]:
    """Return the socket at which `/metrics` is served by itself, if any. Raise `CommandError` where it cannot be."""
    if settings.METRICS_PORT is None:
        return []
    found = socket(AF_INET6 if ":" in settings.METRICS_HOST else AF_INET)
    found.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    problem = "the pages have this port" if port == settings.METRICS_PORT else ""
    try:
        if not problem:
            found.bind((settings.METRICS_HOST, settings.METRICS_PORT))
    except (OSError, OverflowError) as error:
        problem = str(error)
    if problem:
        where = f"{settings.METRICS_HOST} port {settings.METRICS_PORT}"
        raise CommandError(
            f"/metrics cannot be served at {where}: {problem}. Set ROUTING_ADMIN_METRICS_PORT to a free port."
        )
    log.info("/metrics is at http://%s:%d/metrics, too", settings.METRICS_HOST, settings.METRICS_PORT)
    return [found]
