"""Django app configuration of the project package."""

from django.apps import AppConfig


class RoutingAdminConfig(AppConfig):
    name = "routing_admin"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from routing_admin.platform.databases.append_only import refuse_changes
        from routing_admin.wiring import connect

        # `capabilities` and `artifacts` must not import this package, so `connect` hands them the functions that they
        # need.
        connect()
        # Recreate the triggers after each migration, because SQLite drops a table's triggers when the table is altered.
        post_migrate.connect(refuse_changes, sender=self)
