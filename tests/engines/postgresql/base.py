"""The database engine of the tests on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from routing_admin.platform.databases.postgresql import base


class DatabaseOperations(base.DatabaseOperations):
    """The product's, but for how a test's rows go."""

    def sql_flush(self, style: Any, tables: Collection[str], **options: Any) -> list[str]:
        """TRUNCATE makes files anew for each table and each of its indexes."""
        deletions = "; ".join(f"DELETE FROM {self.quote_name(table)}" for table in tables)
        return [f"SET session_replication_role = replica; {deletions}; SET session_replication_role = origin"]


class DatabaseWrapper(base.DatabaseWrapper):
    """The product's."""

    ops_class = DatabaseOperations
