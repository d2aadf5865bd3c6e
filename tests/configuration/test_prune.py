"""Pruning removes expired data with everything that belongs to it, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM
from capabilities.models import Agent
from routing_admin.configuration import snapshot
from routing_admin.configuration.installation import RetentionSettings
from routing_admin.console.settings.actions import set_retention
from routing_admin.console.settings.pruning import BATCH, UNDO_WINDOW, Pruned, prune
from routing_admin.models import AttemptLog, AuditEvent, Installation, RequestLog

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]
NOW = timezone.now()
DAY = timedelta(days=1)


def request(name: str, age: timedelta) -> RequestLog:
    row = RequestLog.objects.create(id=name, started_at=NOW - age, surface="chat", outcome="ok", body={"secret": name})
    AttemptLog.objects.create(request=row, position=0, provider="p", outcome="ok", at=row.started_at)
    return row


def artifact(data: bytes, **dates: Any) -> Artifact:
    row = store_bytes(SYSTEM, data, filename="a.bin")
    Artifact.objects.filter(pk=row.pk).update(**dates)
    return row


def test_expired_requests_are_removed_with_attempts_and_bodies() -> None:
    set_retention(SYSTEM, RetentionSettings(7))
    request("old", 7 * DAY + timedelta(seconds=1))
    request("young", 7 * DAY - timedelta(seconds=1))
    assert prune(SYSTEM, NOW).requests == 1
    assert list(RequestLog.objects.values_list("id", flat=True)) == ["young"]
    assert list(AttemptLog.objects.values_list("request_id", flat=True)) == ["young"]


def test_pruning_continues_in_batches() -> None:
    RequestLog.objects.bulk_create(
        RequestLog(id=f"r{n}", started_at=NOW - 31 * DAY, surface="chat", outcome="ok") for n in range(BATCH + 3)
    )
    assert prune(SYSTEM, NOW).requests == BATCH + 3
    assert not RequestLog.objects.exists()


def test_expired_and_long_deleted_artifacts_are_removed_with_their_bytes() -> None:
    expired = artifact(b"expired", expires_at=NOW - DAY)
    deleted = artifact(b"deleted", deleted_at=NOW - UNDO_WINDOW)
    recent = artifact(b"recent", deleted_at=NOW - UNDO_WINDOW + timedelta(minutes=1))
    living = artifact(b"living", expires_at=NOW + DAY)
    pruned = prune(SYSTEM, NOW)
    assert (pruned.artifacts, pruned.bytes) == (2, len(b"expired") + len(b"deleted"))
    stored = {row.pk: byte_store().exists(row.sha256) for row in (expired, deleted, recent, living)}
    assert stored == {expired.pk: False, deleted.pk: False, recent.pk: True, living.pk: True}
    assert set(Artifact.objects.values_list("pk", flat=True)) == {recent.pk, living.pk}


def test_bytes_shared_with_another_artifact_are_kept() -> None:
    """Equal files are stored only once."""
    expired, recent = artifact(b"the same", expires_at=NOW - DAY), artifact(b"the same")
    pruned = prune(SYSTEM, NOW)
    assert (pruned.artifacts, pruned.bytes) == (1, 0)
    assert expired.sha256 == recent.sha256
    byte_store().verify(recent.sha256)


def test_expired_sessions_and_run_time_agents_are_removed() -> None:
    Session.objects.create(session_key="ended", session_data="", expire_date=NOW - DAY)
    Session.objects.create(session_key="open", session_data="", expire_date=NOW + DAY)
    Agent.objects.create(agent_id="old", origin=Agent.Origin.RUNTIME, expires_at=NOW - 2 * UNDO_WINDOW)
    Agent.objects.create(agent_id="living", origin=Agent.Origin.RUNTIME, expires_at=NOW + DAY)
    Agent.objects.create(agent_id="ours", expires_at=NOW - 2 * UNDO_WINDOW)
    pruned = prune(SYSTEM, NOW)
    assert (pruned.sessions, pruned.agents) == (1, 1)
    assert set(Agent.objects.values_list("agent_id", flat=True)) == {"living", "ours"}


def test_every_prune_is_audited() -> None:
    """Even pruning that removes nothing is audited. The alert for overdue pruning needs to know when it last ran."""
    Installation.objects.get_or_create(id=1)
    request("old", 31 * DAY)
    prune(SYSTEM, NOW)
    assert AuditEvent.objects.get(action="installation.prune").details["requests"] == 1
    assert prune(SYSTEM, NOW) == Pruned()
    assert AuditEvent.objects.filter(action="installation.prune").count() == 2


def test_prune_command_reports_the_removed_items(capsys: pytest.CaptureFixture[str]) -> None:
    request("old", 31 * DAY)
    snapshot.refresh()
    call_command("prune")
    assert capsys.readouterr().out.startswith("Removed 1 request, 0 artifacts (0 B)")


def test_prune_command_options_remove_requests_and_deleted_artifacts_earlier() -> None:
    recent, living = artifact(b"recent", deleted_at=timezone.now()), artifact(b"living")
    request("old", 3 * DAY)
    request("young", DAY)
    call_command("prune", "--requests", "2")
    assert list(RequestLog.objects.values_list("id", flat=True)) == ["young"]
    assert byte_store().exists(recent.sha256)
    call_command("prune", "--deleted")
    assert (byte_store().exists(recent.sha256), byte_store().exists(living.sha256)) == (False, True)
