"""What does the settings page need to know? The installation's row, the space that artifacts take, the database."""

from __future__ import annotations

from django.db import connection
from django.db.models import Sum

from artifacts.models import Artifact
from routing_admin.models import Installation


def find_installation() -> Installation:
    """The one row of installation-wide settings, unsaved with its defaults when there is none yet."""
    return Installation.current()


def sum_artifact_sizes() -> int:
    """The size of all artifacts together, in bytes; deleted ones count until they are pruned."""
    return Artifact.objects.aggregate(total=Sum("size"))["total"] or 0


def measure_database() -> int | None:
    """The bytes of a database that a server keeps; None where its files lie in the data directory."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def find_database_name() -> str:
    """The database engine with its version: `SQLite 3.45.1`."""
    return f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"
