"""Health checks for orchestrators: liveness, readiness and the state of each dependency."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from artifacts.core.bucket import Bucket
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.configuration.stamped_cache import OUTAGE_SECONDS
from routing_admin.platform.server import health_checks
from routing_admin.platform.server.draining import Draining
from routing_admin.platform.server.health_checks import DependencyCheck

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture(autouse=True)
def loaded_configuration(demo: object) -> None:
    """Load the configuration once, as the upkeep thread does when a process starts."""
    snapshot.current()


@pytest.fixture
def long_probe_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the checks more time, since the machine may be busy."""
    monkeypatch.setattr(health_checks, "PROBE_SECONDS", 60.0)


def ask(address: str) -> tuple[int, dict[str, Any]]:
    answer = Client().get(address)
    return answer.status_code, answer.json()


@pytest.fixture
def hanging_bucket(settings: Any) -> Iterator[Bucket]:
    """Store artifacts in a bucket whose service accepts connections but never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings.ARTIFACTS_BUCKET = Bucket(name="files", endpoint=endpoint, region="us-east-1", allows_http=True)
        yield settings.ARTIFACTS_BUCKET


def test_server_with_working_dependencies_is_ready(long_probe_time: None) -> None:
    for address in ("/readyz", "/readyz?full"):
        status, state = ask(address)
        assert (status, state["status"], state["degraded"]) == (200, "ok", [])
        assert state["checks"] == {"server": "ok", "databases": "ok", "configuration": "ok", "artifacts": "ok"}


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/readyz", 200), ("/metrics", 400), ("/", 400)])
def test_only_health_probes_accept_any_host_name(path: str, status: int, long_probe_time: None) -> None:
    """Kubernetes addresses pods by IP address. At other URLs, an unknown host name may be a DNS rebinding attack."""
    assert Client().get(path, headers={"host": "10.1.2.3:8000"}).status_code == status


def test_hanging_dependency_is_reported_without_delaying_the_probe(hanging_bucket: Bucket) -> None:
    status, state = ask("/readyz")
    assert (status, state["status"]) == (200, "degraded")
    assert "artifacts" in state["degraded"]
    status, state = ask("/readyz?full")
    assert (status, state["status"], state["checks"]["artifacts"]) == (503, "failed", "failed")


def test_hanging_check_uses_a_single_thread() -> None:
    started_checks, responds = [], threading.Event()

    def hang() -> None:
        started_checks.append(1)
        responds.wait()

    check = DependencyCheck("hanging", hang)
    for _ in range(3):
        check.begin()
        assert not check.works()
    assert len(started_checks) == 1
    responds.set()


def test_dependency_outage_and_recovery_are_logged_once(
    long_probe_time: None, caplog: pytest.LogCaptureFixture
) -> None:
    problems = [LookupError("the disk is gone"), LookupError("the disk is gone"), None]

    def fail_twice() -> None:
        if problem := problems.pop(0):
            raise problem

    check = DependencyCheck("disk", fail_twice)
    for works in (False, False, True):
        check.begin()
        assert check.works() == works
    messages = [record.getMessage() for record in caplog.records if "of disk" in record.getMessage()]
    assert messages == ["readiness check of disk failed: the disk is gone", "readiness check of disk works again"]


def test_process_without_a_configuration_is_not_ready() -> None:
    """Without a configuration, a process cannot answer any call."""
    renew(snapshot.newest)
    status, state = ask("/readyz")
    assert (status, state["status"], state["checks"]["server"]) == (503, "failed", "without configuration")


def test_process_is_not_ready_after_15_minutes_without_reading_its_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(snapshot.newest(), "_clock", lambda: now[0])
    snapshot.refresh()
    monkeypatch.setattr(snapshot.newest(), "_ask_stamp", lambda: 1 / 0)
    now[0] = 1.0
    snapshot.look()
    assert ask("/readyz")[1]["checks"]["server"] == "ok"
    now[0] = OUTAGE_SECONDS
    assert ask("/readyz")[1]["checks"]["server"] == "without configuration"


async def test_draining_process_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """An orchestrator then sends no further requests to the draining process."""
    draining = Draining()
    monkeypatch.setattr(health_checks, "draining", lambda: draining)
    assert health_checks.server_state() == "ok"
    draining.schedule_end()
    assert health_checks.server_state() == "draining"


def test_liveness_check_queries_no_dependency(hanging_bucket: Bucket, django_assert_num_queries: Any) -> None:
    for alias in ("default", "logs"):
        with django_assert_num_queries(0, using=alias):
            assert Client().get("/healthz").status_code == 200
