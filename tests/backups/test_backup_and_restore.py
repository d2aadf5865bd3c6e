"""A backup made under load restores a destroyed installation to its state at the time of the backup."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.callers import send
from tests.chaos.installation import Installation, installed
from tests.chaos.kills import back_up_under_load
from tests.gateway.serving import listening, manage, manage_all
from tests.preloaded import run_python


@dataclass(frozen=True)
class SavedInstallation:
    """An installation, a backup made under load, and the files whose storage was confirmed before the backup began."""

    installation: Installation
    backup: Path
    files: dict[str, bytes]

    def environment(self, directory: Path, *secrets: str) -> dict[str, str]:
        directory.mkdir(mode=0o700)
        for name in secrets:
            shutil.copy(self.installation.directory / name, directory / name)
        return self.installation.environment | {"ROUTING_ADMIN_DATA_DIR": str(directory)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SavedInstallation]:
    """Back up an installation during calls, uploads, imports and edits, then kill its server."""
    backup = tmp_path_factory.mktemp("backups") / "one"
    with installed() as installation, installation.serve() as server:
        yield SavedInstallation(installation, backup, back_up_under_load(installation, server, backup))


@pytest.fixture(scope="module")
def restored_directory(saved: SavedInstallation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory into which the backup was restored. Tests copy it."""
    directory = tmp_path_factory.mktemp("restored") / "new"
    result = run_command(saved.environment(directory, "secret_key", "keys"), "restore", str(saved.backup))
    assert (result.returncode, result.stderr) == (0, "")
    return directory


def copy_restored(saved: SavedInstallation, restored_directory: Path, directory: Path) -> dict[str, str]:
    """Copy the restored data directory, and return the environment for it."""
    shutil.copytree(restored_directory, directory)
    return saved.installation.environment | {"ROUTING_ADMIN_DATA_DIR": str(directory)}


def dump_tables(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as rows:
        names = [name for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows_by_table = {name: rows.execute(f'SELECT * FROM "{name}" ORDER BY rowid').fetchall() for name in names}
    events = [row for row in rows_by_table.pop("routing_admin_auditevent", []) if "installation.restore" not in row]
    del rows_by_table["sqlite_sequence"]
    return {**rows_by_table, "audit": events}


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and len(path.name) == 64}


def run_command(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(environment, "manage.py", *arguments)


def test_backup_under_load_is_restored_byte_for_byte(
    saved: SavedInstallation, restored_directory: Path, tmp_path: Path
) -> None:
    """While a server uses the restored installation, another restore is rejected."""
    environment, directory = copy_restored(saved, restored_directory, tmp_path / "new"), tmp_path / "new"
    for name in ("routing_admin.sqlite3", "logs.sqlite3"):
        assert dump_tables(directory / name) == dump_tables(saved.backup / name)
    assert bytes_below(directory / "artifacts") == bytes_below(saved.backup / "artifacts")
    names = ("llm-routing", "llmservices")
    exports = [("export_config", name) for name in names]
    intact, _, *exported = manage_all(environment, ("audit_verify",), ("doctor",), *exports)
    assert "is intact" in intact
    for name, text in zip(names, exported, strict=True):
        assert json.loads(text) == json.loads((saved.backup / f"{name}.json").read_text())
    key = saved.installation.key
    server = listening(environment, key, saved.installation.lab, directory)
    try:
        for ref, content in saved.files.items():
            reply = send(server, "GET", f"/v1/files/{ref}/content", headers={"authorization": f"Bearer {key}"})
            assert reply.body == content
        refused = run_command(environment, "restore", str(saved.backup), "--replace")
    finally:
        server.process.terminate()
        server.process.wait(timeout=60)
    assert refused.returncode == 1
    assert "Stop the server first" in refused.stderr
    assert list(directory.glob("before-restore-*")) == []


def test_backup_passes_sha256sum_and_contains_no_secret(saved: SavedInstallation) -> None:
    assert saved.files
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=saved.backup, check=True)
    secrets = [(saved.installation.directory / name).read_bytes().strip() for name in ("secret_key", "keys")]
    everything = b"".join(path.read_bytes() for path in saved.backup.rglob("*") if path.is_file())
    assert not any(secret in everything for secret in secrets)
    assert saved.backup.stat().st_mode & 0o077 == 0


def test_restore_without_the_saved_secrets_warns_that_agents_need_new_keys(
    saved: SavedInstallation, tmp_path: Path
) -> None:
    result = run_command(saved.environment(tmp_path / "new"), "restore", str(saved.backup))
    assert result.returncode == 0
    assert "every agent needs a new key" in result.stderr


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("routing_admin.sqlite3", "routing_admin.sqlite3 has changed"),
        ("llm-routing.json", "llm-routing.json has changed"),
        ("artifact", "is missing"),
        ("newer", "routing_admin 9999_from_the_future"),
    ],
)
def test_damaged_or_newer_backup_is_rejected_before_anything_is_written(
    saved: SavedInstallation, tmp_path: Path, damage: str, sentence: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(saved.backup, broken)
    if damage == "artifact":
        next((broken / "artifacts").glob("??/*")).unlink()
    elif damage == "newer":
        manifest = json.loads((broken / "manifest.json").read_text())
        manifest["databases"]["default"]["migrations"].append(["routing_admin", "9999_from_the_future"])
        (broken / "manifest.json").write_text(json.dumps(manifest))
        names = [line.partition("  ")[2] for line in (broken / "SHA256SUMS").read_text().splitlines()]
        sums = subprocess.run(["sha256sum", *names], cwd=broken, capture_output=True, text=True, check=True)
        (broken / "SHA256SUMS").write_text(sums.stdout)
    else:
        with (broken / damage).open("r+b") as file:
            file.seek(1000)
            file.write(b"\xff\x00\xff")
    environment = saved.environment(tmp_path / "new")
    result = run_command(environment, "restore", str(broken))
    assert result.returncode == 1
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "new" / "routing_admin.sqlite3").exists()


def test_restore_with_replace_keeps_the_old_installation(
    saved: SavedInstallation, restored_directory: Path, tmp_path: Path
) -> None:
    environment, directory = copy_restored(saved, restored_directory, tmp_path / "new"), tmp_path / "new"
    with closing(sqlite3.connect(directory / "routing_admin.sqlite3")) as rows, rows:
        rows.execute("UPDATE auth_user SET username = 'replaced'")
    before = dump_tables(directory / "routing_admin.sqlite3")
    refused = run_command(environment, "restore", str(saved.backup))
    assert refused.returncode == 1
    assert "--replace" in refused.stderr
    manage(environment, "restore", str(saved.backup), "--replace")
    (old,) = directory.glob("before-restore-*")
    assert dump_tables(old / "routing_admin.sqlite3") == before
    assert dump_tables(directory / "routing_admin.sqlite3") == dump_tables(saved.backup / "routing_admin.sqlite3")
    manage(environment, "doctor")


def test_backup_with_secrets_restores_everything_on_another_machine(
    saved: SavedInstallation, restored_directory: Path, tmp_path: Path
) -> None:
    environment = copy_restored(saved, restored_directory, tmp_path / "first")
    out = tmp_path / "with-secrets"
    assert "Secrets are included" in manage(environment, "backup", str(out), "--with-secrets")
    assert run_command(environment, "backup", str(out)).stderr.count("already exists") == 1
    assert (out / "secrets.json").stat().st_mode & 0o077 == 0
    other = saved.environment(tmp_path / "second")
    result = run_command(other, "restore", str(out))
    assert (result.returncode, result.stderr) == (0, "")
    for name in ("secret_key", "keys"):
        assert (tmp_path / "second" / name).read_text() == (saved.installation.directory / name).read_text().strip()
