"""Registers the project package with Django, fills the ports of the lower apps, and guards the audit log."""

from django.apps import AppConfig


class RoutingAdminConfig(AppConfig):
    """The app."""

    name = "routing_admin"

    def ready(self) -> None:
        """Connects what `capabilities` and `artifacts` ask upward for (ARCHITECTURE, ports)."""
        from django.db.models.signals import post_migrate

        from routing_admin.platform.databases.append_only import refuse_changes
        from routing_admin.wiring import connect

        connect()
        post_migrate.connect(refuse_changes, sender=self)
