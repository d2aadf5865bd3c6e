"""If `llmservices.local.json` exists, it is read instead of the `llmservices.json` next to it."""

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


def services_text(name: str) -> str:
    entry = {"id": name, "name": name, "baseURL": "https://api.example.com/v1", "model": "m"}
    fields = {"apiKey": "", "capabilityTags": [], "capabilities": {"input": ["text"], "output": ["text"]}}
    return json.dumps({"services": [{**entry, **fields, "description": "A model."}]})


@pytest.fixture
def common_file(tmp_path: Path) -> Path:
    (tmp_path / "llmservices.json").write_text(services_text("common"))
    (tmp_path / "llmservices.local.json").write_text(services_text("local"))
    return tmp_path / "llmservices.json"


def run_command(*arguments: Any) -> tuple[str, str]:
    output, errors = StringIO(), StringIO()
    call_command(*[str(argument) for argument in arguments], stdout=output, stderr=errors)
    return output.getvalue(), errors.getvalue()


def stored_service_ids() -> list[str]:
    return [service.id for service in snapshot.refresh().configuration.services]


@pytest.mark.requirement("MCR-1.1")
def test_import_config_reads_and_reports_the_local_file(common_file: Path) -> None:
    _, messages = run_command("import_config", common_file)
    assert f"Reading {common_file.with_name('llmservices.local.json')} instead of {common_file}." in messages
    assert stored_service_ids() == ["local"]


def test_local_file_passed_with_the_common_file_is_imported_once(common_file: Path) -> None:
    run_command("import_config", common_file, common_file.with_name("llmservices.local.json"))
    assert stored_service_ids() == ["local"]


def test_common_file_is_read_if_there_is_no_local_file(common_file: Path) -> None:
    common_file.with_name("llmservices.local.json").unlink()
    _, messages = run_command("import_config", common_file)
    assert "instead" not in messages
    assert stored_service_ids() == ["common"]


def test_check_config_checks_the_local_file(common_file: Path) -> None:
    common_file.with_name("llmservices.local.json").write_text("{}")
    with pytest.raises(SystemExit):
        run_command("check_config", common_file)
    assert not Revision.objects.exists()


def test_first_start_reads_the_local_file(common_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_SERVICES_CONFIG", str(common_file))
    monkeypatch.delenv("LLM_ROUTING_CONFIG", raising=False)
    _, messages = run_command("bootstrap", "--no-demo")
    assert "llmservices.local.json instead of" in messages
    assert stored_service_ids() == ["local"]
