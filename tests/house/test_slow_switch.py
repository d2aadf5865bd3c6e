"""Only `pytest --slow` runs tests that are marked slow, and it runs property tests with 2,000 examples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "tests/house/slow_example.py"


@pytest.mark.parametrize(("switch", "outcome"), [((), "1 skipped"), (("--slow",), "1 passed")])
def test_slow_test_runs_only_with_the_slow_option(switch: tuple[str, ...], outcome: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_PROFILE"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *switch, EXAMPLE]
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout
    assert outcome in result.stdout
