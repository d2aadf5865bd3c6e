"""An interrupted backup leaves a hidden directory that does not count as a backup. The next backup removes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing_admin.console.backups.restoring import new_folder, remove_unfinished
from tests.preloaded import start_program

WRITE = """
import sys, time
from pathlib import Path
from routing_admin.console.backups.restoring import new_folder
with new_folder(Path(sys.argv[1])) as part:
    (part / "rows.sqlite3-wal").write_text("half")
    print(part, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def backup_process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that is in the middle of a backup, and yield it with its target directory."""
    variables = {"ROUTING_ADMIN_DATA_DIR": str(tmp_path / "data"), "DJANGO_SETTINGS_MODULE": "routing_admin.settings"}
    command = [sys.executable, "-c", f"import django; django.setup(){WRITE}", str(tmp_path / "saved" / "monday")]
    process = start_program(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process, process.stdout:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_killed_backup_is_hidden_and_removed_by_the_next_backup(
    backup_process: tuple[subprocess.Popen[str], Path],
) -> None:
    process, part = backup_process
    process.kill()
    process.wait()
    assert part.is_dir()
    listing = subprocess.run(["sh", "-c", "ls -d */"], cwd=part.parent, capture_output=True, text=True, check=False)
    assert listing.stdout == ""
    with new_folder(part.parent / "tuesday"):
        assert not part.exists()
    assert [path.name for path in part.parent.iterdir()] == ["tuesday"]


def test_running_backup_is_not_removed(backup_process: tuple[subprocess.Popen[str], Path]) -> None:
    _process, part = backup_process
    remove_unfinished(part.parent)
    assert (part / "rows.sqlite3-wal").exists()


def test_directory_of_another_program_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "film.part").mkdir()
    (tmp_path / "film.part" / "film.mkv").touch()
    remove_unfinished(tmp_path)
    assert (tmp_path / "film.part" / "film.mkv").exists()
