"""After every change, `ROUTING_ADMIN_PUBLISH_DIR` contains complete copies of both configuration files."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from capabilities.actors import SYSTEM
from capabilities.models import Agent, Provider
from routing_admin.configuration import exports, snapshot
from routing_admin.configuration.agents.actions import issue_key
from routing_admin.configuration.publishing import Publisher
from routing_admin.console.history.actions import undo
from routing_admin.console.providers.actions import save_provider
from routing_admin.models import Revision
from tests.cast import load_demo
from tests.console.another_process import another_process

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
NAMES = ["llm-routing.json", "llmservices.json"]


def add_provider(name: str) -> None:
    row = Provider(name=name, endpoint="https://api.example", default_model="m")
    save_provider(SYSTEM, row)


def test_every_change_publishes_both_files(demo: None, settings: Any, tmp_path: Path) -> None:
    settings.PUBLISH_DIR = str(tmp_path / "published")
    for name in ("one", "two"):
        add_provider(name)
        files = sorted((tmp_path / "published").iterdir())
        assert [file.name for file in files] == NAMES
        assert [file.read_text() for file in files] == [exports.export(item).text for item in exports.FILES]
        assert [file.stat().st_mode & 0o777 for file in files] == [0o644, 0o644]
        assert name in [provider["providerName"] for provider in json.loads(files[0].read_text())["providers"]]


def test_undo_is_published(demo: None, settings: Any, tmp_path: Path) -> None:
    settings.PUBLISH_DIR = str(tmp_path)
    before = exports.export(exports.FILES[0]).text
    add_provider("one")
    undo(SYSTEM, Revision.objects.first().number)
    assert (tmp_path / NAMES[0]).read_text() == before


def test_action_without_a_configuration_change_publishes_nothing(demo: None, settings: Any, tmp_path: Path) -> None:
    settings.PUBLISH_DIR = str(tmp_path)
    issue_key(SYSTEM, Agent.objects.get(agent_id="text-agent"))
    assert list(tmp_path.iterdir()) == []


def test_unwritable_publish_directory_is_logged_and_does_not_prevent_changes(
    demo: None, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    settings.PUBLISH_DIR = str(tmp_path / "file" / "below")
    with caplog.at_level(logging.ERROR):
        add_provider("one")
    assert Provider.objects.filter(name="one").exists()
    assert [
        line for line in caplog.messages if line.startswith("ROUTING_ADMIN_PUBLISH_DIR: the files could not be written")
    ]


def publish_in_another_process(settings: Any, directory: Path) -> None:
    """Simulate a change by another process that has no publish directory or was killed before it published."""
    settings.PUBLISH_DIR = ""
    add_provider("unpublished")
    settings.PUBLISH_DIR = str(directory)


def test_serving_process_publishes_changes_of_other_processes(demo: None, settings: Any, tmp_path: Path) -> None:
    publisher = Publisher()
    settings.PUBLISH_DIR = str(tmp_path)
    publisher.look()
    assert [file.name for file in sorted(tmp_path.iterdir())] == NAMES
    publish_in_another_process(settings, tmp_path)
    publisher.look()
    assert "unpublished" in (tmp_path / NAMES[0]).read_text()
    numbers = [file.stat().st_ino for file in sorted(tmp_path.iterdir())]
    publisher.look()
    Publisher().look()
    assert [file.stat().st_ino for file in sorted(tmp_path.iterdir())] == numbers


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
def test_newest_revision_is_published(settings: Any, tmp_path: Path) -> None:
    """The cached snapshot may be older than the newest revision."""
    load_demo()
    settings.PUBLISH_DIR = str(tmp_path)
    with another_process() as bob:
        snapshot.refresh()
        bob.save_route("bobs")
        Publisher().publish()
    assert "bobs" in (tmp_path / NAMES[0]).read_text()
