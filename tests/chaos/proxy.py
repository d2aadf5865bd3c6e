"""A TCP proxy that can close all connections or hold back all bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class BreakableProxy:
    """A TCP proxy that listens on its own port and forwards to another port."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open, self._lock, self._pairs = True, threading.Lock(), set[socket.socket]()
        self._flows = threading.Event()
        self._flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        with self._lock:
            self._open = False
            self._flows.set()
            for connection in self._pairs:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        """Accept connections again, and forward the bytes that were held back."""
        self._open = True
        self._flows.set()

    def hold(self) -> None:
        """Accept connections and bytes without forwarding them, like a server that hangs."""
        self._flows.clear()

    def close(self) -> None:
        self.shut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # accept() fails once the listener is closed.
            while True:
                client, _ = self._listener.accept()
                if self._open:
                    self._connect(client)
                else:
                    client.close()

    def _connect(self, client: socket.socket) -> None:
        try:
            upstream = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        with self._lock:
            self._pairs |= {client, upstream}
        for source, target in ((client, upstream), (upstream, client)):
            threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                self._flows.wait()
                target.sendall(piece)
        for connection in (source, target):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._pairs -= {source, target}


@contextmanager
def proxy_to(port: int) -> Iterator[BreakableProxy]:
    proxy = BreakableProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
