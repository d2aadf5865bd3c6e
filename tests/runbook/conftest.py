"""Installations for the runbook's tests. Tests that only read share one. Tests that damage it get a copy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import free_port
from tests.runbook.installation import Installation, copied, installed


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Yield an installation with the demo configuration and simulated providers. It is only copied and never
    started.
    """
    with installed(tmp_path_factory.mktemp("template")) as installation:
        yield installation


@pytest.fixture(scope="package")
def served(template: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Yield a running copy with a metrics port, which tests share. Each test uses its own provider, key or name."""
    with copied(template, tmp_path_factory.mktemp("served")) as installation:
        installation.environment["ROUTING_ADMIN_METRICS_PORT"] = str(free_port())
        installation.start()
        yield installation


@pytest.fixture
def installation(template: Installation, tmp_path: Path) -> Iterator[Installation]:
    """Yield a copy for a single test, which starts it itself."""
    with copied(template, tmp_path) as installation:
        yield installation


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 32 MiB. Skip the test if the machine does not allow this."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("making a file system needs a superuser who may")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def on_small_disk(template: Installation, small_disk: Path, tmp_path: Path) -> Iterator[Installation]:
    """Yield a copy whose data directory is on a file system of 32 MiB."""
    with copied(template, tmp_path, small_disk / "var") as installation:
        yield installation
