"""Helpers for tests that start other processes: a free port, and waits with a deadline."""

from __future__ import annotations

import os
import socket
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

RELEASED = os.environ.get("RELEASED", "")
"""The program that `make release` has installed into a separate virtual environment."""
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""The TLS context of HTTP clients that only call this machine.

Reading the public certificates would take 35 ms for each client.
"""
PROGRAM = [str(Path(RELEASED).absolute())] if RELEASED else [sys.executable, "-m", "routing_admin"]


def free_port() -> int:
    """Return a free port that the other workers of pytest-xdist do not choose, even before a server uses it."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
        # Linux gives listeners odd ports only. A worker that replaces a crashed one has a number above the others.
        if port // 2 % workers == worker % workers:
            return port


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until `condition` returns a true value and return it. Raise `AssertionError` on timeout.

    The pause between polls grows with the time waited, because polls of a server cost it time, too.
    """
    started = time.monotonic()
    while not (result := condition()):
        waited = time.monotonic() - started
        assert waited < seconds, f"not true within {seconds} s"
        time.sleep(max(0.02, waited / 20))
    return result


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for_success(url: str, seconds: float = 60) -> None:
    """Wait until a GET request to the URL succeeds."""

    def succeeds() -> bool:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            return False
        return True

    wait_until(succeeds, seconds)
