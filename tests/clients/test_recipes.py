"""docs/recipes.md names the pinned client versions. Each recipe is run with them in its own suite."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.clients.document import RECIPES
from tests.clients.exchanges import load

HERE = Path(__file__).resolve().parent
DOCUMENT = (HERE.parents[1] / "docs" / "recipes.md").read_text("utf-8")
ROW = re.compile(r"^\| \[([^\]]+)\]\(#[\w-]+\) \| [^|]*\| [^|]*\| ([^|]+) \|$", re.MULTILINE)
REPLAYED = ", replayed"


def pinned_versions() -> dict[str, set[str]]:
    versions: dict[str, set[str]] = {}
    for path in HERE.glob("requirements*.txt"):
        for name, version in re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)", path.read_text("utf-8"), re.MULTILINE):
            versions.setdefault(name, set()).add(version)
    packages = json.loads((HERE / "node" / "package-lock.json").read_text("utf-8"))["packages"]
    return versions | {
        name.removeprefix("node_modules/"): {package.get("version")} for name, package in packages.items()
    }


def test_each_recipe_names_the_versions_it_is_run_with() -> None:
    """Before the document may name a new client version, the recipe must be run with it."""
    versions, rows = pinned_versions(), dict(ROW.findall(DOCUMENT))
    run = {name: packages for name, packages in rows.items() if not packages.endswith(REPLAYED)}
    assert run.keys() == RECIPES.keys()
    for packages in run.values():
        for package, version in (name.split(" ") for name in packages.split(", ")):
            assert version in versions[package]


def test_each_program_has_a_recipe_section() -> None:
    assert re.findall(r"^## (.+)$", DOCUMENT, re.MULTILINE) == list(dict(ROW.findall(DOCUMENT)))


def test_replayed_recordings_have_the_version_of_the_table() -> None:
    """A recipe that is not run has a recording of the client version in the table, and its section says why."""
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
    replayed = {name: packages for name, packages in ROW.findall(DOCUMENT) if packages.endswith(REPLAYED)}
    for name, packages in replayed.items():
        recorded = load(name.lower().replace(" ", "_"), "request")["program"]
        assert all(package in recorded for package in packages.removesuffix(REPLAYED).split(", "))
        assert "Replayed: " in sections[name]
