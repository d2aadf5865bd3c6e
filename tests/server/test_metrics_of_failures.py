"""Metrics about problems: cooldowns, free disk space, rejected keys, backups and outages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from capabilities.actors import SYSTEM, AuditedAction
from capabilities.core.wire import Failure, Fault
from capabilities.models import AgentKey
from capabilities.runtime import renew
from routing_admin.configuration.revisions import ledger
from routing_admin.core.fallback.policy import Policy
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import Installation
from routing_admin.paths import program_version
from tests.cast import AgentProgram
from tests.server.metric_samples import read_samples

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def sample_value(name: str, **labels: str) -> float | None:
    return read_samples().get((f"routing_admin_{name}", frozenset(labels.items())))


def test_cooldown_is_reported_with_its_remaining_seconds_and_fault(demo: None) -> None:
    """The cooldown of an account without credit lasts about ten minutes."""
    assert not [name for name, _ in read_samples() if name == "routing_admin_cooling_seconds"]
    failure = Failure(Fault.HTTP_402, "", 402)
    process_run_context().cooldowns.record_failure("echo", "m", failure, Policy().verdict(failure))
    remaining = sample_value("cooling_seconds", provider="echo", model="", fault="http_402")
    renew(process_run_context)
    assert remaining is not None
    assert 500 < remaining <= 660


def test_rejected_keys_are_counted_by_api_and_code(demo: None) -> None:
    before = read_samples()
    wrong_key = {"authorization": "Bearer ra_00000000_nobody"}
    Client().get("/v1/models", headers=wrong_key)
    Client().get("/api/v1/agents/me", headers=wrong_key)
    Client().get("/api/v1/admin/providers")
    doors = (("v1", "key_invalid"), ("api", "key_invalid"), ("admin", "token_missing"))
    for door, code in doors:
        series = ("routing_admin_keys_refused_total", frozenset({("door", door), ("code", code)}))
        assert read_samples()[series] == before.get(series, 0) + 1


def test_disk_space_and_artifact_size_are_reported(caller: Callable[..., AgentProgram]) -> None:
    used = sample_value("artifact_bytes")
    caller("text-agent").stored("a.bin", bytes(range(200)))
    assert sample_value("artifact_bytes") == (used or 0) + 200
    assert (sample_value("disk_free_bytes") or 0) > 0
    assert sample_value("artifact_quota_bytes") is None
    Installation.objects.update(quota_bytes=5000)
    assert sample_value("artifact_quota_bytes") == 5000


def test_version_engines_and_last_backup_are_reported(demo: None) -> None:
    info = next(dict(labels) for name, labels in read_samples() if name == "routing_admin_info")
    assert (info["version"], info["database"], info["artifacts"]) == (program_version(), connection.vendor, "files")
    assert info["migration"].startswith("00")
    assert sample_value("last_backup_timestamp_seconds") is None
    with ledger.audit(SYSTEM, AuditedAction("installation.backup")):
        pass
    assert abs((sample_value("last_backup_timestamp_seconds") or 0) - time.time()) < 3600


def test_keys_signed_with_an_older_secret_are_counted(key: str) -> None:
    assert sample_value("keys_behind", kind="agent") == 0
    AgentKey.objects.update(signed_with="older")
    assert sample_value("keys_behind", kind="agent") == 1
    assert sample_value("keys_behind", kind="token") == 0


def test_metrics_that_need_no_database_are_reported_during_a_database_outage(demo: None) -> None:
    assert sample_value("database_up") == 1

    def fail(*_: Any) -> None:
        raise OperationalError("the server is gone")

    with connection.execute_wrapper(fail):
        names = {name for name, _ in read_samples()}
        assert sample_value("database_up") == 0
    assert {"routing_admin_disk_free_bytes", "routing_admin_revision"} <= names
    assert "routing_admin_artifacts" not in names
