"""The import contracts bite: for each of them a violation is planted in a copy of the house, and is caught.

That the house itself keeps them is what `lint-imports` says in `make lint`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("capabilities", "artifacts", "routing_admin")

PLANTED: tuple[tuple[str, str, str], ...] = (
    ("the apps import one way", "capabilities/access.py", "artifacts.models"),
    ("cores import the standard library and cores", "artifacts/core/filenames.py", "charset_normalizer"),
    ("the floors of routing_admin", "routing_admin/models/people.py", "routing_admin.views.session"),
    ("the floors of routing_admin.core", "routing_admin/core/fallback/table.py", "routing_admin.core.planning.plan"),
    ("the floors of artifacts", "artifacts/models.py", "artifacts.views.listing"),
    ("the floors of artifacts.core", "artifacts/core/store.py", "artifacts.core.delivery.tools"),
    ("the floors of capabilities", "capabilities/models.py", "capabilities.views.agents"),
    (
        "the floors of capabilities.core",
        "capabilities/core/providers/origins.py",
        "capabilities.core.services.registry",
    ),
    (
        "protocols know nothing of one another",
        "capabilities/core/protocols/gemini/requests.py",
        "capabilities.core.protocols.openai.requests",
    ),
    ("no cycles between rooms or modules", "routing_admin/core/fallback/waits.py", "routing_admin.core.fallback.run"),
    ("only upstream calls out", "routing_admin/dispatch/send.py", "httpx"),
    ("only its server knows the package of MCP", "routing_admin/agents_api/mcp/door.py", "mcp"),
    ("clients that come along with a package call nobody", "routing_admin/upstream/calls.py", "httpx2"),
    ("only its list knows the package of prices", "routing_admin/request_log/costs.py", "genai_prices"),
    ("only its server counts for a scraper", "routing_admin/request_log/counting.py", "prometheus_client"),
    (
        "only its adapter knows the package for signing in elsewhere",
        "routing_admin/views/people/identities.py",
        "allauth",
    ),
    ("only its link knows the client of Redis", "routing_admin/limits/pooled.py", "redis"),
    ("only the sniffer knows libmagic", "artifacts/storage/uploads.py", "magic"),
    ("only its store knows the package of S3", "artifacts/storage/uploads.py", "obstore"),
    ("only the extraction process decodes uploads", "artifacts/storage/thumbnails.py", "PIL"),
    (
        "upstream takes targets, never rows or the snapshot",
        "routing_admin/upstream/calls.py",
        "routing_admin.configuration.snapshot",
    ),
    (
        "the seeds' names are imported by nothing of ours",
        "routing_admin/dispatch/plan.py",
        "routing_admin.core.seeds.router",
    ),
    ("cores import the standard library and cores", "routing_admin/core/planning/plan.py", "capabilities.ports"),
    ("ports are only for what points upward", "routing_admin/actions/history.py", "capabilities.ports"),
    ("rows are read and written in their rooms alone", "routing_admin/views/routes/listing.py", "routing_admin.models"),
)
"""A contract, a file, and a module that the contract does not let the file import."""

ATTIC = "routing_admin/attic.py"
"""A module that stands on no floor."""


def contracts() -> list[str]:
    """The names of all contracts."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return [each["name"] for each in found]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the linter says of a copy of the house in which every violation is planted; by contract, without blanks."""
    house = tmp_path_factory.mktemp("house")
    for app in APPS:
        shutil.copytree(ROOT / app, house / app, ignore=lambda folder, names: [n for n in names if is_data(folder, n)])
    shutil.copytree(ROOT / "tests" / "house", house / "tests" / "house")
    shutil.copy(ROOT / "pyproject.toml", house)
    (house / ATTIC).touch()
    for _, file, imported in PLANTED:
        with (house / file).open("a", encoding="utf-8") as source:
            source.write(f"\nimport {imported}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    ran = subprocess.run(command, cwd=house, capture_output=True, text=True, check=False)
    assert "Broken contracts" in ran.stdout, ran.stdout + ran.stderr
    parts = re.split(r"^([^\n]+)\n-+\n", ran.stdout.split("Broken contracts")[1], flags=re.MULTILINE)
    return {name.strip(): re.sub(r"\s+", "", text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def is_data(folder: str, name: str) -> bool:
    """Whether a file or folder holds no modules."""
    return name == "__pycache__" or (not name.endswith(".py") and not (Path(folder) / name).is_dir())


@pytest.mark.parametrize(("contract", "file", "imported"), PLANTED)
def test_a_planted_violation_is_caught(contract: str, file: str, imported: str, report: dict[str, str]) -> None:
    """The contract is broken, and the linter names who imports what it must not."""
    importer = file.removesuffix(".py").replace("/", ".")
    cycle = f"Nocyclesareallowedin{importer.rpartition('.')[0]}."
    assert (cycle if contract.startswith("no cycles") else f"{importer}->{imported}") in report[contract]


def test_a_module_on_no_floor_is_caught(report: dict[str, str]) -> None:
    """The floors are exhaustive: whoever adds a module to an app's root says where it stands."""
    assert "attic" in report["the floors of routing_admin"]


def test_a_violation_is_planted_for_every_contract() -> None:
    """No contract is there that was never seen to bite."""
    assert {contract for contract, _, _ in PLANTED} == set(contracts())
