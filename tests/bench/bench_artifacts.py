"""`python -m tests.bench.bench_artifacts`: upload and download files that are stored on disk and in a local bucket.

moto serves the bucket in a separate process, which is slower than a real S3 server. The product's CPU time is therefore
more meaningful than the throughput. moto's own throughput is shown for comparison.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import obstore
from obstore.store import S3Store

from artifacts.core.bucket import Bucket
from tests.bench.processes import Served, running_process
from tests.bench.table import median, show
from tests.engines.s3 import CREDENTIALS, S3Server
from tests.gateway.serving import manage
from tests.processes import free_port

MIB = 1024 * 1024
SIZE = 24 * MIB
ROUNDS = 5


@contextmanager
def bucket_server() -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running_process("S3", command, port, "none", dict(os.environ)):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def program(folder: Path, settings: Mapping[str, str]) -> Iterator[Served]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "ROUTING_ADMIN_", "LLM_"))
    }
    environment = inherited | CREDENTIALS | {"ROUTING_ADMIN_DATA_DIR": str(folder), **settings}
    manage(environment, "bootstrap")
    key, port = manage(environment, "issue_agent_key", "text-agent"), free_port()
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    with running_process("serve", command, port, key, environment) as server:
        yield server


def upload(server: Served, data: bytes) -> str:
    """Upload a file through a one-time link, which takes raw bytes, and return the artifact's reference."""
    offer = {"filename": "file.bin", "size": len(data)}
    offered = json.loads(ask(server, "POST", "/api/v1/uploads", json.dumps(offer).encode()))
    path = offered["uploadUrl"].partition("/api/v1/")[2]
    ask(server, "PUT", f"/api/v1/{path}", data)
    return str(offered["ref"])


def ask(server: Served, method: str, path: str, body: bytes | None = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status < 300, data[:300]
    return data


def measure(server: Served) -> list[float]:
    """Return the upload and download speed in MB/s, CPU milliseconds per MB, and the peak memory in MB."""
    files = [uuid4().bytes * (SIZE // 16) for _ in range(ROUNDS)]
    upload(server, b"warm")
    server.forget_peak()
    times: dict[str, list[float]] = {"in": [], "out": []}
    spent = []
    for direction in times:
        before = server.cpu_seconds()
        for position, data in enumerate(files):
            started = time.perf_counter()
            if direction == "in":
                files[position] = upload(server, data).encode()
            else:
                ask(server, "GET", f"/api/v1/artifacts/{data.decode()}/raw")
            times[direction].append(time.perf_counter() - started)
        spent.append((server.cpu_seconds() - before) * 1000 / (ROUNDS * SIZE / 1e6))
    rates = [SIZE / 1e6 / median(durations) for durations in times.values()]
    return [rates[0], spent[0], rates[1], spent[1], server.memory_mb(peak=True)]


def ceiling(url: str) -> list[float]:
    os.environ.update(CREDENTIALS)
    store = S3Store("artifacts", config={"endpoint": url}, client_options={"allow_http": True})
    data, times = bytes(SIZE), []
    for operation in (lambda: obstore.put(store, "ceiling", data), lambda: obstore.get(store, "ceiling").bytes()):
        started = time.perf_counter()
        operation()
        times.append(time.perf_counter() - started)
    return [SIZE / 1e6 / times[0], float("nan"), SIZE / 1e6 / times[1], float("nan"), float("nan")]


def main() -> None:
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        with program(Path(folder) / "files", {}) as server:
            rows.append(["files", *measure(server)])
        with bucket_server() as url:
            S3Server(url, Bucket(name="artifacts")).make_bucket("artifacts")
            address = f"s3://artifacts/bench?endpoint_url={url}"
            with program(Path(folder) / "s3", {"ROUTING_ADMIN_ARTIFACTS_URL": address}) as server:
                rows.append(["S3", *measure(server)])
            rows.append(["the S3 server alone", *ceiling(url)])
    heads = ["24 MiB at a time", "in MB/s", "cpu ms/MB", "out MB/s", "cpu ms/MB", "peak MB"]
    show("Files through /api/v1, one after the other", heads, rows)


if __name__ == "__main__":
    main()
