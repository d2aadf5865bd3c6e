"""Several serving processes that share one socket, and end together."""

from __future__ import annotations

from uvicorn.supervisors import Multiprocess


class Workers(Multiprocess):
    """uvicorn's, which lets go of the socket when the processes are told to end: who comes then is refused at once.

    Held on, it would go on listening for as long as the last answer takes, and nobody would take what it lets in.
    """

    def terminate_all(self) -> None:
        """Tells every process to end, which closes its own share of the socket."""
        for each in self.sockets:
            each.close()
        super().terminate_all()
