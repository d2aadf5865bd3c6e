"""`python -m tests.engines [arguments of pytest]`: run the tests that use database rows on a temporary PostgreSQL.

If PostgreSQL is not installed, the program prints how to install it. The run then counts as skipped, or as failed if
CI=true.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.engines.cluster import running_cluster

FILES: Mapping[str, Sequence[str]] = {
    "databases": ("postgresql", "refused_databases", "storable_values", "outages"),
    "configuration": ("revisions", "stamped_cache", "prune", "audit_chain"),
    "request_log": ("journal", "spool", "recording", "logged_refusals"),
    "limits": ("row_ledger", "windows", "several_holders"),
    "upgrade": ("request_endings", "first_migrations"),
    "usage": ("usage", "labels", "equal_counts"),
    "alerts": ("ledger",),
    "gateway": ("chat_plain", "known_keys", "idempotency", "models_files", "limits_on_calls", "budgets_of_labels"),
    "api": (
        "api_artifacts",
        "artifact_actions",
        "quota_and_expiry",
        "agent_quota",
        "store_unavailable",
        "wrong_bodies",
        "racing_writes",
    ),
    "artifacts": ("orphaned_bytes", "get_artifact"),
    "permissions": ("last_administrator",),
    "console": (
        *("requests_pages", "dashboard_pages", "undo", "signin_throttle", "draft_comparison", "revision_effect"),
        "latency_charts",
    ),
}
"""Tests that read, write, count or lock rows, some of them concurrently.

Most page tests are left out, because they make the same queries.
"""


def list_files() -> list[str]:
    return [f"tests/{folder}/test_{name}.py" for folder, names in FILES.items() for name in names]


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Exiting with SystemExit also stops the PostgreSQL server.
    names_files = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    selected = arguments if names_files else [*list_files(), *arguments]
    try:
        with running_cluster() as cluster:
            environment = os.environ | {"TESTS_DATABASE_URL": cluster.make_database("routing_admin")}
            # pytest need not drop the databases, since they are deleted with the cluster. Dropping one would make
            # PostgreSQL wait five seconds if a connection pool is still connected.
            command = [sys.executable, "-m", "pytest", "--reuse-db", *selected]
            return subprocess.run(command, env=environment, check=False).returncode
    except LookupError as error:
        print(f"SKIPPED: the tests on PostgreSQL. {error}.", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
