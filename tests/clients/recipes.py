"""Extract a recipe from docs/recipes.md and run it unchanged against a served `/v1` and `/mcp`.

The route's model calls the tools that the question names and repeats the last result. A program's output thus shows
that the result was read over `/mcp`, sent to the model over `/v1`, and returned.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

URL, KEY = os.environ["CLIENTS_URL"].removesuffix("/v1"), os.environ["CLIENTS_KEY"]
READER_KEY = os.environ["CLIENTS_VISION_KEY"]
"""The key of an agent whose service reads images."""
RECIPE = os.environ["CLIENTS_RECIPE"]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
ADDRESS = "http://127.0.0.1:8000"
"""The gateway URL in recipe blocks that cannot read it from an environment variable."""
BLOCK = re.compile(r"^```(python|sh|js|json|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIGURATIONS = {"toml": ".codex/config.toml", "json": ".config/opencode/opencode.json"}
"""Maps a block's language to the path of the program's configuration file below the home directory."""
MODULES = Path(sys.prefix) / "node" / "node_modules"
PROGRAMS = MODULES / ".bin"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "OPENCODE_DISABLE_AUTOUPDATE": "true",
    "OPENCODE_DISABLE_MODELS_FETCH": "true",
    "NO_PROXY": "127.0.0.1",
}

_, _, section = DOCUMENT.read_text("utf-8").partition(f"\n## {RECIPE}\n")
BLOCKS: dict[str, str] = dict(BLOCK.findall(section.partition("\n## ")[0]))
"""The recipe's code blocks, by language."""

program = BLOCKS["sh"].splitlines()[-1].split()[0] if "sh" in BLOCKS else ""
if (program and shutil.which(program, path=PROGRAMS) is None) or ("js" in BLOCKS and not MODULES.is_dir()):
    pytest.skip("The packages for Node are not installed: there was no npm.", allow_module_level=True)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that runs the recipe with a given key in a separate home directory and returns its output."""

    def run(key: str) -> str:
        for language in CONFIGURATIONS.keys() & BLOCKS:
            file = tmp_path / CONFIGURATIONS[language]
            file.parent.mkdir(parents=True)
            file.write_text(BLOCKS[language].replace(ADDRESS, URL))
        if "js" in BLOCKS:
            (tmp_path / "node_modules").symlink_to(MODULES)  # Node searches for modules next to the importing file.
            (tmp_path / "recipe.mjs").write_text(BLOCKS["js"])
        commands = {
            "sh": lambda text: ["sh", "-e", "-c", text],
            "js": lambda text: ["node", "recipe.mjs"],
            "python": lambda text: [sys.executable, "-P", "-c", text],
        }
        code = next(command(BLOCKS[language]) for language, command in commands.items() if language in BLOCKS)
        path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
        variables = {"ROUTING_ADMIN_URL": URL, "ROUTING_ADMIN_KEY": key, "HOME": str(tmp_path), "PATH": path}
        result = subprocess.run(
            code,
            cwd=tmp_path,
            env=os.environ | QUIET | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def store(key: str, kind: str, body: bytes) -> None:
    headers = {"authorization": f"Bearer {key}", "content-type": kind}
    urllib.request.urlopen(urllib.request.Request(f"{URL}/api/v1/artifacts", body, headers), timeout=30).close()


def test_model_reads_a_text_file(run: Callable[[str], str]) -> None:
    """The model receives the text from each of the two tools that the question names, or as a file in the question."""
    store(KEY, "application/json", json.dumps({"text": f"{RECIPE} has it.", "filename": "notes.md"}).encode())
    printed = run(KEY)
    assert re.search("The (tool said|file says): ", printed)
    assert f"{RECIPE} has it." in printed


def test_model_receives_an_image_file_as_an_image(run: Callable[[str], str]) -> None:
    """The image arrives as an image only if the agent's service reads images."""
    head = 'Content-Disposition: form-data; name="file"; filename="dot.png"\r\nContent-Type: image/png'
    body = b"--lab\r\n" + head.encode() + b"\r\n\r\n" + PNG + b"\r\n--lab--\r\n"
    store(READER_KEY, "multipart/form-data; boundary=lab", body)
    assert f"[image/png, {len(PNG)} bytes]" in run(READER_KEY)
