"""Two versions of the program never write to one data directory at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from routing_admin.paths import program_version
from routing_admin.platform.server import draining

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def test_data_directory_in_use_by_another_version_is_not_served(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a process of another version has ended, even by crashing, it does not prevent a start."""
    settings.DATA_DIR = tmp_path
    mark = draining.ProcessMarker()
    mark.place()
    assert draining.find_other_version() is None
    running = program_version()
    monkeypatch.setattr(draining, "program_version", lambda: "0.9.0")
    with pytest.raises(CommandError, match=f"Version {running} serves this data directory"):
        call_command("serve")
    mark.remove()
    assert draining.find_other_version() is None
    (tmp_path / "processes" / "4711-crashed").write_text("0.8.0")
    assert draining.find_other_version() is None
