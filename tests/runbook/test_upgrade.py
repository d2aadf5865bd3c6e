"""docs/runbook/upgrade.md: upgrading an installation of an earlier release, and going back."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

from tests.gateway.serving import ROOT
from tests.runbook.installation import Installation

OLD = ROOT / "tests" / "upgrade" / "installations" / "before-the-rooms.tar.gz"
MIGRATIONS = "SELECT app || name FROM django_migrations ORDER BY id"
OURS = "SELECT name FROM django_migrations WHERE app = 'routing_admin'"
KEYS = "SELECT public_id FROM capabilities_agentkey ORDER BY id"


def rows_in(own: Installation, query: str) -> list[str]:
    with closing(sqlite3.connect(own.directory / "routing_admin.sqlite3")) as rows:
        return [value for (value,) in rows.execute(query)]


def test_an_installation_is_upgraded_and_brought_back(own: Installation) -> None:
    """`restore` returns to the backup made before the migrations; until then the new release is served."""
    shutil.rmtree(own.directory)
    shutil.unpack_archive(OLD, own.directory)
    for name in ("keys", "secret_key"):
        (own.directory / name).chmod(0o600)
    before, keys = rows_in(own, MIGRATIONS), rows_in(own, KEYS)
    assert "before the migrations" in own.play("upgrade", "upgrade")
    assert len(rows_in(own, MIGRATIONS)) > len(before)
    own.key = own.manage("issue_agent_key", "text-agent")
    own.start()
    assert 'database="sqlite"' in own.play("upgrade", "over")
    assert own.number("routing_admin_info", migration=max(rows_in(own, OURS))) == 1
    assert "Saved to" in own.play("upgrade", "backup")
    own.stop()
    assert set(rows_in(own, KEYS)) > set(keys)
    own.play("upgrade", "back")
    assert rows_in(own, KEYS) == keys


def test_tables_of_a_newer_release_are_refused_in_a_line(own: Installation) -> None:
    """The command exits with status 1 and one line of advice, and changes nothing."""
    with closing(sqlite3.connect(own.directory / "routing_admin.sqlite3")) as rows, rows:
        rows.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('capabilities', '0999_later', '2030')")
    words = [sys.executable, "manage.py", "serve"]
    done = subprocess.run(words, cwd=ROOT, env=own.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "was migrated by a newer version of this program" in done.stderr
