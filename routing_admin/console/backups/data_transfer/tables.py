"""The installation's tables, each after the tables that it refers to."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.db import router
from django.db.models import Field, Model

Table = type[Model]


def list_tables(registry: Apps = apps) -> list[Table]:
    """Return all tables, each after the tables that it refers to. Raise `LookupError` for circular references."""
    remaining = [table for table in registry.get_models(include_auto_created=True) if table._meta.managed]
    ordered: list[Table] = []
    while remaining:
        ready = [table for table in remaining if not list_references(table) & set(remaining) - {table}]
        if not ready:
            raise LookupError("Tables refer to one another in a circle.")
        ordered += ready
        remaining = [table for table in remaining if table not in ready]
    return ordered


def list_references(table: Table) -> set[Table]:
    return {field.related_model for field in table._meta.local_fields if isinstance(field.related_model, type)}


def table_alias(table: Table) -> str:
    return router.db_for_read(table)


def list_columns(table: Table) -> list[Field[Any, Any]]:
    return [field for field in table._meta.local_concrete_fields if not getattr(field, "generated", False)]
