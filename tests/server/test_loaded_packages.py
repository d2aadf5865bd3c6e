"""A starting process does not import packages for features that the installation does not use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNUSED = ("redis", "psycopg", "obstore", "opentelemetry", "allauth", "genai_prices", "mcp")


def imported_packages(tmp_path: Path, statement: str, packages: tuple[str, ...]) -> list[str]:
    """Run the statement in a new process without settings, and return which of the packages it imported."""
    others = ("ROUTING_ADMIN_", "DJANGO", "LLM_", "OTEL_", "DATABASE_URL", "REDIS_URL", "TESTS_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    environment |= {"DJANGO_SETTINGS_MODULE": "routing_admin.settings", "ROUTING_ADMIN_DATA_DIR": str(tmp_path)}
    program = (
        f"import json, sys; {statement}; json.dump([name for name in {packages} if name in sys.modules], sys.stdout)"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    names: list[str] = json.loads(result.stdout)
    return names


def test_packages_of_unused_features_are_not_imported(tmp_path: Path) -> None:
    assert imported_packages(tmp_path, "import routing_admin.asgi", UNUSED) == []


def test_commands_do_not_import_pages_or_the_upstream_client(tmp_path: Path) -> None:
    """Importing pages and the upstream client takes as long as importing everything else that a command needs."""
    start = "import django; django.setup(); import routing_admin.management.command"
    assert (
        imported_packages(tmp_path, start, ("aiohttp", "routing_admin.urls", "routing_admin.console.dashboard.metrics"))
        == []
    )
