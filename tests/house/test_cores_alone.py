"""The `core` packages need only the standard library: no Django, no third-party packages, no other project code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPORT_ALL = """
import importlib, pkgutil, sys

class Refuser:
    def find_spec(self, name, path=None, target=None):
        known = name.partition(".")[0] in sys.stdlib_module_names
        ours = name in APPS or any((name + ".").startswith(f"{app}.core.") for app in APPS)
        if not known and not ours:
            raise ImportError(f"{name} is refused here")

APPS = ("capabilities", "artifacts", "routing_admin")
sys.meta_path.insert(0, Refuser())
count = 0
for app in APPS:
    core = importlib.import_module(f"{app}.core")
    for module in pkgutil.walk_packages(core.__path__, f"{app}.core."):
        importlib.import_module(module.name)
        count += 1
print(count)
"""


def run_python_source(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_core_module_imports_only_the_standard_library_and_core_modules() -> None:
    result = run_python_source(IMPORT_ALL)
    assert result.returncode == 0, result.stderr
    files = [
        path for app in ("capabilities", "artifacts", "routing_admin") for path in (ROOT / app / "core").rglob("*.py")
    ]
    tops = 3
    assert int(result.stdout) == len(files) - tops


@pytest.mark.parametrize("module", ["django", "orjson", "artifacts.ports"])
def test_import_from_outside_the_core_packages_is_refused(module: str) -> None:
    result = run_python_source(IMPORT_ALL + f"importlib.import_module({module!r})")
    assert result.returncode == 1
    assert f"{module} is refused here" in result.stderr
