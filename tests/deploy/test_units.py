"""The systemd units in deploy/: their commands, their exposure level, and the program under their restrictions."""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from PIL import Image

from tests.artifacts.samples import pdf
from tests.deploy.confined import missing_requirement, read_unit
from tests.deploy.proxies import own_environment
from tests.gateway.serving import ROOT, bootstrap, listening, manage, server_environment
from tests.lab import Lab
from tests.preloaded import start_program

DEPLOY = ROOT / "deploy"
PROGRAM = "/opt/routing-admin/bin/routing-admin"
UNITS = ("routing-admin.service", "routing-admin-daily.service")

# The exposure level is on the scale of `systemd-analyze security`, from 0 to 10.
MAX_EXPOSURE = 3.0
TEXT = "a lantern for the heron"


def skip_or_fail(reason: str) -> None:
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def test_systemd_unit_runs_the_program():
    """Systemd allows the program more time to stop than draining takes.

    Migrations are not part of the start, because they may take a long time.
    """
    unit = read_unit(DEPLOY / "routing-admin.service")
    assert unit["ExecStart"] == PROGRAM
    assert unit.get("Type", "simple") == "simple"
    assert int(unit["TimeoutStopSec"]) > 30


@pytest.mark.parametrize("name", UNITS)
def test_systemd_exposure_level_of_a_unit_is_low(name: str):
    if reason := missing_requirement():
        skip_or_fail(reason)
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(DEPLOY / name)]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", report)
    assert float(exposure) <= MAX_EXPOSURE
    unit = read_unit(DEPLOY / name)
    assert (unit["UMask"], unit["LimitCORE"], unit["CapabilityBoundingSet"]) == ("0077", "0", "")


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_program_works_under_its_systemd_restrictions(tmp_path: Path):
    """Images and PDFs can still be read, and the data directory becomes private."""
    if reason := missing_requirement():
        skip_or_fail(reason)
    confined = [sys.executable, str(ROOT / "tests/deploy/confined.py"), str(DEPLOY / UNITS[0])]
    with Lab() as lab:
        environment = server_environment(data := tmp_path / "data", lab)
        bootstrap(environment, data)
        key = manage(environment, "issue_agent_key", "text-agent")
        data.chmod(0o755)
        server = listening(environment, key, lab, data, prefix=confined)
        try:
            check_work(server.url, key)
        finally:
            server.process.terminate()
            server.process.wait(timeout=40)
        assert stat.S_IMODE(data.stat().st_mode) == 0o700


def check_work(url: str, key: str) -> None:
    picture, scan = io.BytesIO(), io.BytesIO()
    for kind, file in (("PNG", picture), ("PDF", scan)):
        Image.new("RGB", (400, 300), "teal").save(file, kind)
    files = {"a.png": picture.getvalue(), "a.pdf": pdf(TEXT), "scan.pdf": scan.getvalue()}
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as agent:
        stored = [agent.post("/api/v1/artifacts", files={"file": file}) for file in files.items()]
        assert [response.status_code for response in stored] == [201] * 3
        parts = [{"type": "file", "file": {"file_id": response.json()["ref"]}} for response in stored]
        text_answer, scan_answer = (
            agent.post(
                "/v1/chat/completions",
                json={"model": f"task:{route}", "messages": [{"role": "user", "content": content}]},
            )
            for route, content in (("planning", parts[:2]), ("design", parts[2:]))
        )
    assert TEXT in text_answer.text
    assert "converted" in scan_answer.headers["x-routing-adaptation"]


def test_daily_unit_runs_existing_commands_and_keeps_fourteen_backups(tmp_path):
    backups, data = tmp_path / "backups", tmp_path / "data"
    for number in range(14):
        (backups / f"2020-01-{number + 10}").mkdir(parents=True)
    # An earlier version of the program left such a directory if it was killed during a backup.
    (backups / "2020-02-01.part" / "artifacts").mkdir(parents=True)
    environment = {**own_environment(), "ROUTING_ADMIN_DATA_DIR": str(data)}
    bootstrap(environment, data)
    for line in read_unit(DEPLOY / "routing-admin-daily.service")["ExecStart"].splitlines():
        replacements = (
            (PROGRAM, f"{sys.executable} -m routing_admin"),
            ("/var/backups/routing-admin", str(backups)),
            ("$$", "$"),
            ("%%", "%"),
        )
        for installed, local in replacements:
            line = line.replace(installed, local)
        with start_program(shlex.split(line), environment) as process:
            assert process.wait(timeout=60) == 0
    remaining = sorted(path.name for path in backups.iterdir())
    assert len(remaining) == 14
    assert remaining[0] == "2020-01-11"
    assert (backups / remaining[-1] / "manifest.json").exists()
