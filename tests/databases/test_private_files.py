"""New database files can be read and written only by their owner."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from django.db import connections

from routing_admin.platform.databases.sqlite.base import DatabaseWrapper, make_private

pytestmark = pytest.mark.sqlite


def test_new_database_files_are_accessible_only_to_their_owner(tmp_path: Path) -> None:
    """The files' permissions do not depend on the process's umask."""
    usual = os.umask(0)
    try:
        settings = {**connections["default"].settings_dict, "NAME": tmp_path / "new.sqlite3"}
        wrapper = DatabaseWrapper(settings, "new")
        connection = wrapper.get_new_connection(wrapper.get_connection_params())
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE notes (words TEXT)")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        connection.close()
    finally:
        os.umask(usual)
    assert modes == {"new.sqlite3": 0o600, "new.sqlite3-wal": 0o600, "new.sqlite3-shm": 0o600}


def test_existing_database_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "there.sqlite3"
    path.write_bytes(b"bytes")
    path.chmod(0o640)
    make_private(str(path))
    make_private(":memory:")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"bytes", 0o640)
