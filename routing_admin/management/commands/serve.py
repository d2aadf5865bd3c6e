"""Serve the installation over ASGI with any number of processes, and stop gracefully on SIGTERM."""

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
from uvicorn.supervisors import Multiprocess

from routing_admin.configuration import integrity
from routing_admin.management import command
from routing_admin.platform.server.draining import find_other_version
from routing_admin.platform.server.resources import find_descriptor_shortage, raise_descriptor_limit
from routing_admin.platform.server.worker_board import shared_folder


class Workers(Multiprocess):
    """uvicorn's supervisor, extended to close the listening socket when it stops its worker processes.

    Otherwise the socket would accept connections until the last response is sent, but no process would serve them.
    """

    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()
        super().terminate_all()


log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
"""How long idle connections stay open, in seconds: longer than in nginx and load balancers (60 s), so that these close
connections first. If the server closed a connection while a proxy was sending a request on it, the request would be
lost, because the proxy cannot safely repeat it.
"""


class Command(command.Command):
    help = "Serve the installation until SIGTERM or Ctrl-C; requests in flight are finished first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help=f"address to listen on (default {settings.HOST})")
        parser.add_argument("--port", type=int, default=settings.PORT, help=f"port (default {settings.PORT})")
        parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")

    def run(self, **options: Any) -> None:
        """Serve until stopped.

        Raise `CommandError` if the database lacks tables of this version, or if another version serves the data
        directory.
        """
        if missing := integrity.migrations():
            more = len(missing) - 2
            raise CommandError(f"{missing[0]}{f' (and {more} more)' if more else ''}. {missing[-1]}")
        if other := find_other_version():
            raise CommandError(
                f"Version {other} serves this data directory, {settings.DATA_DIR}. Stop it first: two versions must "
                "not write there at once."
            )
        for path in integrity.restrict_permissions():
            log.warning("%s was readable by others on this machine; now only by its owner", path)
        raise_descriptor_limit()
        if shortage := find_descriptor_shortage():
            log.warning("%s", shortage)
        connections.close_all()  # Worker processes must not share connections.
        # WhiteNoise streams small static files from a synchronous iterator, and the warning about this is not useful.
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
        """Run the server in this process; raise `CommandError` if it cannot start."""
        with suppress(KeyboardInterrupt):  # On Ctrl-C the server has already shut down gracefully.
            server.run(sockets)
        if not server.started:
            raise CommandError("The server could not start. The log names the cause.", returncode=3)


def metrics_sockets(port: int) -> list[socket]:
    """Return the separate socket for `/metrics`, if one is configured; raise `CommandError` if it cannot be bound."""
    if settings.METRICS_PORT is None:
        return []
    found = socket(AF_INET6 if ":" in settings.METRICS_HOST else AF_INET)
    # SO_REUSEADDR lets a restarted server bind the port immediately.
    found.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    problem = "the pages have this port" if port == settings.METRICS_PORT else ""
    try:
        if not problem:
            found.bind((settings.METRICS_HOST, settings.METRICS_PORT))
    except (OSError, OverflowError) as error:
        problem = str(error)
    if problem:
        address = f"{settings.METRICS_HOST} port {settings.METRICS_PORT}"
        raise CommandError(
            f"/metrics cannot be served at {address}: {problem}. Set ROUTING_ADMIN_METRICS_PORT to a free port."
        )
    log.info("/metrics is at http://%s:%d/metrics, too", settings.METRICS_HOST, settings.METRICS_PORT)
    return [found]
