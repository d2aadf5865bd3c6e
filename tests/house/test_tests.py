"""Tests wait for conditions, use public names and are in a folder named after their subject.

The checks work on paths and syntax trees, so a violation can be planted as one more source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.engines.__main__ import list_files

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent

Sources = Mapping[str, str]
"""Maps paths below tests/ to the sources of these test files."""

PACED: Mapping[str, str] = {
    "lab/wire.py": "the lab plays a provider that sends byte after byte, slowly",
    "bench/upstream.py": "a measurement plays a provider that takes its time",
    "bench/load.py": "a measurement asks so many times a second",
}
"""Files with tests that depend on time passing."""

OF_THE_WHOLE_REPOSITORY: Mapping[str, str] = {
    "bench": "what is measured",
    "chaos": "what a served installation must not lose",
    "clients": "what other people's clients ask of /v1",
    "engines": "the databases and stores that tests start",
    "deploy": "the files for a server, and what they start",
    "runbook": "the pages of docs/runbook, played",
    "house": "the rules that the source is held to",
    "lab": "the providers that fail on demand",
    "mutants": "whether the tests notice a changed line",
    "ui": "every page in a real browser",
    "upgrade": "installations of earlier versions",
}
"""Folders with tests about the whole repository."""

CLOCKS = {"monotonic", "perf_counter"}
WAITS = ("sleep", "wait_for_timeout")
CONVENTIONS = {"_meta", "_replace", "_exit"}


def sources_of_tests() -> dict[str, str]:
    return {path.relative_to(TESTS).as_posix(): path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}


@cache
def nodes_of(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def find_sleeps(sources: Sources) -> list[str]:
    """Return each `time.sleep` and `asyncio.sleep`, except `sleep(0)` and sleeps in a loop with a deadline."""
    found = []
    for path, source in sources.items():
        if path in PACED or not any(name in source for name in WAITS):
            continue
        nodes = nodes_of(source)
        polled = {id(node) for loop in nodes if has_deadline(loop) for node in ast.walk(loop)}
        found += [f"{path}:{node.lineno}" for node in nodes if is_sleep(node) and id(node) not in polled]
    return found


def find_missing_imports(sources: Sources) -> list[str]:
    """Return each name that is imported from another test file, even inside a function, but is not defined there."""
    found = []
    for path, source in sources.items():
        for node in nodes_of(source):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tests."):
                continue
            module = (node.module or "").removeprefix("tests.").replace(".", "/")
            definition = sources.get(f"{module}.py")
            names = [alias.name for alias in node.names]
            if definition is not None:
                found += [f"{path}:{node.lineno} {name}" for name in names if name not in names_in(definition)]
    return found


@cache
def names_in(source: str) -> set[str]:
    """Return the names that a file defines, assigns or imports at its top level, even under a condition."""
    found: set[str] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def is_sleep(node: ast.AST) -> bool:
    """Return whether a call waits for time to pass, in Python or in the browser. `sleep(0)` does not."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr != "sleep":
        return node.func.attr in WAITS
    module = node.func.value
    if not isinstance(module, ast.Name) or module.id not in ("time", "asyncio"):
        return False
    return not (len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)


def has_deadline(node: ast.AST) -> bool:
    """Return whether a node is a `while` loop that reads a clock, that is, polls a condition until a deadline."""
    return isinstance(node, ast.While) and any(
        isinstance(part, ast.Attribute) and part.attr in CLOCKS for part in ast.walk(node)
    )


def private_attributes(sources: Sources) -> list[str]:
    """Return each private attribute used on anything but `self`, and each private name that is imported."""
    return [f"{path}: {name}" for path, source in sources.items() for name in private_names(nodes_of(source))]


def private_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the private names that are used. `_meta`, `_replace` and `_exit` are documented, and thus excluded."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
            yield from (
                ast.unparse(argument)
                for argument in node.args
                if isinstance(argument, ast.Constant) and is_private(argument.value)
            )
        if not isinstance(node, ast.Attribute) or not is_private(node.attr):
            continue
        if not isinstance(node.value, ast.Name) or node.value.id not in ("self", "cls"):
            yield ast.unparse(node)


def misnamed_folders(folders: Iterable[str]) -> list[str]:
    """Return the test folders that are not named after a package, an app or a module."""
    source = [path for app in ("capabilities", "artifacts", "routing_admin") for path in (ROOT / app).rglob("*.py")]
    subjects = {path.parent.name for path in source} | {path.stem for path in source}
    return [folder for folder in folders if folder not in subjects and folder not in OF_THE_WHOLE_REPOSITORY]


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__") and name not in CONVENTIONS


def test_no_test_sleeps() -> None:
    """Tests wait for an event or a condition, or use a clock whose time the test sets."""
    assert find_sleeps(sources_of_tests()) == []


def test_names_imported_from_other_tests_exist() -> None:
    """Otherwise, such an import in a benchmark that rarely runs would break unnoticed."""
    assert find_missing_imports(sources_of_tests()) == []


def test_planted_import_of_a_missing_name_is_found() -> None:
    """Such an import would otherwise fail only when the function runs."""
    planted = {"a.py": "def f():\n    from tests.b import there, gone\n", "b.py": "there = 1\n"}
    assert find_missing_imports(planted) == ["a.py:2 gone"]


def test_no_test_uses_a_private_attribute() -> None:
    """If a test needs more than the public names, the class must expose it."""
    assert private_attributes(sources_of_tests()) == []


def test_every_test_folder_is_named_after_its_subject() -> None:
    assert misnamed_folders({path.parts[0] for path in map(Path, sources_of_tests()) if len(path.parts) > 1}) == []
    assert misnamed_folders(["routing"]) == ["routing"]


@pytest.mark.parametrize(
    "source",
    ["import time\ntime.sleep(0.1)", "while True:\n    await asyncio.sleep(1)", "page.wait_for_timeout(100)"],
)
def test_planted_sleep_is_found(source: str) -> None:
    assert find_sleeps({"views/test_planted.py": source}) != []


@pytest.mark.parametrize(
    "source",
    [
        "while time.monotonic() < until:\n    time.sleep(0.1)",
        "await asyncio.sleep(0)",
        "clock.sleep(600)",
    ],
)
def test_polling_loops_sleep_zero_and_fake_clocks_are_allowed(source: str) -> None:
    assert find_sleeps({"views/test_planted.py": source}) == []


@pytest.mark.parametrize(
    "source", ["store._healthy", "from artifacts.storage.files import _identity", "a.b._c.d = 1", 'getattr(a, "_b")']
)
def test_planted_private_name_is_found(source: str) -> None:
    assert private_attributes({"views/test_planted.py": source}) != []


@pytest.mark.parametrize("source", ["self._said()", "Row._meta.db_table", "x.__class__"])
def test_own_private_names_and_public_conventions_are_allowed(source: str) -> None:
    assert private_attributes({"views/test_planted.py": source}) == []


def test_every_test_file_listed_for_postgresql_exists() -> None:
    """If a listed file did not exist, pytest would run no tests at all."""
    assert [path for path in list_files() if not (ROOT / path).is_file()] == []


def test_every_exception_to_the_test_rules_is_still_needed() -> None:
    sources = sources_of_tests()
    assert [path for path in PACED if "sleep(" not in sources[path]] == []
    assert [name for name in OF_THE_WHOLE_REPOSITORY if not (TESTS / name).is_dir()] == []
