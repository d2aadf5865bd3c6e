"""The systemd units of deploy/: their commands, their exposure, and the program under their restrictions."""

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
from tests.deploy.confined import missing, read_unit
from tests.deploy.proxies import own_environment
from tests.gateway.serving import ROOT, bootstrap, environment_of, listening, manage
from tests.lab import Lab

DEPLOY = ROOT / "deploy"
UNITS = ("routing-admin.service", "routing-admin-daily.service")

# On the scale of `systemd-analyze security`, from 0 to 10.
MAX_EXPOSURE = 3.0
WORDS = "a lantern for the heron"


def absent(reason: str) -> None:
    """Skip the test, or fail it in continuous integration."""
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def test_the_unit_of_systemd_runs_commands_that_are_there():
    """The unit runs existing commands and allows time to drain and to migrate a large database."""
    unit = read_unit(DEPLOY / "routing-admin.service")
    assert shlex.split(unit["ExecStart"])[1:] == ["manage.py", "serve"]
    compiles, bootstraps = unit["ExecStartPre"].splitlines()
    assert compiles.startswith("+/bin/sh -c 'umask 022; exec /opt/routing-admin/.venv/bin/python -m compileall -q ")
    assert shlex.split(bootstraps)[1:] == ["manage.py", "bootstrap"]
    assert int(unit["TimeoutStopSec"]) > 30
    assert unit["TimeoutStartSec"] == "30min"


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_hardly_exposed(name: str):
    """A unit's exposure by `systemd-analyze security` is low."""
    if reason := missing():
        absent(reason)
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(DEPLOY / name)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert float(exposure) <= MAX_EXPOSURE
    unit = read_unit(DEPLOY / name)
    assert (unit["UMask"], unit["LimitCORE"], unit["CapabilityBoundingSet"]) == ("0077", "0", "")


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_the_program_works_under_its_units_restrictions(tmp_path: Path):
    """Under the unit's restrictions images and PDFs are read, a provider is called, and the data stays private."""
    if reason := missing():
        absent(reason)
    confined = [sys.executable, str(ROOT / "tests/deploy/confined.py"), str(DEPLOY / UNITS[0])]
    with Lab() as lab:
        environment = environment_of(data := tmp_path / "data", lab)
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
    """Make a call about an image and a PDF with text, and one about a scan that has to be rendered."""
    picture, scan = io.BytesIO(), io.BytesIO()
    for kind, file in (("PNG", picture), ("PDF", scan)):
        Image.new("RGB", (400, 300), "teal").save(file, kind)
    files = {"a.png": picture.getvalue(), "a.pdf": pdf(WORDS), "scan.pdf": scan.getvalue()}
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as agent:
        stored = [agent.post("/api/v1/artifacts", files={"file": each}) for each in files.items()]
        assert [each.status_code for each in stored] == [201] * 3
        parts = [{"type": "file", "file": {"file_id": each.json()["ref"]}} for each in stored]
        words, seen = (
            agent.post(
                "/v1/chat/completions", json={"model": f"task:{route}", "messages": [{"role": "user", "content": each}]}
            )
            for route, each in (("planning", parts[:2]), ("design", parts[2:]))
        )
    assert WORDS in words.text
    assert "converted" in seen.headers["x-routing-adaptation"]


def test_what_is_due_once_a_day_is_done_by_commands_that_are_there(tmp_path):
    """The daily unit's commands work, and fourteen backups are kept."""
    backups, data = tmp_path / "backups", tmp_path / "data"
    for number in range(14):
        (backups / f"2020-01-{number + 10}").mkdir(parents=True)
    (backups / "2020-02-01.part" / "artifacts").mkdir(parents=True)  # left by a killed backup of an earlier version
    environment = {**own_environment(), "ROUTING_ADMIN_DATA_DIR": str(data)}
    subprocess.run([sys.executable, "manage.py", "bootstrap"], cwd=ROOT, env=environment, check=True)
    for line in read_unit(DEPLOY / "routing-admin-daily.service")["ExecStart"].splitlines():
        words = [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(line)]
        places = (("/opt/routing-admin/.venv/bin/python", sys.executable), ("/var/backups/routing-admin", str(backups)))
        for place, here in places:
            words = [word.replace(place, here) for word in words]
        subprocess.run(words, cwd=ROOT, env=environment, check=True)
    kept = sorted(path.name for path in backups.iterdir())
    assert len(kept) == 14
    assert kept[0] == "2020-01-11"
    assert (backups / kept[-1] / "manifest.json").exists()
