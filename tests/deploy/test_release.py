"""Releases built from the same commit have the same bytes, and a list names every package in the release."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from routing_admin.paths import program_version
from tests.gateway.serving import ROOT

CONTAINERFILE = ROOT / "deploy" / "Containerfile"
DIST = ROOT / "dist"
PINNED = re.compile(r"^([\w.-]+)==([\w.]+)(?: ; (.*))? \\$", re.MULTILINE)


def build(folder: Path, out: Path, *options: str) -> Mapping[str, str]:
    """Build the project in a folder, and return the digests of the built files by name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *options]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


def test_release_and_image_builds_are_reproducible(tmp_path: Path) -> None:
    """The unpacked source distribution, whose files have other modification times, builds the same release.

    The files that the Containerfile copies build the same wheel.
    """
    first = build(ROOT, tmp_path / "first")
    wheel, source = (next(name for name in first if name.endswith(ending)) for ending in (".whl", ".tar.gz"))
    assert wheel.startswith(f"routing_admin-{program_version()}-")
    shutil.unpack_archive(tmp_path / "first" / source, tmp_path)
    assert build(tmp_path / source.removesuffix(".tar.gz"), tmp_path / "second") == first
    commands, _image = CONTAINERFILE.read_text().split("\nFROM ${BASE}\n")
    assert "python -m hatchling build -t wheel" in commands
    assert "requirements-build.txt" in commands
    (tmp_path / "image").mkdir()
    copied = [line.split()[1:-1] for line in commands.splitlines() if line.startswith("COPY")]
    for name in (name for names in copied for name in names):
        (tmp_path / "image" / name).symlink_to(ROOT / name)
    assert build(tmp_path / "image", tmp_path / "third", "-t", "wheel") == {wheel: first[wheel]}


def test_program_version_is_the_newest_in_the_changelog() -> None:
    """Apart from the changelog, the program's version is written only in pyproject.toml."""
    (newest, *_rest) = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == program_version()


def normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.skipif(not (DIST / "SHA256SUMS").exists(), reason="no release was built: make release")
def test_component_and_license_lists_name_every_locked_package() -> None:
    """Packages for other systems or Python versions are not checked, since they are not installed here."""
    lock = PINNED.findall((ROOT / "requirements.txt").read_text())
    pinned = {name: version for name, version, marker in lock if not marker}
    parts = json.loads((DIST / "sbom.cdx.json").read_text())
    root = parts["metadata"]["component"]
    assert (root["name"], root["version"]) == ("routing-admin", program_version())
    versions = {normalize_name(part["name"]): part["version"] for part in parts["components"]}
    assert {name: versions[name] for name in pinned} == pinned
    assert len(pinned) > 50
    licenses = (DIST / "LICENSES.txt").read_text()
    texts = {
        normalize_name(name): text for name, text in re.findall(r"={100}\n(\S+)\n\S+\n.+\n={100}\n([^=]+)", licenses)
    }
    assert pinned.keys() <= texts.keys()
    assert [name for name, text in texts.items() if "--- " not in text] == []
