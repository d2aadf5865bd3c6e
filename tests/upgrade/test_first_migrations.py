"""The squashed first migration of each app creates the same schema as the migrations it replaces."""

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
from tests.engines.databases import database_of, drop_database, is_postgresql, url_of

EARLIER = [("artifacts", "0001_initial"), ("capabilities", "0001_initial"), ("routing_admin", "0026_label_budgets")]
STATEMENTS = "SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL"
NAMED_BY_POSTGRESQL = re.compile(r"routing_admin_auditevent_number_\w+")


def list_statements(text: str) -> list[list[str]]:
    """Return the normalized statements of a schema; the order of columns and constraints is ignored."""
    text = NAMED_BY_POSTGRESQL.sub("unique number", text.replace('"', ""))
    return sorted(sorted(re.split(r"[\s(,)]*[\n(,)]\s*", each)) for each in text.split(";") if "restrict" not in each)


def dump(url: str) -> str:
    """Return PostgreSQL's dump of the schema without the daily partitions of the request log."""
    programs = find_programs()
    assert programs is not None
    command = [str(programs / "pg_dump"), "--schema-only", "--exclude-table=*_20??????", url]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.django_db(databases=["default", LOGS])
def test_a_new_database_is_what_the_replaced_migrations_made(tmp_path: Path) -> None:
    """A new database has the same schema as one made by the replaced migrations."""
    url = database_of(tmp_path).get("DATABASE_URL", f"sqlite:///{tmp_path}/old.sqlite3")
    old = Destination(url)
    old.make_tables(EARLIER)
    old.make_tables()
    old.close()
    if is_postgresql():
        new = dump(url_of(connections["default"].settings_dict["NAME"]))
        assert list_statements(new) == list_statements(dump(url))
        drop_database(tmp_path)
        return
    for alias, name in (("default", "old.sqlite3"), (LOGS, "old-logs.sqlite3")):
        there = [sqlite3.connect(tmp_path / name), connections[alias].connection]
        made, new = ["".join(row[0] for row in each.execute(STATEMENTS)) for each in there]
        assert "CREATE TABLE" in new
        assert list_statements(new) == list_statements(made)


def test_what_had_all_replaced_migrations_goes_on_from_the_first_and_what_had_some_from_those() -> None:
    """The tables of a backup are created by the migrations that it had."""
    replacements = MigrationLoader(None).replacements
    had = [key for each in replacements.values() for key in each.replaces]
    assert find_leaves(had) == find_leaves([*had, *replacements]) == sorted(replacements)
    assert find_leaves([key for key in had if key <= EARLIER[-1]]) == [*sorted(replacements)[:2], EARLIER[-1]]
