"""Database rows are read and written only in the modules that are allowed to do so, as far as the syntax shows.

The import contract named in `CONTRACT` limits which modules may import models. This test limits which modules may use
managers and queries, including those for Django's users and sessions. Both use the contract's list of modules.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("capabilities", "artifacts", "routing_admin")
CONSOLE = "routing_admin.console"
CONTRACT = "rows are read and written in their packages alone"

MANAGERS = {"objects", "_default_manager", "_base_manager"}
SHORTCUTS = {"get_object_or_404", "get_list_or_404", "aget_object_or_404", "aget_list_or_404"}
QUERIES = {
    *("select_related", "prefetch_related", "select_for_update", "values_list", "order_by", "annotate", "aggregate"),
    *("defer", "in_bulk", "refresh_from_db", "get_or_create", "update_or_create", "bulk_create", "bulk_update"),
}
"""Names of methods that, in this code, only model rows and querysets have."""
MENTIONED = re.compile(rf"\.all\(\)|\b({'|'.join(MANAGERS | SHORTCUTS | QUERIES)})\b")
"""Matches every source in which there may be such a name. Only these sources are parsed."""


def contract() -> dict[str, list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return next(candidate for candidate in contracts if candidate["name"] == CONTRACT)


IN_THE_CONSOLE = re.compile(
    r"routing_admin\.console\.(.+[._](queries|actions)|backups\..+|demo\..+|base\.keyset|dashboard\.metrics"
    r"|providers\.stored_keys|requests\.prefix_story|routes\.retrospect|services\.(nightly|probing)|settings\.pruning)"
)
"""Modules of the console that may read or write rows, unlike its pages, forms and API."""


@cache
def packages() -> tuple[str, ...]:
    """Return the packages outside the console that may use rows, as listed in the import contract."""
    contract_values = contract()
    return (
        *contract_values["protected_modules"],
        *(package for package in contract_values["allowed_importers"] if package != CONSOLE),
    )


def is_within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def modules() -> Iterator[tuple[str, Path]]:
    for app in APPS:
        for file in sorted((ROOT / app).rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if ".migrations" not in name:
                yield name, file


def row_accesses(source: str) -> set[str]:
    """Return the names with which a source reads or writes rows: managers, shortcuts, queries and reverse relations."""
    found: set[str] = set()
    if not MENTIONED.search(source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in MANAGERS | QUERIES:
            found.add(node.attr)
        elif isinstance(node, ast.Name) and node.id in SHORTCUTS:
            found.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "all":
            found |= set() if node.args or node.keywords else {"all"}
    return found


def test_database_rows_are_used_only_in_allowed_packages() -> None:
    outside = (
        (name, file)
        for name, file in modules()
        if not is_within(name, packages()) and not IN_THE_CONSOLE.fullmatch(name)
    )
    violations = {name: accesses for name, file in outside if (accesses := row_accesses(file.read_text("utf-8")))}
    assert violations == {}


@pytest.mark.parametrize(
    ("source", "access"),
    [
        ("from routing_admin.models import Revision\nnewest = Revision.objects.first()", "objects"),
        ("from django.contrib.auth import get_user_model\nusers = get_user_model().objects.count()", "objects"),
        ("rows = type(row)._default_manager.count()", "_default_manager"),
        ("from django.shortcuts import get_object_or_404\nrow = get_object_or_404(User, pk=1)", "get_object_or_404"),
        ("attempts = row.attempts.order_by('position')", "order_by"),
        ("attempts = [one.code for one in row.attempts.all()]", "all"),
        ("row.refresh_from_db()", "refresh_from_db"),
    ],
)
def test_planted_query_is_found(source: str, access: str) -> None:
    assert access in row_accesses(source)


def test_code_that_only_resembles_a_query_is_not_reported() -> None:
    source = (
        "if TYPE_CHECKING:\n    from routing_admin.models import TaskRoute\n"
        "def name_of(row: TaskRoute) -> str:\n    return row.task_type\n"
        "all(connections.all(initialized_only=True))\n"
    )
    assert row_accesses(source) == set()


def test_every_package_allowed_to_use_rows_exists() -> None:
    names = {name for name, _ in modules()}
    assert {package for package in packages() if package not in names and not package.endswith(".migrations")} == set()
