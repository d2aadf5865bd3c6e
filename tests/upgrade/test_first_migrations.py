"""In each app, the squashed first migration creates the same schema as the migrations that it replaces."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from routing_admin.console.backups.data_transfer.target import Destination
from routing_admin.platform.databases.router import LOGS
from routing_admin.platform.databases.schema import find_leaves
from tests.engines.cluster import find_programs
from tests.engines.databases import database_environment, database_url, drop_database, is_postgresql

EARLIER = [("artifacts", "0001_initial"), ("capabilities", "0001_initial"), ("routing_admin", "0026_label_budgets")]
STATEMENTS = "SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL"
NAMED_BY_POSTGRESQL = re.compile(r"routing_admin_auditevent_number_\w+")


def list_statements(text: str) -> list[list[str]]:
    """Return a schema's statements, normalized so that the order of columns and constraints does not matter."""
    text = NAMED_BY_POSTGRESQL.sub("unique number", text.replace('"', ""))
    return sorted(
        sorted(re.split(r"[\s(,)]*[\n(,)]\s*", statement))
        for statement in text.split(";")
        if "restrict" not in statement
    )


def dump(url: str) -> str:
    """Return the schema as printed by pg_dump, without the daily partitions of the request log."""
    programs = find_programs()
    assert programs is not None
    command = [str(programs / "pg_dump"), "--schema-only", "--exclude-table=*_20??????", url]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.django_db(databases=["default", LOGS])
def test_new_database_has_the_schema_of_the_replaced_migrations(tmp_path: Path) -> None:
    url = database_environment(tmp_path).get("DATABASE_URL", f"sqlite:///{tmp_path}/old.sqlite3")
    old = Destination(url)
    old.make_tables(EARLIER)
    old.make_tables()
    old.close()
    if is_postgresql():
        new = dump(database_url(connections["default"].settings_dict["NAME"]))
        assert list_statements(new) == list_statements(dump(url))
        drop_database(tmp_path)
        return
    for alias, name in (("default", "old.sqlite3"), (LOGS, "old-logs.sqlite3")):
        databases = [sqlite3.connect(tmp_path / name), connections[alias].connection]
        old_schema, new = ["".join(row[0] for row in database.execute(STATEMENTS)) for database in databases]
        assert "CREATE TABLE" in new
        assert list_statements(new) == list_statements(old_schema)


def test_leaf_migrations_are_found_with_some_or_all_replaced_migrations() -> None:
    """`find_leaves` returns the migrations that create the tables for a backup."""
    replacements = MigrationLoader(None).replacements
    applied = [key for migration in replacements.values() for key in migration.replaces]
    assert find_leaves(applied) == find_leaves([*applied, *replacements]) == sorted(replacements)
    assert find_leaves([key for key in applied if key <= EARLIER[-1]]) == [*sorted(replacements)[:2], EARLIER[-1]]
