"""docs/runbook/upgrade.md: upgrading an installation from an earlier release, and reverting the upgrade."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

from tests.gateway.serving import ROOT
from tests.preloaded import run_python
from tests.runbook.installation import Installation

OLD = ROOT / "tests" / "upgrade" / "installations" / "from-2026-11-25.tar.gz"
MIGRATIONS = "SELECT app || name FROM django_migrations ORDER BY id"
OURS = "SELECT name FROM django_migrations WHERE app = 'routing_admin'"
KEYS = "SELECT public_id FROM capabilities_agentkey ORDER BY id"


def rows_in(installation: Installation, query: str) -> list[str]:
    with closing(sqlite3.connect(installation.directory / "routing_admin.sqlite3")) as rows:
        return [value for (value,) in rows.execute(query)]


def test_installation_can_be_upgraded_and_reverted(installation: Installation) -> None:
    shutil.rmtree(installation.directory)
    shutil.unpack_archive(OLD, installation.directory)
    for name in ("keys", "secret_key"):
        (installation.directory / name).chmod(0o600)
    before, keys = rows_in(installation, MIGRATIONS), rows_in(installation, KEYS)
    assert "before the migrations" in installation.play("upgrade", "upgrade")
    assert len(rows_in(installation, MIGRATIONS)) > len(before)
    installation.key = installation.manage("issue_agent_key", "text-agent")
    installation.start()
    assert 'database="sqlite"' in installation.play("upgrade", "over")
    assert installation.number("routing_admin_info", migration=max(rows_in(installation, OURS))) == 1
    assert "Saved to" in installation.play("upgrade", "backup")
    installation.stop()
    assert set(rows_in(installation, KEYS)) > set(keys)
    installation.play("upgrade", "back")
    assert rows_in(installation, KEYS) == keys


def test_database_of_a_newer_release_is_rejected_in_one_line(installation: Installation) -> None:
    with closing(sqlite3.connect(installation.directory / "routing_admin.sqlite3")) as rows, rows:
        rows.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('capabilities', '0999_later', '2030')")
    result = run_python(installation.environment, "manage.py", "serve")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "was migrated by a newer version of this program" in result.stderr
