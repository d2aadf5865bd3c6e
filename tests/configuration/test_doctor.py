"""The `doctor` command finds each kind of damage, says where it is, and changes nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.core.management import call_command

from artifacts.library import store_bytes
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM, AuditedAction
from capabilities.models import Provider, Service
from capabilities.secrets import store_key
from routing_admin.configuration import integrity
from routing_admin.configuration.integrity import CHECKS
from routing_admin.configuration.revisions import ledger
from routing_admin.console.demo import load as demo
from routing_admin.models import Revision, TaskRoute
from tests.stored_bytes import overwrite

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


@pytest.fixture(autouse=True)
def _complete_installation() -> None:
    demo.load()
    User.objects.create_superuser("admin", password="correct horse battery staple")


def problems() -> dict[str, list[str]]:
    return {name: found_problems for name, check in CHECKS.items() if (found_problems := check())}


def test_doctor_reports_no_problem_for_an_intact_installation(capsys: pytest.CaptureFixture[str]) -> None:
    store_bytes(SYSTEM, b"whole", filename="a.bin")
    assert problems() == {}
    call_command("doctor")
    output = capsys.readouterr().out
    assert re.findall(r"^(?:ok|warn(?= open files| file readers)) +([a-z ]+)", output, re.MULTILINE) == [
        *("databases", "migrations", "configuration", "history", "audit log", "provider keys", "artifact store"),
        *("artifacts", "administrators", "data directory", "artifacts are in", "redis", "open files"),
        *("file types", "file readers", "pages of other origins", "models", "routes", "budgets", "prices"),
    ]


def test_retired_model_is_reported_with_date_and_successor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gpt-4`, the default of LLM_MODEL, is reported even if the variable is not set."""
    with ledger.change(SYSTEM, AuditedAction("test")):
        Provider.objects.filter(name="anthropic").update(default_model="claude-3-7-sonnet-20250219")
    monkeypatch.setenv("LLM_API_KEY", "sk-test")
    monkeypatch.delenv("LLM_MODEL", raising=False)
    call_command("doctor")
    lines = capsys.readouterr().out.splitlines()
    assert "late models: anthropic/claude-3-7-sonnet-20250219 was retired on 2026-02-19 (Anthropic SDK 2.12.0)" in lines
    (gpt_4,) = [line for line in lines if "LLM_MODEL" in line]
    assert gpt_4.startswith("late models: LLM_MODEL openai/gpt-4 was retired on 2026-10-23 (OpenAI SDK 3.54.0)")
    assert "its vendor recommends gpt-5.6-sol (https://developers.openai.com/" in gpt_4


def test_contested_price_is_a_warning_until_the_administrator_sets_a_price(capsys: pytest.CaptureFixture[str]) -> None:
    address, model = "https://api.mistral.ai/v1", "magistral-medium-latest"
    with ledger.change(SYSTEM, AuditedAction("service.add", "service", "paid")):
        provider = Provider.objects.create(name="paid", endpoint=address, default_model=model, key_source="none")
        Service.objects.create(service_id="paid", name="paid", provider=provider, model=model)
    call_command("doctor")
    assert f"warn prices: lists differ on paid/{model}; set its price" in capsys.readouterr().out
    with ledger.change(SYSTEM, AuditedAction("service.edit", "service", "paid")):
        Service.objects.filter(service_id="paid").update(price={"currency": "USD", "input": 2, "output": 5})
    call_command("doctor")
    assert "ok   prices: no price in use is contested" in capsys.readouterr().out


def test_missing_and_damaged_bytes_are_reported_with_their_artifact() -> None:
    missing = store_bytes(SYSTEM, b"will be missing", filename="a.bin")
    damaged = store_bytes(SYSTEM, b"will be damaged", filename="b.bin")
    byte_store().delete(missing.sha256)
    overwrite(byte_store(), damaged.sha256, b"will be DAMAGED")
    lines = " ".join(problems()["artifacts"])
    assert missing.pk in lines
    assert damaged.pk in lines


def test_rows_that_differ_from_the_newest_revision_are_reported() -> None:
    TaskRoute.objects.filter(task_type="planning").update(temperature=1.5)
    assert list(problems()) == ["configuration"]


def test_modified_revision_is_reported() -> None:
    """A changed revision no longer matches its digest."""
    revision = Revision.objects.latest("number")
    revision.snapshot["providers"] = []
    Revision.objects.filter(pk=revision.pk).update(snapshot=revision.snapshot)
    assert f"Revision {revision.number} is not what was written" in problems()["history"][0]


def test_undecryptable_provider_key_is_reported_without_its_content(settings: Any) -> None:
    with ledger.change(SYSTEM, AuditedAction("test")):
        provider = Provider.objects.get(name="openai")
        provider.key_source = "stored"
        provider.stored_key = store_key("sk-very-secret-1234", provider.endpoint)
        provider.save()
    assert problems() == {}
    settings.SECRET_FILES = {}  # Without this, the old encryption key would be read from its file again.
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    lines = problems()["provider keys"]
    assert lines[0].startswith("openai: ")
    assert "secret" not in lines[0]


def test_missing_administrator_is_reported_with_the_command_to_set_a_password(
    capsys: pytest.CaptureFixture[str],
) -> None:
    User.objects.update(is_active=False)
    with pytest.raises(SystemExit) as end:
        call_command("doctor")
    assert end.value.code == 1
    assert "set-password" in capsys.readouterr().err


def test_secrets_readable_by_others_are_reported_with_a_chmod_command(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    os.chmod(tmp_path, 0o700)
    for name in ("keys", "routing_admin.sqlite3", "logs.sqlite3-wal"):
        (tmp_path / name).write_text("k")
        os.chmod(tmp_path / name, 0o644)
        assert integrity.file_permissions() == [
            f"{tmp_path / name} can be read by others. Run: chmod 600 {tmp_path / name}"
        ]
        os.chmod(tmp_path / name, 0o600)
    os.chmod(tmp_path, 0o755)
    assert integrity.file_permissions() == [f"{tmp_path} can be read by others. Run: chmod 700 {tmp_path}"]


def test_startup_makes_files_of_an_earlier_version_private(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    for name, mode in (("logs.sqlite3", 0o644), ("keys", 0o600)):
        (tmp_path / name).write_text("k")
        os.chmod(tmp_path / name, mode)
    os.chmod(tmp_path, 0o755)
    assert integrity.restrict_permissions() == [str(tmp_path), str(tmp_path / "logs.sqlite3")]
    assert integrity.file_permissions() == []
    assert integrity.restrict_permissions() == []
