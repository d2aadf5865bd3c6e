"""Registers the project package with Django and fills the ports of the lower apps."""

from django.apps import AppConfig


class RoutingAdminConfig(AppConfig):
    """The app."""

    name = "routing_admin"

    def ready(self) -> None:
        """Connects what `capabilities` and `artifacts` ask upward for (ARCHITECTURE, ports)."""
        from routing_admin.wiring import connect

        connect()
