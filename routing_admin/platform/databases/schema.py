"""Applied, unknown and pending migrations of the databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from routing_admin.platform.databases.progress import watch_progress
from routing_admin.platform.databases.router import LOGS

Migration = tuple[str, str]
"""An app label and a migration name."""
OWN_APPS = ("capabilities", "artifacts", "routing_admin")
APPLIED = "SELECT app, name FROM django_migrations ORDER BY id"


class NewerSchemaError(Exception):
    """A newer version of the program migrated the database; the message says which database, and what to do."""


def list_applied(using: str = DEFAULT_DB_ALIAS) -> list[Migration]:
    connection = connections[using]
    if "django_migrations" not in connection.introspection.table_names():
        return []
    with connection.cursor() as cursor:
        cursor.execute(APPLIED)
        return [(app, name) for app, name in cursor.fetchall()]


def list_applied_in_file(path: Path) -> list[Migration]:
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return [(app, name) for app, name in database.execute(APPLIED)]
    finally:
        database.close()


def load_migrations(applied: Iterable[Migration]) -> MigrationLoader:
    """Load the migration graph for a database to which these migrations have been applied.

    If only some of the migrations that a squashed migration replaces are applied, they all remain in the graph.
    """
    loader, known = MigrationLoader(None, replace_migrations=False), set(applied)
    for key, migration in loader.replacements.items():
        if 0 < len(known.intersection(migration.replaces)) < len(migration.replaces):
            loader.graph.remove_replacement_node(key, migration.replaces)
        else:
            loader.graph.remove_replaced_nodes(key, migration.replaces)
    return loader


def find_leaves(applied: Iterable[Migration]) -> list[Migration]:
    """Return the last of these migrations in each branch; migrating to them applies all of them."""
    known = set(applied)
    loader = load_migrations(known)
    known |= {key for key, migration in loader.replacements.items() if known.issuperset(migration.replaces)}
    known_nodes = known & set(loader.graph.nodes)
    parents = ((key, parent.key) for key in known_nodes for parent in loader.graph.node_map[key].parents)
    return sorted(known_nodes - {before for key, before in parents if before[0] == key[0]})


def migrate_until(using: str, leaves: Sequence[Migration]) -> None:
    """Create a new database's tables as of these migrations; Django's command would fail for replaced migrations."""
    executor = MigrationExecutor(connections[using])
    executor.loader = load_migrations(leaves)
    executor.migrate(leaves)
    executor.check_replacements()


def list_unknown(applied: Iterable[Migration]) -> list[Migration]:
    """Return the applied migrations of our own apps that this program lacks."""
    known = {app: _names(app) for app in OWN_APPS}
    return [(app, name) for app, name in applied if app in known and name not in known[app]]


def _names(app: str) -> frozenset[str]:
    folder = Path(apps.get_app_config(app).path) / "migrations"
    return frozenset(path.stem for path in folder.glob("[0-9]*.py"))


@cache
def newest_migration() -> str:
    return max(_names("routing_admin"))


def refuse_newer(applied: Iterable[Migration], subject: str) -> None:
    """Raise `NewerSchemaError` if the program lacks an applied migration; `subject` starts the message."""
    unknown = list_unknown(applied)
    if unknown:
        app, name = unknown[-1]
        raise NewerSchemaError(
            f"{subject} a newer version of this program: this one does not know the migration {app} {name}. "
            "Install that version again, or restore a backup from before it."
        )


def refuse_newer_schema() -> None:
    """Raise `NewerSchemaError` if a newer program migrated one of the databases."""
    for alias in connections:
        try:
            applied = list_applied(alias)
        except DatabaseError:
            # A database that does not answer cannot be checked.
            continue
        refuse_newer(applied, "The database was migrated by")


def list_pending() -> list[Migration]:
    """Return the pending migrations of databases that have been migrated before; new databases have none."""
    found = []
    for alias in connections:
        if list_applied(alias):
            executor = MigrationExecutor(connections[alias])
            found += [
                (migration.app_label, migration.name)
                for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())
            ]
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class _MigrationStatements:
    """Measures the progress of migrations. Each statement is weighted by the number of rows in the table it names."""

    rows: Mapping[str, int]
    total: int
    count: int = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        self.count += max((count for table, count in self.rows.items() if f'{table}"' in sql), default=0)
        return result

    def measure(self) -> int:
        # Cap the count at the total, because an operation may take several statements.
        return min(self.count, self.total) if self.total else self.count


def migrate() -> None:
    """Apply pending migrations and show progress."""
    for alias in (DEFAULT_DB_ALIAS, LOGS):
        weights = _weigh_pending(alias)
        total = sum(rows * times for rows, times in weights.values())
        name = f"Migrations of {alias}, rows" if list_applied(alias) else f"Creating the tables of {alias}"
        statements = _MigrationStatements({table: rows for table, (rows, _) in weights.items()}, total)
        with (
            watch_progress(name, total, statements.measure),
            connections[alias].execute_wrapper(statements),
        ):
            call_command("migrate", database=alias, verbosity=0, interactive=False)


def _weigh_pending(alias: str) -> dict[str, tuple[int, int]]:
    connection = connections[alias]
    if not list_applied(alias):
        return {}
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    names = [
        f"{migration.app_label}_{name}".lower()
        for migration, _ in plan
        for operation in migration.operations
        if (name := getattr(operation, "model_name", None) or getattr(operation, "hints", {}).get("model_name"))
    ]
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        found = {}
        for name in set(names) & tables:
            cursor.execute(f'SELECT count(*) FROM "{name}"')  # noqa: S608  # our models' own names
            found[name] = (cursor.fetchone()[0], names.count(name))
    return found
