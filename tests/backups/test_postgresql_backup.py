"""A backup of PostgreSQL and S3 made under load is restored to PostgreSQL and S3, and to files."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from artifacts.core.bucket import Bucket
from routing_admin.console.backups.data_transfer.lines import parse_line
from tests.chaos.installation import Installation, installed, write_import
from tests.chaos.kills import back_up_under_load
from tests.engines.cluster import Cluster, find_programs, running_cluster
from tests.engines.s3 import s3_server
from tests.gateway.serving import ROOT, manage, manage_all
from tests.preloaded import run_python

FACTS = str(ROOT / "tests" / "databases" / "moved_facts.py")
PROVIDER_KEY = "sk-provider-key-0123456789"
AUDIT_TABLE = "routing_admin_auditevent"
LOG_TABLE = "routing_admin_requestlog"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
pytestmark = pytest.mark.sqlite  # This module starts its own PostgreSQL and S3 servers.


@dataclass(frozen=True)
class SavedInstallation:
    """An installation on PostgreSQL and S3, its backup, and the files that were stored before the backup began."""

    installation: Installation
    cluster: Cluster
    backup: Path
    files: Mapping[str, bytes]

    def new_environment(
        self, directory: Path, database: str = "", secrets: tuple[str, ...] = (), *, template: str = ""
    ) -> dict[str, str]:
        """Return the environment of an empty installation with the named secrets.

        It uses a new bucket and a new PostgreSQL database called `database`, or only files if `database` is empty. The
        database is a copy of the database called `template`, if there is one.
        """
        directory.mkdir(mode=0o700)
        for name in secrets:
            shutil.copy(self.installation.directory / name, directory / name)
        environment = {**self.installation.environment, "ROUTING_ADMIN_DATA_DIR": str(directory)}
        del environment["DATABASE_URL"], environment["ROUTING_ADMIN_ARTIFACTS_URL"]
        if database:
            environment["DATABASE_URL"] = self.cluster.make_database(database, template)
            environment["ROUTING_ADMIN_ARTIFACTS_URL"] = bucket_url(s3_server().new_prefix())
        return environment


def bucket_url(bucket: Bucket) -> str:
    return f"s3://{bucket.name}/{bucket.prefix}?endpoint_url={bucket.endpoint}"


def collect_facts(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the rows, exports and decrypted keys of an installation, and whether its files are intact."""
    result = run_python(environment, FACTS)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout.splitlines()[-1]))


def dump_tables(url: str) -> dict[str, list[str]]:
    """Return all rows as PostgreSQL prints them, except those of the migration and audit event tables."""
    with psycopg.connect(url, autocommit=True) as reader:
        names = {name for (name,) in reader.execute(TABLES)} - {"django_migrations", AUDIT_TABLE}
        return {name: sorted(row for (row,) in reader.execute(f'SELECT t::text FROM "{name}" t')) for name in names}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SavedInstallation]:
    """Back up an installation during calls, uploads, imports and edits."""
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    backup, bucket = tmp_path_factory.mktemp("backups") / "one", s3_server().new_prefix()
    with (
        running_cluster() as cluster,
        installed(cluster.make_database("one"), ARTIFACTS_URL=bucket_url(bucket)) as installation,
    ):
        provider = {"providerName": "kept", "apiKey": PROVIDER_KEY, "defaultModel": "m"}
        provider["endpoint"] = "https://api.example.com/v1/chat/completions"
        write_import(installation.environment, installation.directory, {"providers": [provider]})
        with installation.serve() as server:
            files = back_up_under_load(installation, server, backup)
        yield SavedInstallation(installation, cluster, backup, files)


def restore(saved: SavedInstallation, environment: Mapping[str, str]) -> None:
    result = run_python(environment, "manage.py", "restore", str(saved.backup))
    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture(scope="module")
def on_files(saved: SavedInstallation, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a file-based installation restored from the backup. No test changes it."""
    environment = saved.new_environment(tmp_path_factory.mktemp("files") / "b", "", ("secret_key", "keys"))
    restore(saved, environment)
    return environment


@pytest.fixture(scope="module")
def on_postgresql(saved: SavedInstallation, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of an installation on PostgreSQL restored from the backup. No test changes it."""
    environment = saved.new_environment(tmp_path_factory.mktemp("postgresql") / "a", "two", ("secret_key", "keys"))
    restore(saved, environment)
    return environment


def test_backup_of_postgresql_under_load_can_be_restored_to_postgresql_and_to_files(
    saved: SavedInstallation, on_files: dict[str, str], on_postgresql: dict[str, str]
) -> None:
    for environment in (on_postgresql, on_files):
        assert "is intact" in manage_all(environment, ("audit_verify",), ("doctor",))[0]
    first, second = collect_facts(on_postgresql), collect_facts(on_files)
    assert first["rows"].pop(AUDIT_TABLE)[0] == second["rows"].pop(AUDIT_TABLE)[0]
    assert first == second
    assert first["keys"]["kept"] == PROVIDER_KEY
    assert set(first["bytes"].values()) == {True}
    for name, text in first["exports"].items():
        assert text == (saved.backup / f"{name}.json").read_text()
    assert saved.files
    hashes = json.loads(saved.cluster.ask("two", "SELECT json_object_agg(id, sha256) FROM artifacts_artifact"))
    for ref, content in saved.files.items():
        assert hashes[ref.removeprefix("artifact:")] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("a\t\\N\t\tN", ("a", None, "", "N")),
        ("\\\\N\ttab\\tnew\\nline\\r\\\\", ("\\N", "tab\tnew\nline\r\\")),
        ("中文\u2028\x85 x\t1.5", ("中文\u2028\x85 x", "1.5")),
    ],
)
def test_escape_sequences_of_a_copy_line_are_decoded(line: str, values: tuple[str | None, ...]) -> None:
    assert tuple(parse_line(line + "\n", [], [])) == values
    assert parse_line("\\\\x00ff\t\\N\n", [0, 1], []) == [b"\x00\xff", None]
    assert parse_line('{"a": "\\\\u0001é"}\n', [], [0]) == ['{"a": "\\u0001\\u00e9"}']


def test_backup_with_an_sqlite_log_is_restored_without_secrets_and_names_unreadable_keys(
    saved: SavedInstallation, on_files: dict[str, str], on_postgresql: dict[str, str], tmp_path: Path
) -> None:
    backup = tmp_path / "files"
    manage(on_files, "backup", str(backup))
    assert json.loads((backup / "manifest.json").read_text())["format"] == 1
    environment = saved.new_environment(tmp_path / "a", "four")
    result = run_python(environment, "manage.py", "restore", str(backup))
    assert result.returncode == 0
    assert "every agent needs a new key" in result.stderr
    assert "kept" in result.stderr
    assert run_python(environment, FACTS).returncode == 1
    expected, restored = (dump_tables(target["DATABASE_URL"])[LOG_TABLE] for target in (on_postgresql, environment))
    assert restored == expected
    everything = b"".join(path.read_bytes() for path in saved.backup.rglob("*") if path.is_file())
    assert PROVIDER_KEY.encode() not in everything


def test_restore_with_replace_moves_old_tables_to_another_schema_and_restores_every_value(
    saved: SavedInstallation, on_postgresql: dict[str, str], tmp_path: Path
) -> None:
    """Without `--replace`, or while the database is in use, nothing is replaced. A failed restore changes nothing."""
    environment = saved.new_environment(tmp_path / "a", "five", ("secret_key", "keys"), template="two")
    saved.cluster.ask("five", "UPDATE auth_user SET username = 'replaced'")
    before = dump_tables(environment["DATABASE_URL"])
    manage(saved.installation.environment, "backup", str(tmp_path / "two"))
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "two", check=True)
    arguments = ("manage.py", "restore", str(tmp_path / "two"), "--replace")
    refused = run_python(environment, *arguments[:-1])
    assert (refused.returncode, "--replace" in refused.stderr) == (1, True)
    with psycopg.connect(environment["DATABASE_URL"], application_name="routing_admin") as connection:
        connection.execute("SELECT 1")
        refused = run_python(environment, *arguments)
    assert (refused.returncode, "Stop the servers on every machine first" in refused.stderr) == (1, True)
    missing_bucket = environment["ROUTING_ADMIN_ARTIFACTS_URL"].replace("s3://artifacts/", "s3://missing/")
    assert run_python(environment | {"ROUTING_ADMIN_ARTIFACTS_URL": missing_bucket}, *arguments).returncode == 1
    assert dump_tables(environment["DATABASE_URL"]) == before
    result = run_python(environment, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    schema = next(word for word in result.stdout.split() if word.startswith("before_restore_"))
    assert saved.cluster.ask("five", f"SELECT username FROM {schema}.auth_user") == "replaced"
    restored = dump_tables(environment["DATABASE_URL"])
    assert restored == dump_tables(saved.installation.environment["DATABASE_URL"])
    assert restored["routing_admin_revision"]
    manage(environment, "doctor")


@pytest.mark.slow
def test_postgresql_is_backed_up_before_its_migrations(saved: SavedInstallation, tmp_path: Path) -> None:
    """The backup is made before the new migrations are applied, and this version can restore it."""
    environment = saved.new_environment(tmp_path / "a", "six", ("secret_key", "keys"))
    manage(environment, "restore", str(saved.backup))
    manage(environment, "migrate", "routing_admin", "0026")
    assert "before the migrations" in manage(environment, "bootstrap", "--no-demo")
    (copy,) = (tmp_path / "a" / "backups").iterdir()
    applied = json.loads((copy / "manifest.json").read_text())["databases"]["default"]["migrations"]
    assert ["routing_admin", "0026_label_budgets"] in applied
    assert ["routing_admin", "0027_agent_quota"] not in applied
    manage(environment, "restore", str(copy), "--replace")
    assert collect_facts(environment)["keys"]["kept"] == PROVIDER_KEY
