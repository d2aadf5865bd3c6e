"""Several serving processes that share one socket and end together."""

from __future__ import annotations

from uvicorn.supervisors import Multiprocess


class Workers(Multiprocess):
    """uvicorn's supervisor, which also closes the listening socket when it stops its processes.

    Otherwise the socket would accept connections until the last response is sent, and no process would serve them.
    """

    def terminate_all(self) -> None:
        for socket in self.sockets:
            socket.close()
        super().terminate_all()
