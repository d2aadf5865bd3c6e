"""Queries for the settings page: the installation, the space of artifacts, the database."""

from __future__ import annotations

from django.db import connection
from django.db.models import Sum

from artifacts.models import Artifact
from routing_admin.models import Installation


def find_installation() -> Installation:
    """Return the installation's row, unsaved and with defaults if there is none yet."""
    return Installation.current()


def sum_artifact_sizes() -> int:
    """Return the total size of all artifacts in bytes. Deleted artifacts count until they are pruned."""
    return Artifact.objects.aggregate(total=Sum("size"))["total"] or 0


def measure_database() -> int | None:
    """Return the size of the database in bytes, or None for SQLite, whose files are in the data directory."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def find_database_name() -> str:
    return f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"
