"""Installations of earlier versions keep their data, readable and usable, after an upgrade.

`installations/*.tar.gz` were made by `tests/upgrade/make.py` of the version in their name. Each test run upgrades them
again, so that no migration that loses data can land.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
INSTALLATIONS = sorted((HERE / "installations").glob("*.tar.gz"))


@pytest.fixture(scope="module", params=INSTALLATIONS, ids=lambda path: path.name)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the installation contained, and what this version finds in it."""
    folder = tmp_path_factory.mktemp("upgrade")
    shutil.unpack_archive(request.param, folder)
    for name in ("keys", "secret_key"):
        (folder / name).chmod(0o600)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.upgrade.look", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {"was": json.loads((folder / "expected.json").read_text()), "is": json.loads(ran.stdout.splitlines()[-1])}


def test_there_is_an_installation_of_the_version_before_the_rooms() -> None:
    """An archive of an earlier version exists, so that the upgrade is tested with real files."""
    assert [path.name for path in INSTALLATIONS][:1] == ["before-the-rooms.tar.gz"]


def test_the_administrator_signs_in_and_the_doctor_finds_nothing(upgraded: dict[str, Any]) -> None:
    """The administrator's password works, and the doctor finds no problem."""
    assert upgraded["is"]["signedIn"]
    assert upgraded["is"]["doctor"] == ""


def test_the_configuration_and_every_revision_are_there(upgraded: dict[str, Any]) -> None:
    """The export contains everything it contained before, and every revision and the audit log can be opened."""
    was, now = upgraded["was"]["configuration"], dict(upgraded["is"]["configuration"])
    now["providers"] = [provider for provider in now["providers"] if "fromServices" not in provider]
    assert {name: now[name] for name in was} == was
    assert set(now) - set(was) == {"aliases", "agents"}
    assert set(upgraded["is"]["revisions"]) == {200}
    assert len(upgraded["is"]["revisions"]) == upgraded["was"]["revisions"]
    assert upgraded["is"]["audit"] == 200


def test_an_old_change_is_undone_and_an_old_revision_restored(upgraded: dict[str, Any]) -> None:
    """A change of the old version can be undone (revision 5), and an old revision restored (revision 2)."""
    assert upgraded["is"]["undone"] == []
    assert upgraded["was"]["configuration"]["routing"]["through-keyed"]["temperature"] == 1
    assert upgraded["is"]["restored"] == 0


def test_every_request_is_in_the_log_with_its_words(upgraded: dict[str, Any]) -> None:
    """Each logged request can be opened with its status and recorded bodies."""
    was, now = upgraded["was"]["requests"], upgraded["is"]
    assert now["timelines"] == was
    assert {one: page["status"] for one, page in now["requests"].items()} == dict.fromkeys(was, 200)
    assert "这是什么" in now["requests"]["req_upgrade_1"]["text"]
    assert "keyed/m" in now["requests"]["req_upgrade_2"]["text"]


def test_why_an_old_request_failed_stands_there_as_it_was_logged(upgraded: dict[str, Any]) -> None:
    """Errors that an earlier version logged as English text are quoted unchanged."""
    requests = upgraded["is"]["requests"]
    text = requests["req_upgrade_3"]["text"]
    assert '<q lang="en">All 1 candidates failed (echo/echo-503: echo-503 always fails;' in text
    assert '<q lang="en">echo-503 always fails; it is there to show a fallback.</q>' in text
    assert '<q lang="en">The model has vision and takes image/png.</q>' in requests["req_upgrade_1"]["text"]


def test_keys_and_files_are_as_they_were(upgraded: dict[str, Any]) -> None:
    """The agent's key, the provider's key and all artifacts are unchanged."""
    assert upgraded["is"]["models"] == 200
    assert upgraded["is"]["providerKey"] == upgraded["was"]["providerKey"]
    assert upgraded["is"]["artifacts"] == upgraded["was"]["artifacts"]
