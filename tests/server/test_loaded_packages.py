"""Packages for features that an installation does not use are not imported at the start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNUSED = ("redis", "psycopg", "obstore", "opentelemetry", "allauth", "genai_prices", "mcp")
PROGRAM = f"import sys, routing_admin.asgi; print([name for name in {UNUSED} if name in sys.modules])"


def test_packages_of_unused_features_are_not_imported(tmp_path: Path) -> None:
    """Packages for Redis, PostgreSQL, S3, tracing and external sign-in are imported only if these are configured."""
    others = ("ROUTING_ADMIN_", "DJANGO", "LLM_", "OTEL_", "DATABASE_URL", "REDIS_URL", "TESTS_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    environment |= {"DJANGO_SETTINGS_MODULE": "routing_admin.settings", "ROUTING_ADMIN_DATA_DIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
