"""Triggers by which a database itself refuses to change the audit log, or to take a line of it away.

They are made whenever tables were migrated, since SQLite loses a table's triggers when it is altered. Nothing in the
program goes past them; who owns the database can, and the chain of hashes tells of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections

TABLE = "routing_admin_auditevent"
REFUSAL = "the audit log is append-only"
NAMES = ("audit_no_update", "audit_no_delete", "audit_no_replace")

SQLITE = (
    f"CREATE TRIGGER IF NOT EXISTS audit_no_update BEFORE UPDATE ON {TABLE} "
    f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    f"CREATE TRIGGER IF NOT EXISTS audit_no_delete BEFORE DELETE ON {TABLE} "
    f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    # INSERT OR REPLACE takes a line away without a word to the trigger above
    f"CREATE TRIGGER IF NOT EXISTS audit_no_replace BEFORE INSERT ON {TABLE} "  # noqa: S608
    f"WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE number = NEW.number OR id = NEW.id) "
    f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
)
POSTGRESQL = (
    "CREATE OR REPLACE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$",
    f"DROP TRIGGER IF EXISTS audit_no_update ON {TABLE}",
    f"CREATE TRIGGER audit_no_update BEFORE UPDATE OR DELETE ON {TABLE} "
    "FOR EACH ROW EXECUTE FUNCTION audit_append_only()",
    f"DROP TRIGGER IF EXISTS audit_no_delete ON {TABLE}",
    f"CREATE TRIGGER audit_no_delete BEFORE TRUNCATE ON {TABLE} "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()",
)
STATEMENTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}


def refuse_changes(using: str = "default", **_: Any) -> None:
    """Makes the triggers where the database has the table; again and again is no harm."""
    connection = connections[using]
    if TABLE not in connection.introspection.table_names():
        return
    with connection.cursor() as cursor:
        for statement in STATEMENTS.get(connection.vendor, ()):
            cursor.execute(statement)


def statements_to_allow(vendor: str) -> Sequence[str]:
    """What takes the triggers away again, for whoever empties the tables."""
    if vendor == "postgresql":
        return [f"DROP TRIGGER IF EXISTS {name} ON {TABLE}" for name in NAMES]
    return [f"DROP TRIGGER IF EXISTS {name}" for name in NAMES]


def missing_triggers(using: str = "default") -> list[str]:
    """The triggers that the database should have and has not."""
    connection = connections[using]
    wanted = NAMES if connection.vendor == "sqlite" else NAMES[:2]
    listing = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
    )
    with connection.cursor() as cursor:
        cursor.execute(listing)
        there = {row[0] for row in cursor.fetchall()}
    return [name for name in wanted if name not in there]
