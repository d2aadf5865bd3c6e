"""The commands in the `sh` blocks of docs/backup.md work when run in order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.serving import ROOT

BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    return BLOCK.findall((ROOT / "docs" / "backup.md").read_text(encoding="utf-8"))


def run(folder: Path, text: str) -> str:
    """Run the lines of a block, with the document's folders moved below `folder`."""
    for name in ("/backups", "/safe"):
        text = text.replace(f" {name}", f" {folder}{name}")
    text = re.sub(r"\bvar\b", str(folder / "var"), text).replace("python manage.py", f"{sys.executable} manage.py")
    ours = {"ROUTING_ADMIN_DATA_DIR": str(folder / "var"), "DJANGO_SETTINGS_MODULE": "routing_admin.settings"}
    done = subprocess.run(
        ["bash", "-euc", text], cwd=ROOT, env=os.environ | ours, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    return done.stdout


def test_the_commands_of_the_document_do_what_it_says(blocks: list[str], tmp_path: Path) -> None:
    """The document's commands back up, restore after a total loss, and rotate the secrets."""
    run(tmp_path, "python manage.py bootstrap")
    (tmp_path / "backups").mkdir()
    saving, bringing_back, rotating = blocks[:3], blocks[3], blocks[4:]
    for block in saving:
        run(tmp_path, block)
    shutil.rmtree(tmp_path / "var")
    said = run(tmp_path, bringing_back)
    assert "Restored the backup of" in said
    assert "The audit log is intact" in said
    for block in rotating:
        assert "re-encrypted" in run(tmp_path, block)
    assert len(blocks) == 6
