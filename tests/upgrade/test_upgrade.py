"""After an upgrade from an earlier version, all the installation's data is still there and usable.

Each `installations/*.tar.gz` was created by `tests/upgrade/make.py` of the version in its name. Each test run upgrades
all of them, so a migration that loses data fails a test.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.preloaded import run_python

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
INSTALLATIONS = sorted((HERE / "installations").glob("*.tar.gz"))


@pytest.fixture(scope="module", params=INSTALLATIONS, ids=lambda path: path.name)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Upgrade an installation. Return what it contained before, and what this version finds in it."""
    folder = tmp_path_factory.mktemp("upgrade")
    shutil.unpack_archive(request.param, folder)
    for name in ("keys", "secret_key"):
        (folder / name).chmod(0o600)
    result = run_python(os.environ, "-m", "tests.upgrade.look", str(folder))
    assert result.returncode == 0, result.stderr
    current = json.loads(result.stdout.splitlines()[-1])
    return {"archive": request.param, "is": current, "was": json.loads((folder / "expected.json").read_text())}


def test_archives_of_the_earliest_and_the_previous_version_exist() -> None:
    assert [path.name for path in INSTALLATIONS] == ["before-the-rooms.tar.gz", "from-2026-11-25.tar.gz"]


def test_administrator_can_sign_in_and_doctor_finds_no_problem(upgraded: dict[str, Any]) -> None:
    assert upgraded["is"]["signedIn"]
    assert upgraded["is"]["doctor"] == ""


def test_configuration_and_every_revision_are_kept(upgraded: dict[str, Any]) -> None:
    """The export has the same entries as before. Every revision and the audit log can be opened."""
    before, after = (dict(upgraded[when]["configuration"]) for when in ("was", "is"))
    for configuration in (before, after):  # The earliest version did not export providers made from services.
        configuration["providers"] = [
            provider for provider in configuration["providers"] if "fromServices" not in provider
        ]
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {"aliases", "agents"}
    assert set(upgraded["is"]["revisions"]) == {200}
    assert len(upgraded["is"]["revisions"]) == upgraded["was"]["revisions"]
    assert upgraded["is"]["audit"] == 200


def test_old_change_can_be_undone_and_old_revision_restored(upgraded: dict[str, Any]) -> None:
    assert upgraded["is"]["undone"] == []
    assert upgraded["was"]["configuration"]["routing"]["through-keyed"]["temperature"] == 1
    assert upgraded["is"]["restored"] == 0


def test_every_request_is_in_the_log_with_its_bodies(upgraded: dict[str, Any]) -> None:
    before, after = upgraded["was"]["requests"], upgraded["is"]
    assert after["timelines"] == before
    assert {request_id: page["status"] for request_id, page in after["requests"].items()} == dict.fromkeys(before, 200)
    assert "这是什么" in after["requests"]["req_upgrade_1"]["text"]
    assert "keyed/m" in after["requests"]["req_upgrade_2"]["text"]


def test_old_errors_are_quoted_as_they_were_logged(upgraded: dict[str, Any]) -> None:
    if upgraded["archive"] != INSTALLATIONS[0]:
        pytest.skip("it logged codes")
    requests = upgraded["is"]["requests"]
    text = requests["req_upgrade_3"]["text"]
    assert '<q lang="en">All 1 candidates failed (echo/echo-503: echo-503 always fails;' in text
    assert '<q lang="en">echo-503 always fails; it is there to show a fallback.</q>' in text
    assert '<q lang="en">The model has vision and takes image/png.</q>' in requests["req_upgrade_1"]["text"]


def test_keys_and_files_are_unchanged(upgraded: dict[str, Any]) -> None:
    assert upgraded["is"]["models"] == 200
    assert upgraded["is"]["providerKey"] == upgraded["was"]["providerKey"]
    assert upgraded["is"]["artifacts"] == upgraded["was"]["artifacts"]
