"""A migration replaces values that SQLite stores but PostgreSQL rejects. The history of revisions remains valid."""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from capabilities.actors import SYSTEM
from capabilities.core.storable import make_storable
from capabilities.models import Provider
from routing_admin.configuration import integrity
from routing_admin.configuration.revisions import digest
from routing_admin.console.routes.actions import save_alias
from routing_admin.models import Revision

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.sqlite]
migration = import_module("routing_admin.migrations.0033_settled_values")
ODD = {"zero": -0.0, "large": 1e16, "larger": 1e300, "nul": "a\0b", "emoji": "\U0001f600"}


def write_unchecked(table: str, key: str, name: str, **columns: str) -> None:
    """Write values to the database without checks, as an older version did."""
    for column, text in columns.items():
        connection.connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE "{key}" = ?', [text, name])


def test_unstorable_values_of_an_older_version_are_replaced(demo: None) -> None:
    revision = Revision.objects.latest("number")
    value = revision.snapshot
    (echo,) = [provider for provider in value["providers"] if provider["name"] == "echo"]
    echo["extra"], echo["display_name"] = ODD, "e\0cho"
    write_unchecked("capabilities_provider", "name", "echo", extra=json.dumps(ODD), display_name="e\0cho")
    write_unchecked(
        "routing_admin_revision", "number", str(revision.number), snapshot=json.dumps(value), sha256=digest(value)
    )
    assert integrity.history() == []
    migration.settle(apps, SimpleNamespace(connection=connection))
    raw = connection.connection.execute("SELECT extra FROM capabilities_provider WHERE name = 'echo'").fetchone()[0]
    assert json.dumps(json.loads(raw)) == json.dumps(make_storable(ODD))
    assert Provider.objects.get(name="echo").display_name == "e\ufffdcho"
    assert (integrity.history(), integrity.configuration()) == ([], [])
    assert save_alias(SYSTEM, "gpt-4o", "task:default").revision == revision.number + 1
    assert integrity.history() == []


def test_revision_with_a_wrong_digest_stays_invalid(demo: None) -> None:
    revision = Revision.objects.latest("number")
    write_unchecked(
        "routing_admin_revision", "number", str(revision.number), snapshot=json.dumps({**revision.snapshot, "x": -0.0})
    )
    migration.settle(apps, SimpleNamespace(connection=connection))
    assert len(integrity.history()) == 1
