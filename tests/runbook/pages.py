"""The pages of docs/runbook: their text, and their commands run by a shell."""

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
"""The data directory in the commands of the pages."""
SERVER = "http://127.0.0.1:8000"


def text_of(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text("utf-8")


def blocks_of(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall(text_of(page))


def run_block(page: str, name: str, environment: Mapping[str, str], places: Mapping[str, str]) -> str:
    """Run the block of that name and return its output; `places` replace the page's placeholders.

    Raise `AssertionError` if a command fails.
    """
    (commands,) = [text for each, text in blocks_of(page) if each == name]
    commands = DATA.sub(environment["ROUTING_ADMIN_DATA_DIR"], commands)
    for word, place in places.items():
        whole = r"(?<![\w/.-])" if word.startswith("/") else ""
        commands = re.sub(whole + re.escape(word), lambda _, place=place: place, commands)
    path = f"{Path(sys.executable).parent}:{places.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin"
    words, surroundings = ["bash", "-euo", "pipefail", "-c", commands], {**environment, "PATH": path}
    done = subprocess.run(
        words, cwd=ROOT, env=surroundings, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
