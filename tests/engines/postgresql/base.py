"""The database engine that the tests use on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from routing_admin.platform.databases.postgresql import base


class DatabaseOperations(base.DatabaseOperations):
    """The product's database operations, but with DELETE instead of TRUNCATE."""

    def sql_flush(self, style: Any, tables: Collection[str], **options: Any) -> list[str]:
        """Delete rows, since TRUNCATE creates new files for each table and index."""
        deletions = "; ".join(f"DELETE FROM {self.quote_name(table)}" for table in tables)
        # In the session role `replica`, no triggers run, so neither foreign keys nor the append-only audit log prevent
        # this.
        return [f"SET session_replication_role = replica; {deletions}; SET session_replication_role = origin"]


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
