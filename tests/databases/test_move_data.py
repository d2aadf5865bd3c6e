"""Moving an installation to PostgreSQL and S3 and back keeps every row, file and key.

An interrupted move can be continued.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from routing_admin.console.backups.data_transfer.copying import open_target_store
from routing_admin.console.backups.data_transfer.target import MoveError
from tests.engines.cluster import find_programs, running_cluster
from tests.engines.s3 import s3_server
from tests.preloaded import run_python

ROOT = Path(__file__).resolve().parents[2]
FACTS = Path(__file__).with_name("moved_facts.py")
pytestmark = pytest.mark.sqlite  # This module starts its own PostgreSQL and S3 servers.


@dataclass(frozen=True)
class Installation:
    """An installation, defined by its environment variables."""

    environment: Mapping[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_python(self.environment, *arguments)

    def facts(self, *steps: str) -> dict[str, Any]:
        result = self.run(str(FACTS), *steps)
        assert result.returncode == 0, result.stderr
        return dict(json.loads(result.stdout.splitlines()[-1]))

    def move(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("manage.py", "move_data", *arguments)

    def at(self, **variables: str) -> Installation:
        return Installation({**self.environment, **variables})


@dataclass(frozen=True)
class Move:
    """An installation stored in files, a summary of its contents, and the targets of the move."""

    home: Installation
    folder: Path
    facts: dict[str, Any]
    postgresql: str
    bucket: str

    @property
    def target(self) -> Installation:
        return self.home.at(DATABASE_URL=self.postgresql, ROUTING_ADMIN_ARTIFACTS_URL=self.bucket)


@pytest.fixture(scope="module")
def move_case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Move]:
    """Create an installation with data of all kinds. The module's tests move it, so their order matters."""
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    server, folder = s3_server(), tmp_path_factory.mktemp("home")
    bucket_prefix = server.new_prefix()
    prefixes = ("ROUTING_ADMIN_", "LLM_", "DJANGO", "DATABASE_URL", "TESTS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    home = Installation(inherited | {"ROUTING_ADMIN_DATA_DIR": str(folder)})
    with running_cluster() as cluster:
        bucket = f"s3://{bucket_prefix.name}/{bucket_prefix.prefix}?endpoint_url={server.url}"
        yield Move(home, folder, home.facts("make"), cluster.make_database("moved"), bucket)


def test_installation_in_use_cannot_be_moved(move_case: Move) -> None:
    """Changes that another process makes during the move would be lost."""
    with closing(sqlite3.connect(move_case.folder / "routing_admin.sqlite3")) as connection:
        connection.execute("SELECT count(*) FROM routing_admin_revision").fetchone()
        result = move_case.home.move("--to", move_case.postgresql, "--artifacts", move_case.bucket)
    assert result.returncode == 1
    assert "Stop `routing-admin serve`" in result.stderr


@pytest.mark.parametrize(
    ("address", "sentence"), [("ftp://host", "must be files or a bucket"), ("files", "already there")]
)
def test_artifact_target_must_be_another_bucket_or_directory(address: str, sentence: str) -> None:
    """An invalid or unchanged target for artifacts is rejected before it is contacted."""
    with pytest.raises(MoveError, match=sentence):
        open_target_store(address)


def test_unreachable_target_is_reported_in_one_line(move_case: Move) -> None:
    result = move_case.home.move("--to", "postgres://tests:secret@127.0.0.1:9/none")
    assert result.returncode == 1
    assert "The target is not responding" in result.stderr
    assert "Traceback" not in result.stderr
    assert "secret@" not in result.stderr


def test_move_to_postgresql_and_s3_keeps_everything(move_case: Move) -> None:
    """Rows, exports and bytes are the same, keys can still be decrypted, and the source is unchanged."""
    result = move_case.home.move("--to", move_case.postgresql, "--artifacts", move_case.bucket)
    assert result.returncode == 0, result.stderr
    assert "Same on both sides, counted and hashed" in result.stdout
    assert "DATABASE_URL=postgres://tests:…@127.0.0.1" in result.stdout
    assert f"ROUTING_ADMIN_ARTIFACTS_URL={move_case.bucket}" in result.stdout
    moved = move_case.target.facts()
    assert moved == move_case.facts
    assert moved["keys"] == {"openai": "sk-very-secret-1234"}
    assert set(moved["bytes"].values()) == {True}
    assert moved["rows"]["routing_admin_signinattempt"][0] == 1200
    assert move_case.home.facts() == move_case.facts


CONCURRENT_WRITE = """
import django
django.setup()
from django.db import connections, DatabaseError
from routing_admin.console.backups.data_transfer.serving import exclude_writers
from routing_admin.console.backups.data_transfer.tables import list_tables
from routing_admin.platform.databases.lock_timeout import lock_timeout
with exclude_writers(list_tables()), lock_timeout(0.1):
    for alias, table in {"default": "signinattempt", "logs": "attemptlog"}.items():
        other = connections[alias].copy()
        try:
            other.cursor().execute(f"DELETE FROM routing_admin_{table}")
        except DatabaseError as error:
            print(error)
        other.close()
"""
"""A program that writes over a second connection during a move."""


def test_other_processes_cannot_write_during_a_move(move_case: Move) -> None:
    """Changes by other processes during the move would be lost."""
    for installation, refusal in ((move_case.home, "database is locked"), (move_case.target, "lock timeout")):
        result = installation.at(DJANGO_SETTINGS_MODULE="routing_admin.settings").run("-c", CONCURRENT_WRITE)
        assert (result.returncode, result.stdout.count(refusal)) == (0, 2), result


def test_target_with_data_is_rejected(move_case: Move) -> None:
    """A target that contains data may be an installation in use."""
    result = move_case.home.move("--to", move_case.postgresql)
    assert result.returncode == 1
    assert "The target is not empty" in result.stderr


KILLED = """
import os, sys
import django
django.setup()
from routing_admin.console.backups.data_transfer.copying import copy_rows
from routing_admin.console.backups.data_transfer.tables import list_tables
from routing_admin.console.backups.data_transfer.target import DONE, MARKER_TABLE, Destination
from routing_admin.management.commands.move_data import Command
from routing_admin.platform.databases.progress import WorkProgress
url, moment = sys.argv[1:]
def die():
    sys.stdout.flush()
    os._exit(9)
class KilledMove(Destination):
    def prepare(self, tables):
        if moment == "before its tables":
            die()
        if moment == "behind its tables":
            self.make_tables()
            die()
        super().prepare(tables)
        if moment == "among its rows":
            for table in tables[: len(tables) // 2]:
                copy_rows(self, table, WorkProgress("Rows", 0, None))
            die()
    def finish(self, tables):
        self.write_marker("target", DONE, True)
        self.execute("target_logs", f"DROP TABLE {MARKER_TABLE}")
        die()
Command().move(list_tables(), KilledMove(url), None)
"""
"""A program that begins or continues a move and kills itself at a given moment."""
CONTINUED = "Continuing an interrupted move"


def test_move_killed_repeatedly_before_and_after_copying_rows_can_be_continued(move_case: Move, tmp_path: Path) -> None:
    """The same command continues a killed move, without manual cleanup."""
    url = f"sqlite:///{tmp_path}/there.sqlite3"
    home = move_case.home.at(DJANGO_SETTINGS_MODULE="routing_admin.settings")
    moments = ("before its tables", "behind its tables", "behind its last row")
    killed = [home.run("-c", KILLED, url, moment) for moment in moments]
    assert [run.returncode for run in killed] == [9, 9, 9], killed
    result = move_case.home.move("--to", url)
    assert result.returncode == 0, result.stderr
    assert [CONTINUED in run.stdout for run in (*killed, result)] == [False, True, True, True]
    assert move_case.home.at(DATABASE_URL=url).facts()["rows"] == move_case.facts["rows"]
    with closing(sqlite3.connect(tmp_path / "there.sqlite3")) as main:
        assert not main.execute("SELECT * FROM sqlite_master WHERE name = 'move_marks'").fetchall()


def test_move_killed_while_copying_rows_can_be_continued_with_newly_added_rows(move_case: Move) -> None:
    """Rows that were added after an earlier move get numbers after those of the moved rows."""
    moved = move_case.target.facts("add")
    assert len(moved["bytes"]) == len(move_case.facts["bytes"]) + 1
    back = {"DATABASE_URL": f"sqlite:///{move_case.folder}/back.sqlite3"}
    command = ["manage.py", "move_data", "--to", back["DATABASE_URL"], "--artifacts", "files"]
    abroad = move_case.target.at(DJANGO_SETTINGS_MODULE="routing_admin.settings")
    assert abroad.run("-c", KILLED, back["DATABASE_URL"], "among its rows").returncode == 9
    result = move_case.target.run(*command)
    assert result.returncode == 0, result.stderr
    assert CONTINUED in result.stdout
    assert move_case.home.at(**back).facts() == moved
