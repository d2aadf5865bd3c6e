"""`ROUTING_ADMIN_PUBLISH_DIR`: after every change both files stand there, whole."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from capabilities import actions as capability_actions
from capabilities.acts import SYSTEM
from capabilities.models import Agent, Provider
from routing_admin import actions
from routing_admin.configuration import exports
from routing_admin.models import Revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
NAMES = ["llm-routing.json", "llmservices.json"]


def add_provider(name: str) -> None:
    """A change of the configuration."""
    row = Provider(name=name, endpoint="https://api.example", default_model="m")
    capability_actions.save_provider(SYSTEM, row)


def test_every_change_writes_both_files(demo: None, settings: Any, tmp_path: Path) -> None:
    """Law: as `export_config` writes them, for others to read, and nothing half written beside them."""
    settings.PUBLISH_DIR = str(tmp_path / "published")
    for name in ("one", "two"):
        add_provider(name)
        files = sorted((tmp_path / "published").iterdir())
        assert [file.name for file in files] == NAMES
        assert [file.read_text() for file in files] == [exports.export(item).text for item in exports.FILES]
        assert [file.stat().st_mode & 0o777 for file in files] == [0o644, 0o644]
        assert name in [each["providerName"] for each in json.loads(files[0].read_text())["providers"]]


def test_undo_is_published_too(demo: None, settings: Any, tmp_path: Path) -> None:
    """Law: what is in use stands there, whichever way it came."""
    settings.PUBLISH_DIR = str(tmp_path)
    before = exports.export(exports.FILES[0]).text
    add_provider("one")
    actions.undo(SYSTEM, Revision.objects.first().number)
    assert (tmp_path / NAMES[0]).read_text() == before


def test_an_act_that_changes_no_configuration_publishes_nothing(demo: None, settings: Any, tmp_path: Path) -> None:
    """Law: the files are those of the newest revision, and no other moment's."""
    settings.PUBLISH_DIR = str(tmp_path)
    capability_actions.issue_key(SYSTEM, Agent.objects.get(agent_id="text-agent"))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_stops_no_change(
    demo: None, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Law: the change stands, and the log names the setting and the reason."""
    (tmp_path / "file").write_text("")
    settings.PUBLISH_DIR = str(tmp_path / "file" / "below")
    with caplog.at_level(logging.ERROR):
        add_provider("one")
    assert Provider.objects.filter(name="one").exists()
    assert [line for line in caplog.messages if line.startswith("ROUTING_ADMIN_PUBLISH_DIR: llm-routing")]
