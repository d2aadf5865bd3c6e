"""Every command block marked `run` in docs/automation.md works against a served demo."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from capabilities.core.permissions import ADMIN_SCOPES
from capabilities.core.services.agent_limits import CURRENCY, MODELS, Meter
from capabilities.models import Provider
from routing_admin.models import AuditEvent, TaskRoute
from tests.cast import create_token, load_demo, person

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "automation.md"
TEXT = DOCUMENT.read_text("utf-8")
BLOCKS = re.findall(r"```sh run\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
def test_documented_commands_work_in_order(live_server: Any, tmp_path: Path) -> None:
    load_demo()
    (tmp_path / ".curlrc").write_text("fail-with-body\nshow-error\n")
    surroundings = {
        "BASE": live_server.url,
        "TOKEN": create_token(person("admin", is_staff=True)),
        "HOME": str(tmp_path),
    }
    surroundings["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    assert len(BLOCKS) > 5
    for block in BLOCKS:
        completed = subprocess.run(
            ["/bin/sh", "-ec", block], env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert completed.returncode == 0, f"{block}\n{completed.stdout}\n{completed.stderr}"
    assert Provider.objects.get(name="deepseek").key_source == "stored"
    assert TaskRoute.objects.get(task_type="planning").candidates.count() == 2
    by_token = AuditEvent.objects.filter(actor="admin's token deploy").values_list("action", flat=True)
    assert {"provider.add", "service.add", "route.change", "agent.add", "key.issue", "agent.delete"} <= set(by_token)


def test_automation_document_names_every_scope_and_limit() -> None:
    code_words = set(re.findall(r"`(\w+)`", TEXT))
    assert {scope.partition(":")[0] for scope in ADMIN_SCOPES} <= code_words
    assert {MODELS, CURRENCY, *(meter.value for meter in Meter)} <= code_words
