"""`/metrics` of a server with two worker processes: each scrape covers both processes."""

from __future__ import annotations

import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from routing_admin.platform.server.worker_board import PREFIX
from tests.gateway.serving import Server, served
from tests.processes import NO_CERTIFICATES, free_port

CALLS = 16
WAIT_SECONDS = 60
Numbers = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("metrics")
    with served(folder, settings={"METRICS_PORT": str(port)}, options=("--workers", "2")) as server:
        yield server


def scrape(port: int) -> Numbers:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        families = text_string_to_metric_families(response.read().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def requests_in(numbers: Numbers) -> float:
    return sum(value for (name, _), value in numbers.items() if name == "routing_admin_requests_total")


def workers_in(numbers: Numbers) -> dict[str, float]:
    return {
        dict(labels)["worker"]: value
        for (name, labels), value in numbers.items()
        if name == "process_start_time_seconds"
    }


def call(server: Server, model: str = "one/lab") -> int:
    """Make a call over a new connection. Retry if the worker process has just been killed."""
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    url, headers = f"{server.url}/v1/chat/completions", {"authorization": f"Bearer {server.key}"}
    while True:
        try:
            return httpx.post(url, json=body, headers=headers, timeout=30, verify=NO_CERTIFICATES).status_code
        except httpx.TransportError:
            continue


def test_each_scrape_covers_both_workers(server: Server, port: int) -> None:
    before = requests_in(scrape(port))
    assert [call(server) for _ in range(CALLS)] == [200] * CALLS
    until, seen = time.monotonic() + WAIT_SECONDS, [before]
    while seen[-1] < before + CALLS and time.monotonic() < until:
        seen.append(requests_in(scrape(port)))
    assert (seen, seen[-1]) == (sorted(seen), before + CALLS)
    for _ in range(4):
        for scraped_port in (port, server.port):
            assert requests_in(scrape(scraped_port)) == before + CALLS
    numbers = scrape(port)
    assert sorted(workers_in(numbers)) == ["0", "1"]
    assert numbers["routing_admin_request_duration_seconds_count", frozenset({("route", "")})] == before + CALLS


def test_counters_of_a_killed_worker_are_kept_and_its_successor_reuses_its_slot(server: Server, port: int) -> None:
    until, counted = time.monotonic() + WAIT_SECONDS, requests_in(scrape(port))
    call(server)
    before = scrape(port)
    while requests_in(before) < counted + 1 and time.monotonic() < until:
        before = scrape(port)
    os.kill(find_worker(server), signal.SIGKILL)
    workers = initial = workers_in(before)
    seen = [counted + 1]
    while (workers == initial or len(workers) != 2) and time.monotonic() < until:
        try:
            numbers = scrape(port)
        except (OSError, urllib.error.URLError):  # The connection was to the worker that was killed.
            continue
        seen.append(requests_in(numbers))
        workers = workers_in(numbers)
    assert sorted(workers) == ["0", "1"]
    assert seen == sorted(seen)
    assert [call(server) for _ in range(CALLS)] == [200] * CALLS
    while seen[-1] < seen[0] + CALLS and time.monotonic() < until:
        seen.append(requests_in(scrape(port)))
    assert seen == sorted(seen)
    assert seen[-1] == seen[0] + CALLS


def find_worker(server: Server) -> int:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    return next(int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())


def test_metrics_port_serves_only_metrics_and_trusts_no_proxy(server: Server, port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", verify=NO_CERTIFICATES) as client:
        assert [client.get(path).status_code for path in ("/", "/healthz", "/v1/models", "/metrics/")] == [404] * 4
        assert client.post("/metrics").status_code == 404
        assert client.get("/metrics", headers={"x-forwarded-for": "127.0.0.1"}).status_code == 403
        assert client.get("/metrics", headers={"host": "metrics.internal:9100"}).status_code == 200
        assert client.head("/metrics").status_code == 200


def test_stopped_server_leaves_no_metrics_files(server: Server) -> None:
    """This test is the last one, because it stops the server of the others."""
    folders = [Path("/dev/shm"), server.directory]
    boards = [path for folder in folders for path in folder.glob(f"{PREFIX}*") if is_held_by(path, server)]
    assert len(boards) == 1
    server.process.terminate()
    server.process.wait(timeout=40)
    assert not boards[0].exists()


def is_held_by(folder: Path, server: Server) -> bool:
    """Return whether one of the server's processes holds the folder's lock."""
    open_files = (os.readlink(link) for link in Path(f"/proc/{server.process.pid}/fd").iterdir() if link.is_symlink())
    return str(folder / "server.lock") in open_files
