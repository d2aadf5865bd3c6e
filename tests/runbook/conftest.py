"""One installation made for all pages: served for those that leave it as it was, copied for those that break it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runbook.installation import Installation, copied, installed


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation with the demo and the lab's providers; never served."""
    with installed(tmp_path_factory.mktemp("template")) as installation:
        yield installation


@pytest.fixture(scope="package")
def served(template: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A copy that is served, for tests that each use a provider, a key or a name of their own."""
    with copied(template, tmp_path_factory.mktemp("served")) as installation:
        installation.start()
        yield installation


@pytest.fixture
def own(template: Installation, tmp_path: Path) -> Iterator[Installation]:
    """A copy of the test's own, not served yet."""
    with copied(template, tmp_path) as installation:
        yield installation


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB, where this machine lets us make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("making a file system needs a superuser who may")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def on_small_disk(template: Installation, small_disk: Path, tmp_path: Path) -> Iterator[Installation]:
    """A copy on a disk of 32 MiB."""
    with copied(template, tmp_path, small_disk / "var") as installation:
        yield installation
