"""Health checks for orchestrators: liveness, readiness, and the state of dependencies."""

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
from routing_admin.platform.server import readiness
from routing_admin.platform.server.draining import Draining
from routing_admin.platform.server.readiness import DependencyCheck

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture(autouse=True)
def known(demo: object) -> None:
    """Read the configuration once, as upkeep does at the start of a process."""
    snapshot.current()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow probes more time, for a busy machine."""
    monkeypatch.setattr(readiness, "PROBE_SECONDS", 60.0)


def ask(address: str) -> tuple[int, dict[str, Any]]:
    answer = Client().get(address)
    return answer.status_code, answer.json()


@pytest.fixture
def hanging(settings: Any) -> Iterator[Bucket]:
    """Store artifacts in a bucket whose service accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings.ARTIFACTS_BUCKET = Bucket(name="files", endpoint=endpoint, region="us-east-1", allows_http=True)
        yield settings.ARTIFACTS_BUCKET


def test_a_server_whose_dependencies_work_is_ready(patient: None) -> None:
    """`/readyz` and `/readyz?full` are ok if all dependencies work."""
    for address in ("/readyz", "/readyz?full"):
        status, said = ask(address)
        assert (status, said["status"], said["degraded"]) == (200, "ok", [])
        assert said["checks"] == {"server": "ok", "databases": "ok", "configuration": "ok", "artifacts": "ok"}


def test_a_dependency_that_hangs_is_named_and_no_probe_waits_for_its_answer(hanging: Bucket) -> None:
    """If the artifact store hangs, `/readyz` is degraded but 200, and only `/readyz?full` fails."""
    status, said = ask("/readyz")
    assert (status, said["status"]) == (200, "degraded")
    assert "artifacts" in said["degraded"]
    status, said = ask("/readyz?full")
    assert (status, said["status"], said["checks"]["artifacts"]) == (503, "failed", "failed")


def test_a_check_that_hangs_keeps_one_thread_however_often_it_is_asked() -> None:
    """A hanging check uses a single thread; further checks do not start another."""
    begun, answers = [], threading.Event()

    def hang() -> None:
        begun.append(1)
        answers.wait()

    check = DependencyCheck("hanging", hang)
    for _ in range(3):
        check.begin()
        assert not check.works()
    assert len(begun) == 1
    answers.set()


def test_an_outage_is_logged_once_and_so_is_its_end(patient: None, caplog: pytest.LogCaptureFixture) -> None:
    """A failing check is logged once, and so is its recovery."""
    problems = [LookupError("the disk is gone"), LookupError("the disk is gone"), None]

    def look() -> None:
        if problem := problems.pop(0):
            raise problem

    check = DependencyCheck("disk", look)
    for works in (False, False, True):
        check.begin()
        assert check.works() == works
    words = [each.getMessage() for each in caplog.records if "of disk" in each.getMessage()]
    assert words == ["readiness check of disk failed: the disk is gone", "readiness check of disk works again"]


def test_a_process_that_has_never_read_a_configuration_is_not_ready() -> None:
    """A process without a configuration is not ready, since it can answer no call."""
    renew(snapshot.newest)
    status, said = ask("/readyz")
    assert (status, said["status"], said["checks"]["server"]) == (503, "failed", "without configuration")


def test_a_configuration_in_memory_is_good_for_as_long_as_keys_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that could not read its configuration for 15 minutes is not ready."""
    now = [0.0]
    monkeypatch.setattr(snapshot.newest(), "_clock", lambda: now[0])
    snapshot.refresh()
    monkeypatch.setattr(snapshot.newest(), "_ask_stamp", lambda: 1 / 0)
    now[0] = 1.0
    snapshot.look()
    assert ask("/readyz")[1]["checks"]["server"] == "ok"
    now[0] = OUTAGE_SECONDS
    assert ask("/readyz")[1]["checks"]["server"] == "without configuration"


async def test_a_process_that_ends_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draining process is not ready, so that it gets no further requests."""
    ending = Draining()
    monkeypatch.setattr(readiness, "draining", lambda: ending)
    assert readiness.state_of_server() == "ok"
    ending.schedule_end()
    assert readiness.state_of_server() == "draining"


def test_whether_the_process_lives_is_no_question_to_a_dependency(
    hanging: Bucket, django_assert_num_queries: Any
) -> None:
    """The liveness check makes no query and does not call the artifact store."""
    for alias in ("default", "logs"):
        with django_assert_num_queries(0, using=alias):
            assert Client().get("/healthz").status_code == 200
