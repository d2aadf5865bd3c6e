"""docs/mcp.md describes `/mcp` correctly: its table lists the tools, and its example program runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from artifacts.core.delivery.tools import REQUIRED, tool_definitions
from capabilities.core.permissions import TOOL_SCOPES
from tests.gateway.serving import ROOT, served

DOCUMENT = (ROOT / "docs" / "mcp.md").read_text("utf-8")
ROW = re.compile(r"^\| (?:`(\w+)`)? ?\| ([^|]*)\| [^|]*\| ?(?:`([\w:]+)`)? ?\|$", re.MULTILINE)


def test_table_of_tools_has_their_arguments_and_scopes() -> None:
    table, scopes, tool = {}, {}, ""
    for name, arguments, scope in ROW.findall(DOCUMENT.partition("## Tools")[2].partition("\n## ")[0]):
        tool = name or tool
        table.setdefault(tool, set()).update(re.findall(r"`(\w+)`", arguments))
        scopes |= {tool: scope} if scope else {}
    functions = [definition["function"] for definition in tool_definitions()]
    assert table == {function["name"]: set(function["parameters"]["properties"]) for function in functions}
    assert scopes == TOOL_SCOPES
    (sentence,) = re.findall(r"^(.*) are required\.", DOCUMENT, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == {name for names in REQUIRED.values() for name in names}


def test_documented_program_runs_unchanged(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    with served(tmp_path) as server:
        ours = {"ROUTING_ADMIN_URL": server.url, "ROUTING_ADMIN_KEY": server.key, "NO_PROXY": "127.0.0.1"}
        command = [sys.executable, "-c", program]
        completed = subprocess.run(
            command, env=os.environ | ours, capture_output=True, text=True, timeout=60, check=False
        )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == [
        str([definition["function"]["name"] for definition in tool_definitions()]),
        "True",
        "Launch: Friday",
        "['multimodal-agent', 'vision-agent']",
        "['text']",
    ]
