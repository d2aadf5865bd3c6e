"""The processes in the data plane benchmark (upstream, baseline, our server), and their CPU time and memory."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.bench.upstream import NAME
from tests.gateway.serving import ROOT, manage_all
from tests.processes import free_port, is_listening

OWN_VARIABLES = ("DJANGO", "ROUTING_ADMIN_", "LLM_", "DATABASE_URL", "REDIS_URL")
FAILOVERS = 10
"""The number of fallbacks measured per round."""
FAILING = 5 * FAILOVERS
"""The number of failing providers. Each is called in one round only and thus never often enough for a cooldown."""


@dataclass(frozen=True)
class Served:
    """A server process. `key` authenticates calls to it, and `start_seconds` is the time until its first response."""

    name: str
    port: int
    key: str
    process: subprocess.Popen[bytes]
    start_seconds: float

    def members(self) -> list[int]:
        pids = [self.process.pid]
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            pids += [int(pid) for pid in (task / "children").read_text().split()]
        return pids

    def cpu_seconds(self) -> float:
        """Return the user and system time so far.

        CPU clocks are read because /proc counts only hundredths of a second.
        """
        return sum(time.clock_gettime(cpu_clock(pid)) for pid in self.members())

    def memory_mb(self, *, peak: bool = False) -> float:
        """Return the resident memory in MB, or if `peak` is true, its peak since `forget_peak`."""
        field = "VmHWM:" if peak else "VmRSS:"
        total = 0
        for pid in self.members():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith(field))
        return total / 1024

    def forget_peak(self) -> None:
        for pid in self.members():
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_clock(pid: int) -> int:
    """Return the clock id for a process's CPU time (Linux: `MAKE_PROCESS_CPUCLOCK`)."""
    return (~pid << 3) | 2


@contextmanager
def running_process(
    name: str, command: list[str], port: int, key: str, environment: dict[str, str]
) -> Iterator[Served]:
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        while not is_listening(port):
            if process.poll() is not None or time.perf_counter() - started > 60:
                raise RuntimeError(f"{name} does not listen: {' '.join(command)}")
            time.sleep(0.01)
        yield Served(name, port, key, process, time.perf_counter() - started)
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def upstream() -> Iterator[Served]:
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.upstream", str(port)]
    with running_process("straight to the upstream", command, port, "none", dict(os.environ)) as server:
        yield server


@contextmanager
def lean_proxy(provider: Served) -> Iterator[Served]:
    port = free_port()
    options = ["--port", str(port), "--no-access-log", "--log-level", "error"]
    command = [sys.executable, "-m", "uvicorn", "tests.bench.lean_proxy:application", *options]
    environment = os.environ | {"BENCH_UPSTREAM": f"http://127.0.0.1:{provider.port}"}
    with running_process("lean Django proxy", command, port, "none", environment) as server:
        yield server


def install(
    provider: Served, directory: Path, engines: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, str], str]:
    """Create an installation whose routes lead to the upstream. Return its environment and an agent's key.

    `engines` are environment variables that select engines other than the default.
    """
    directory.mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    origin = f"http://127.0.0.1:{provider.port}"
    settings = {"ROUTING_ADMIN_DATA_DIR": str(directory), "ROUTING_ADMIN_ALLOWED_ORIGINS": origin}
    environment = {**inherited, **settings, **engines}
    files = [directory / "llm-routing.json", directory / "llmservices.json"]
    for file, value in zip(files, (routing(origin), services(origin)), strict=True):
        file.write_text(json.dumps(value))
    commands = (("bootstrap", "--no-traffic"), ("import_config", *map(str, files)), ("issue_agent_key", "text-agent"))
    return environment, manage_all(environment, *commands)[-1]


@contextmanager
def gateway(provider: Served, directory: Path, workers: int = 1) -> Iterator[Served]:
    """Serve a new installation with all features enabled and routes that lead to the upstream."""
    environment, key = install(provider, directory)
    with serve(environment, key, workers) as server:
        yield server


@contextmanager
def serve(environment: dict[str, str], key: str, workers: int = 1) -> Iterator[Served]:
    port = free_port()
    command = [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", str(workers)]
    with running_process("/v1", command, port, key, environment) as server:
        yield server


def read_log(folder: Path, query: str) -> list[Any]:
    """Query an installation's log from outside the serving process, and return the rows."""
    with closing(sqlite3.connect(f"file:{folder / 'logs.sqlite3'}?mode=ro", uri=True)) as rows:
        return rows.execute(query).fetchall()


def routing(origin: str) -> dict[str, Any]:
    file: dict[str, Any] = json.loads((ROOT / "routing_admin/console/demo/llm-routing.json").read_text())
    behaviours = {behaviour: behaviour for behaviour in ("plain", "stream", "paced")}
    behaviours |= {f"fail{number}": "fail" for number in range(FAILING)}
    file["providers"] += [
        {
            "providerName": name,
            "apiKey": "NOT_NEEDED",
            "endpoint": f"{origin}/{behaviour}/{name}/v1/chat/completions",
            "defaultModel": NAME,
            "protocol": "openai",
        }
        for name, behaviour in behaviours.items()
    ]
    file["routing"] |= {
        f"failover{number}": {"provider": f"fail{number}", "fallback": ["plain"], "retries": 0}
        for number in range(FAILING)
    }
    return file


def services(origin: str) -> dict[str, Any]:
    service = {
        "id": "bench-vision",
        "name": "bench-vision",
        "baseURL": f"{origin}/plain/plain/v1",
        "model": NAME,
        "apiKey": "NOT_NEEDED",
        "capabilityTags": [],
        "description": "",
        "capabilities": {"input": ["text", "vision"], "output": ["text"]},
    }
    return {"services": [service]}
