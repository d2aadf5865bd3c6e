"""Usage that an earlier version counted for an agent still counts after an upgrade.

In the new version, limits belong to holders: agents, agent keys, teams, projects and end users.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor

from capabilities.core.services.agent_limits import Meter
from routing_admin.limits.rows import list_used
from routing_admin.platform.databases.router import LOGS, POSTGRESQL

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def migrate(name: str = "") -> Any:
    """Migrate to the named migration, or to the newest one. Return the models as they are after it."""
    is_whole = connections[LOGS].vendor == POSTGRESQL  # On PostgreSQL, one database has all tables.
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS if is_whole else LOGS])
    newest = executor.loader.graph.leaf_nodes("routing_admin")
    return executor.migrate([("routing_admin", name)] if name else newest).apps


def test_agent_usage_is_migrated_to_limit_holders() -> None:
    """The shares that processes hold are migrated as well."""
    try:
        windows = migrate("0018_attempt_costs").get_model("routing_admin", "LimitWindow").objects.using(LOGS)
        day = {"meter": "tokensPerDay", "window": "2026-11-22", "ends_at": datetime(2026, 11, 23, tzinfo=UTC)}
        row = windows.create(agent="text-agent", drawn=500, **day)
        row.shares.create(process="p", granted=300, committed=200, held_until=NOON)
    finally:
        migrate()
    assert list_used(["agent:text-agent"], NOON) == {("agent:text-agent", Meter.TOKENS_PER_DAY): 400}
