"""All tables of the installation, ordered by their references."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.db import router
from django.db.models import Field, Model

Table = type[Model]


def list_tables(registry: Apps = apps) -> list[Table]:
    """Return every table after those it refers to; raise `LookupError` for circular references."""
    waiting = [each for each in registry.get_models(include_auto_created=True) if each._meta.managed]
    ordered: list[Table] = []
    while waiting:
        ready = [each for each in waiting if not references_of(each) & set(waiting) - {each}]
        if not ready:
            raise LookupError("Tables refer to one another in a circle.")
        ordered += ready
        waiting = [each for each in waiting if each not in ready]
    return ordered


def references_of(table: Table) -> set[Table]:
    return {each.related_model for each in table._meta.local_fields if isinstance(each.related_model, type)}


def alias_of(table: Table) -> str:
    return router.db_for_read(table)


def columns_of(table: Table) -> list[Field[Any, Any]]:
    return [each for each in table._meta.local_concrete_fields if not getattr(each, "generated", False)]
