"""`python -m tests.engines [pytest's words]`: what touches rows, tested on a PostgreSQL of its own.

Without PostgreSQL on this machine it says how to install it, and counts as skipped; under CI=true as failed.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.engines.cluster import running_cluster

FOLDERS = (
    *("tests/databases", "tests/configuration", "tests/request_log", "tests/limits", "tests/usage", "tests/prices"),
    *("tests/gateway", "tests/api", "tests/engines"),
)
"""Where tests read and write rows, but for pages, which read the same rows by the same queries."""


def main(words: list[str]) -> int:
    """Runs them; pytest's exit status."""
    chosen = words if any(not word.startswith("-") for word in words) else [*FOLDERS, *words]
    try:
        with running_cluster() as cluster:
            environment = os.environ | {"TESTS_DATABASE_URL": cluster.make_database("routing_admin")}
            command = [sys.executable, "-m", "pytest", *chosen]
            return subprocess.run(command, env=environment, check=False).returncode
    except LookupError as problem:
        print(f"SKIPPED: the tests on PostgreSQL. {problem}.", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
