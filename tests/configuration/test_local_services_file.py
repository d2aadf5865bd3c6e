"""`llmservices.local.json` is read instead of `llmservices.json` next to it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from routing_admin.configuration import snapshot
from routing_admin.models import Revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def services(name: str) -> str:
    entry = {"id": name, "name": name, "baseURL": "https://api.example.com/v1", "model": "m"}
    fields = {"apiKey": "", "capabilityTags": [], "capabilities": {"input": ["text"], "output": ["text"]}}
    return json.dumps({"services": [{**entry, **fields, "description": "A model."}]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "llmservices.json").write_text(services("common"))
    (tmp_path / "llmservices.local.json").write_text(services("local"))
    return tmp_path / "llmservices.json"


def run(*arguments: Any) -> tuple[str, str]:
    output, errors = StringIO(), StringIO()
    call_command(*[str(argument) for argument in arguments], stdout=output, stderr=errors)
    return output.getvalue(), errors.getvalue()


def stored() -> list[str]:
    return [service.id for service in snapshot.refresh().configuration.services]


@pytest.mark.requirement("MCR-1.1")
def test_import_config_reads_and_reports_the_local_file(file: Path) -> None:
    _, messages = run("import_config", file)
    assert f"Reading {file.with_name('llmservices.local.json')} instead of {file}." in messages
    assert stored() == ["local"]


def test_local_file_passed_with_the_common_file_is_imported_once(file: Path) -> None:
    run("import_config", file, file.with_name("llmservices.local.json"))
    assert stored() == ["local"]


def test_common_file_is_read_if_there_is_no_local_file(file: Path) -> None:
    file.with_name("llmservices.local.json").unlink()
    _, messages = run("import_config", file)
    assert "instead" not in messages
    assert stored() == ["common"]


def test_check_config_checks_the_local_file(file: Path) -> None:
    file.with_name("llmservices.local.json").write_text("{}")
    with pytest.raises(SystemExit):
        run("check_config", file)
    assert not Revision.objects.exists()


def test_first_start_reads_the_local_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_SERVICES_CONFIG", str(file))
    monkeypatch.delenv("LLM_ROUTING_CONFIG", raising=False)
    _, messages = run("bootstrap", "--no-demo")
    assert "llmservices.local.json instead of" in messages
    assert stored() == ["local"]
