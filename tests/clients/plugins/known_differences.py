"""A pytest plugin for the clients' suites: known differences must fail, and all other tests must pass.

`differences.toml` lists patterns for test ids. If a pattern matches no test, the run fails. The counts are written to
the file that `CLIENTS_REPORT` names.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[1] / "differences.toml"


def differences() -> list[dict[str, Any]]:
    rows = tomllib.loads(FILE.read_text("utf-8"))["difference"]
    return [row for row in rows if row["suite"] == os.environ["CLIENTS_SUITE"]]


class KnownDifferences:
    """Mark the tests that differ, and count the results."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.reasons: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.differing: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Mark known differences as expected failures. Raise `pytest.UsageError` if a pattern matches no test."""
        whole = not config.getoption("keyword") and not any("::" in argument for argument in config.args)
        for row in self.rows:
            for pattern in row["tests"]:
                matching = [item for item in items if fnmatchcase(escape_test_id(item.nodeid), pattern)]
                if whole and not matching:
                    raise pytest.UsageError(f"differences.toml: no test is called {pattern}")
                for item in matching:
                    item.add_marker(pytest.mark.xfail(reason=row["reason"], strict=True))
                    self.reasons[item.nodeid] = row["reason"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count each test once: in its call phase, or in its setup if the test failed or was skipped there."""
        if report.when != "call" and not (report.when == "setup" and not report.passed):
            return
        if report.skipped and not hasattr(report, "wasxfail"):
            self.counts["skipped"] += 1
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped[reason.removeprefix("Skipped: ")] += 1
        elif report.nodeid in self.reasons and report.skipped:
            self.counts["differs"] += 1
            self.differing[self.reasons[report.nodeid]] += 1
        else:
            self.counts["passed" if report.passed else "failed"] += 1

    def pytest_sessionfinish(self) -> None:
        results = {"counts": self.counts, "differing": self.differing, "skipped": self.skipped}
        Path(os.environ["CLIENTS_REPORT"]).write_text(json.dumps(results, ensure_ascii=False), "utf-8")


def escape_test_id(node: str) -> str:
    return node.replace("[", "<").replace("]", ">")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(KnownDifferences(differences()), "routing-admin-known-differences")
