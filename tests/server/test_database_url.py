"""`DATABASE_URL` may name another SQLite file. An unsupported engine is rejected with a one-line error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.serving import manage, server_environment
from tests.lab import Lab
from tests.preloaded import run_python

QUERY = """
from django.db import connections
from routing_admin.models import RequestLog
modes = [connection.settings_dict["OPTIONS"]["transaction_mode"] for connection in connections.all()]
print(*modes, RequestLog.objects.count())
"""
"""A program that prints the transaction mode of both databases and the number of logged requests."""


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        ("mysql://user:very-secret@db.example/routing", "mysql"),
        ("very-secret", "none"),
        ("sqlite://very-secret", "sqlite"),
    ],
)
def test_unsupported_database_engine_is_reported_in_one_line(url: str, engine: str, tmp_path: Path) -> None:
    """The error contains no part of the URL, which may include a password."""
    with Lab() as lab:
        environment = server_environment(tmp_path, lab) | {"DATABASE_URL": url}
    for arguments in (("bootstrap",), ("serve", "--port", "0")):
        result = run_python(environment, "manage.py", *arguments)
        (line,) = result.stderr.splitlines()
        assert (result.returncode, result.stdout) == (1, "")
        assert line.startswith(f"DATABASE_URL names an engine that is not served ({engine}).")
        assert "secret" not in line


def test_request_log_is_beside_a_custom_sqlite_file(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "elsewhere"
    other.mkdir()
    with Lab() as lab:
        environment = server_environment(data, lab) | {"DATABASE_URL": f"sqlite:///{other}/ours.sqlite3"}
    manage(environment, "bootstrap", "--no-traffic")
    assert manage(environment, "shell", "--no-imports", "-c", QUERY).split() == ["IMMEDIATE", "IMMEDIATE", "1"]
    assert sorted(path.name for path in other.glob("*.sqlite3")) == ["ours-logs.sqlite3", "ours.sqlite3"]
    assert not list(data.glob("*.sqlite3"))
