"""The text of the pages in docs/runbook, and a function that runs their code blocks in a shell."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "runbook"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
BLOCK = re.compile(r"^```sh run *(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DATA = re.compile(r"(?<![/\w.-])var\b(?=[/ )])")
"""The data directory that the pages name in their commands."""
SERVER = "http://127.0.0.1:8000"


def read_page(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text("utf-8")


def find_blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall(read_page(page))


def run_block(page: str, name: str, environment: Mapping[str, str], replacements: Mapping[str, str]) -> str:
    """Run the page's code block called `name` and return its output. `replacements` maps the page's placeholders to
    values.

    Raise `AssertionError` if a command fails.
    """
    (commands,) = [text for block_name, text in find_blocks(page) if block_name == name]
    commands = DATA.sub(environment["ROUTING_ADMIN_DATA_DIR"], commands)
    for placeholder, value in replacements.items():
        prefix = r"(?<![\w/.-])" if placeholder.startswith("/") else ""
        commands = re.sub(prefix + re.escape(placeholder), lambda _, value=value: value, commands)
    path = f"{Path(sys.executable).parent}:{replacements.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin"
    command, shell_environment = ["bash", "-euo", "pipefail", "-c", commands], {**environment, "PATH": path}
    result = subprocess.run(
        command, cwd=ROOT, env=shell_environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{commands}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr
