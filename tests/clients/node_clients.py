"""The vendors' Node clients against a served `/v1`, with a model behind each protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

MODELS: dict[str, str] = json.loads(os.environ["CLIENTS_MODELS"])
HERE = Path(__file__).resolve().parent
INSTALLED = Path(sys.prefix) / "node"
CHAT_APIS = ("responses", "messages")

if shutil.which("node") is None:
    pytest.skip("There is no Node on this machine.", allow_module_level=True)
if not (INSTALLED / "node_modules").is_dir():
    pytest.skip("The packages for Node are not installed: there was no npm.", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    """Copy the script next to its installed packages."""
    shutil.copy(HERE / "node" / "clients.js", INSTALLED)


def run(case: str, model: str) -> Any:
    command = ["node", "clients.js", case, model]
    result = subprocess.run(command, cwd=INSTALLED, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(("chat_api", "protocol"), product(CHAT_APIS, MODELS))
def test_complete_and_streamed_answers_agree(chat_api: str, protocol: str) -> None:
    assert run(f"{chat_api} whole", MODELS[protocol]) == {"text": "You said: hello", "tokens": 7}
    streamed = {"text": "You said: hello", "whole": "You said: hello", "tokens": 7}
    assert run(f"{chat_api} streamed", MODELS[protocol]) == streamed


@pytest.mark.parametrize(("chat_api", "protocol"), product(CHAT_APIS, MODELS))
def test_tool_is_called_and_its_result_is_sent_back(chat_api: str, protocol: str) -> None:
    """The call and its result are sent back with everything that accompanied the call."""
    output = run(f"{chat_api} tool", MODELS[protocol])
    assert (output["name"], output["arguments"]) == ("double", {"number": 21})
    assert output["text"].startswith("You said: ")


@pytest.mark.parametrize("chat_api", CHAT_APIS)
def test_refusal_raises_the_clients_own_error(chat_api: str) -> None:
    """For an unknown model, the client raises its own error class, with the gateway's error code and the request id."""
    assert run(f"{chat_api} error", "") == {"kind": "NotFoundError", "code": "model_not_found", "id": True}


@pytest.mark.parametrize("protocol", MODELS)
def test_tokens_are_counted(protocol: str) -> None:
    assert run("messages count", MODELS[protocol])["input_tokens"] > 0
