"""Fills the ports through which the lower apps ask upward; called once when Django is ready."""

from __future__ import annotations

from capabilities.ports import ports
from routing_admin import snapshot
from routing_admin.receivers import Installed
from routing_admin.revisions import Ledger
from routing_admin.snapshot import first_service


class Routes:
    """Task routes as the lower apps may know them; see `capabilities.ports.Routes`."""

    def exists(self, task_type: str) -> bool:
        """Whether that task type has a route."""
        return snapshot.current().configuration.route(task_type) is not None

    def first_service(self, task_type: str) -> str | None:
        """Id of the service an agent of that route begins with."""
        state = snapshot.current()
        service = first_service(state.configuration, state.keys, task_type)
        return service.id if service else None

    def task_types(self) -> tuple[str, ...]:
        """Every task type that has a route, in order."""
        return tuple(route.task_type for route in snapshot.current().configuration.routes)

    def default_language(self) -> str:
        """The language of descriptions when a request names none."""
        return snapshot.current().configuration.default_language or "en"


def connect() -> None:
    """Connects the ledger, the routes and the snapshot; the dialler connects where calls are made."""
    ports.ledger = Ledger()
    ports.routes = Routes()
    ports.installed = Installed()
