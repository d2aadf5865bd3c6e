"""Installations of earlier versions: what they hold is there, readable and usable after the program was replaced.

`installations/*.tar.gz` were made by `tests/upgrade/make.py` at the version they are named after; every one is
upgraded anew by each run of the tests, so that no migration lands that loses something.
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
    """What the installation was, and what this version of the program finds in it."""
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
    """The upgrade is proven on real files, not on rows that a test wrote."""
    assert [path.name for path in INSTALLATIONS][:1] == ["before-the-rooms.tar.gz"]


def test_the_administrator_signs_in_and_the_doctor_finds_nothing(upgraded: dict[str, Any]) -> None:
    """The password holds, and databases, history, keys and every artifact's bytes are whole."""
    assert upgraded["is"]["signedIn"]
    assert upgraded["is"]["doctor"] == ""


def test_the_configuration_and_every_revision_are_there(upgraded: dict[str, Any]) -> None:
    """The export says all that it said before, every revision has its page, and the audit log, too."""
    was, now = upgraded["was"]["configuration"], dict(upgraded["is"]["configuration"])
    now["providers"] = [provider for provider in now["providers"] if "fromServices" not in provider]
    assert {name: now[name] for name in was} == was
    assert set(now) - set(was) == {"aliases", "agents"}
    assert set(upgraded["is"]["revisions"]) == {200}
    assert len(upgraded["is"]["revisions"]) == upgraded["was"]["revisions"]
    assert upgraded["is"]["audit"] == 200


def test_an_old_change_is_undone_and_an_old_revision_restored(upgraded: dict[str, Any]) -> None:
    """Going back works with what the old program wrote: revision 5 added an alias, revision 2 had temperature 0."""
    assert upgraded["is"]["undone"] == []
    assert upgraded["was"]["configuration"]["routing"]["through-keyed"]["temperature"] == 1
    assert upgraded["is"]["restored"] == 0


def test_every_request_is_in_the_log_with_its_words(upgraded: dict[str, Any]) -> None:
    """Its page comes, its status stands, and what was recorded of its words can be read."""
    was, now = upgraded["was"]["requests"], upgraded["is"]
    assert now["timelines"] == was
    assert {one: page["status"] for one, page in now["requests"].items()} == dict.fromkeys(was, 200)
    assert "这是什么" in now["requests"]["req_upgrade_1"]["text"]
    assert "keyed/m" in now["requests"]["req_upgrade_2"]["text"]


def test_why_an_old_request_failed_stands_there_as_it_was_logged(upgraded: dict[str, Any]) -> None:
    """The log kept English text once, and keeps code and facts now; what it kept is quoted as it is."""
    requests = upgraded["is"]["requests"]
    text = requests["req_upgrade_3"]["text"]
    assert '<q lang="en">All 1 candidates failed (echo/echo-503: echo-503 always fails;' in text
    assert '<q lang="en">echo-503 always fails; it is there to show a fallback.</q>' in text
    assert '<q lang="en">The model has vision and takes image/png.</q>' in requests["req_upgrade_1"]["text"]


def test_keys_and_files_are_as_they_were(upgraded: dict[str, Any]) -> None:
    """The agent's key opens the door, the provider's key is readable, every artifact's bytes are the same."""
    assert upgraded["is"]["models"] == 200
    assert upgraded["is"]["providerKey"] == upgraded["was"]["providerKey"]
    assert upgraded["is"]["artifacts"] == upgraded["was"]["artifacts"]
