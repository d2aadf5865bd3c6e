"""The process that tests one mutant: cheap tests first, the same examples each time, and an end in time."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("-p", "tests.mutants.child", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header")
DEADLINE = pytest.StashKey[float]()


def run_pytest(folder: Path, output: Path, words: Sequence[str], seconds: float) -> None:
    """Run pytest on a copy of the tree and exit with its code, in a session of its own."""
    os.setsid()
    os.chdir(folder)
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # What is kept for the interpreter's end would stay, because a forked child ends without it.
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder.parent)
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for name in list(sys.modules):
        if name.split(".")[0] in ("capabilities", "artifacts", "routing_admin", "tests"):
            del sys.modules[name]
    sys.exit(pytest.main([*OPTIONS, f"--seconds={seconds:.0f}", *words]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, default=60.0, help="for how long tests are started")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from tests.conftest import NEEDS_MORE  # here, because it needs Django's settings

    items.sort(key=lambda item: bool(NEEDS_MORE & set(getattr(item, "fixturenames", ()))))
    settings.register_profile("mutants", settings.get_profile("default"), derandomize=True, database=None)
    settings.load_profile("mutants")
    config.stash[DEADLINE] = time.monotonic() + config.getoption("--seconds")


def pytest_runtest_protocol(item: pytest.Item) -> None:
    if time.monotonic() > item.config.stash[DEADLINE]:
        pytest.exit("the time is over", returncode=0)
