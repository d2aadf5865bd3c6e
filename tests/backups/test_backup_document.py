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
    """Run the commands of an `sh` block. Directories named in the document are replaced with ones below `folder`."""
    for name in ("/backups", "/safe"):
        text = text.replace(f" {name}", f" {folder}{name}")
    text = re.sub(r"\bvar\b", str(folder / "var"), text)
    variables = {
        "ROUTING_ADMIN_DATA_DIR": str(folder / "var"),
        "DJANGO_SETTINGS_MODULE": "routing_admin.settings",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    result = subprocess.run(
        ["bash", "-euc", text], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{text}\n{result.stderr}"
    return result.stdout


def test_documented_commands_back_up_restore_and_rotate_secrets(blocks: list[str], tmp_path: Path) -> None:
    run(tmp_path, "routing-admin bootstrap")
    (tmp_path / "backups").mkdir()
    saving_blocks, restoring_block, rotating_blocks = blocks[:3], blocks[3], blocks[4:]
    for block in saving_blocks:
        run(tmp_path, block)
    shutil.rmtree(tmp_path / "var")
    output = run(tmp_path, restoring_block)
    assert "Restored the backup of" in output
    assert "The audit log is intact" in output
    for block in rotating_blocks:
        assert "re-encrypted" in run(tmp_path, block)
    assert len(blocks) == 6
