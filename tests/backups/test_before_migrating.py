"""Both databases are backed up before migrations. A database migrated by a newer version is rejected."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from routing_admin.console.backups import saving
from tests.gateway.serving import ROOT
from tests.preloaded import run_python

OLD = ROOT / "tests" / "upgrade" / "installations" / "before-the-rooms.tar.gz"


@dataclass(frozen=True)
class Upgraded:
    """An installation of the earliest version after `bootstrap`, the command's output, and the migrations before it."""

    folder: Path
    output: str
    before: list[tuple[str, str]]


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Upgraded:
    """Upgrade an installation that has backups from earlier upgrades, one of them unfinished. Tests copy its folder."""
    folder = tmp_path_factory.mktemp("upgraded") / "old"
    shutil.unpack_archive(OLD, folder)
    for name in ("keys", "secret_key"):
        (folder / name).chmod(0o600)
    for name in ("20200101T000000-a", "20200102T000000-b", "20200103T000000-c", "20200104T000000-d.part"):
        (folder / "backups" / name).mkdir(parents=True)
    before = applied_migrations(folder / "routing_admin.sqlite3")
    return Upgraded(folder, run(folder, "bootstrap"), before)


@pytest.fixture(scope="module")
def newer_installation(upgraded: Upgraded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an installation whose database a newer version of the program has migrated. Every command rejects it."""
    folder = tmp_path_factory.mktemp("newer") / "old"
    shutil.copytree(upgraded.folder, folder)
    with closing(sqlite3.connect(folder / "routing_admin.sqlite3")) as rows, rows:
        rows.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('capabilities', '0999_later', '2030')")
    return folder


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run a management command and check its exit code. Return its stdout, or its stderr if `code` is not 0."""
    own = {"ROUTING_ADMIN_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "routing_admin.settings"}
    result = run_python({**os.environ, **own}, "manage.py", *arguments)
    assert result.returncode == code, result.stderr
    return result.stderr if code else result.stdout


def applied_migrations(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as rows:
        return rows.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()


def test_databases_are_backed_up_before_migrations_and_can_be_restored(upgraded: Upgraded, tmp_path: Path) -> None:
    assert "before the migrations" in upgraded.output
    installation = tmp_path / "old"
    shutil.copytree(upgraded.folder, installation)
    *_, copy = sorted((installation / "backups").iterdir())
    assert applied_migrations(copy / "routing_admin.sqlite3") == upgraded.before
    run(installation, "restore", str(copy), "--replace")
    assert "ok   history" in run(installation, "doctor")


def test_only_the_last_three_backups_before_migrations_are_kept(upgraded: Upgraded, tmp_path: Path) -> None:
    """Older and unfinished backups are deleted, because they would fill the disk."""
    installation = tmp_path / "old"
    shutil.copytree(upgraded.folder, installation)
    names = sorted(path.name for path in (installation / "backups").iterdir())
    assert names[:2] == ["20200102T000000-b", "20200103T000000-c"]
    assert len(names) == 3
    (installation / "backups" / ".20200105T000000-e.part").mkdir()
    assert "before the migrations" not in run(installation, "bootstrap")
    assert sorted(path.name for path in (installation / "backups").iterdir()) == names


@pytest.mark.django_db(databases=["default", "logs"])
def test_migration_is_rejected_without_disk_space_for_its_backup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "list_pending", lambda: [("routing_admin", "0999_later")])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(CommandError, match=r"\d+ bytes needed, 1000 free\. Free up space, or skip the backup"):
        call_command("bootstrap")


@pytest.mark.parametrize("arguments", [("serve",), ("bootstrap",), ("prune",), ("export_config", "llm-routing")])
def test_newer_database_is_rejected_with_a_one_line_error(newer_installation: Path, arguments: tuple[str, ...]) -> None:
    output = run(newer_installation, *arguments, code=1)
    assert output.count("\n") == 1
    assert "does not know the migration capabilities 0999_later. Install that version again" in output
