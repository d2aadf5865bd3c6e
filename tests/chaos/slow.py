"""Hold many connections open while sending almost nothing. Other callers must still get answers."""

from __future__ import annotations

import resource
import selectors
import socket
import threading
import time
from collections import Counter

from tests.chaos.callers import Finding, chat, finding
from tests.chaos.installation import installed

PARTIAL_REQUESTS = (
    b"",
    b"GET / HT",
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{",
)
ADDRESSES = 8
"""Half of the connections are from this many source IP addresses other than 127.0.0.1."""
LONGEST = 45.0
"""Seconds after which no connection may still be open."""


def hold_open(count: int) -> Finding:
    """Open many connections at the same time. The server must close all of them in time, and answer calls meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each connection also needs a file descriptor in this process.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * count)), hard))
    finished, statuses, slowest = threading.Event(), Counter[int](), [0.0]
    with installed() as installation, installation.serve() as server:

        def call() -> None:
            number = 0
            while not finished.is_set():
                number += 1
                started = time.monotonic()
                statuses[chat(server, f"beside-{number}").status] += 1
                slowest[0] = max(slowest[0], time.monotonic() - started)

        caller = threading.Thread(target=call)
        caller.start()
        opened = [connect(server.port, number) for number in range(count)]
        ends = read_ends(opened)
        finished.set()
        caller.join()
    losses = [f"{ends['open']} connections are still open after {LONGEST:g} s"] if ends["open"] else []
    losses += [f"{number} calls were answered {status}" for status, number in statuses.items() if status != 200]
    listed = ", ".join(f"{number} × {end}" for end, number in sorted(ends.items()))
    facts = f"{listed}; {statuses[200]} calls answered beside them, the slowest in {slowest[0]:.2f} s"
    return finding("slow connections", f"{count} at once", facts, losses)


def connect(port: int, number: int) -> socket.socket:
    source = f"127.0.0.{2 + number % ADDRESSES}" if number % 2 else "127.0.0.1"
    connection = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    connection.sendall(PARTIAL_REQUESTS[number % len(PARTIAL_REQUESTS)])
    connection.setblocking(False)
    return connection


def read_ends(opened: list[socket.socket]) -> Counter[str]:
    """Count how the connections ended: by status, `closed` without a response, or `open`."""
    selector, ends = selectors.DefaultSelector(), Counter[str]()
    for connection in opened:
        selector.register(connection, selectors.EVENT_READ, [b""])
    until = time.monotonic() + LONGEST
    while selector.get_map() and time.monotonic() < until:
        for key, _ in selector.select(1):
            assert isinstance(key.fileobj, socket.socket)
            try:
                block = key.fileobj.recv(65536)
            except OSError:
                block = b""
            key.data[0] += block
            if not block:
                ends[key.data[0].split(b" ")[1].decode() if key.data[0] else "closed"] += 1
                selector.unregister(key.fileobj)
                key.fileobj.close()
    ends["open"] = len(selector.get_map())
    for key in list(selector.get_map().values()):
        selector.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]
    return ends
