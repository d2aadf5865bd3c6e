"""Triggers that make the database reject changes and deletions of audit log rows.

They are created after every migration, because SQLite drops a table's triggers when the table is altered. The program
never bypasses the triggers. The database owner can, but the audit log's hash chain would reveal it.
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
    # INSERT OR REPLACE deletes a row without firing the delete trigger.
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
    """Create the triggers if the table exists; calling this again has no effect."""
    connection = connections[using]
    if TABLE not in connection.introspection.table_names():
        return
    with connection.cursor() as cursor:
        for statement in STATEMENTS.get(connection.vendor, ()):
            cursor.execute(statement)


def statements_to_allow(vendor: str) -> Sequence[str]:
    """Return the SQL statements that drop the triggers, for code that must empty the table."""
    if vendor == "postgresql":
        return [f"DROP TRIGGER IF EXISTS {name} ON {TABLE}" for name in NAMES]
    return [f"DROP TRIGGER IF EXISTS {name}" for name in NAMES]


def missing_triggers(using: str = "default") -> list[str]:
    connection = connections[using]
    expected = NAMES if connection.vendor == "sqlite" else NAMES[:2]
    listing = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
    )
    with connection.cursor() as cursor:
        cursor.execute(listing)
        existing = {row[0] for row in cursor.fetchall()}
    return [name for name in expected if name not in existing]
