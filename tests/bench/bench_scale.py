"""`python -m tests.bench scale`: measure the load that each setup in docs/scale.md can handle, with real engines.

The engines are PostgreSQL, Redis and S3. They share the machine with the callers, the upstream and the product, whose
CPU time shows what one core can handle. `BENCH_ROUNDS` and `BENCH_SECONDS` change the duration, and `BENCH_LOG_ROWS`
the log's size.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.data_plane_rows import SECONDS
from tests.bench.load import closed_loop, connect, request_bytes
from tests.bench.processes import Served, install, running_process, serve, upstream
from tests.bench.table import show
from tests.bench.upstream import NAME
from tests.engines.cluster import Cluster, running_cluster
from tests.engines.programs import find_program
from tests.engines.redis import PROGRAMS, redis_running
from tests.gateway.serving import ROOT, manage
from tests.processes import free_port

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LOG_ROWS = int(os.environ.get("BENCH_LOG_ROWS", "20000"))
IN_FLIGHT = 16
LIMITED = "vision-agent"
LIMITS = (
    "from routing_admin.configuration.agents.actions import save_agent; from capabilities.actors import SYSTEM; "
    "from capabilities.models import Agent; "
    f"row = Agent.objects.get(agent_id='{LIMITED}'); "
    "row.limits = {'requestsPerMinute': 10**9, 'tokensPerDay': 10**12}; save_agent(SYSTEM, row)"
)
NGINX = """daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log; user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream machines {{ {servers} keepalive 64; }}
  server {{
    listen 127.0.0.1:{port}; keepalive_requests 10000000;
    location / {{ proxy_pass http://machines; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_set_header Host $http_host; proxy_buffering off; }}
  }}
}}"""


@dataclass(frozen=True)
class Setup:
    """A deployment: its name, its processes, its port, and the keys of two agents. Only the second agent has limits."""

    name: str
    serving: Sequence[Served]
    port: int
    keys: tuple[str, str]

    async def measure(self) -> list[object]:
        """Measure a setup and return a table row: calls per second, CPU ms per call, and calls per second per core."""
        row: list[object] = [self.name]
        for key in self.keys:
            body = json.dumps({"model": f"plain/{NAME}", "messages": [{"role": "user", "content": "hello"}]}).encode()
            request = request_bytes(self.port, "/v1/chat/completions", body, key)
            await self._warm(request)
            rates, costs = [], []
            for _ in range(ROUNDS):
                before = self._cpu_seconds()
                durations = await closed_loop(self.port, request, IN_FLIGHT, SECONDS)
                rates.append(len(durations) / SECONDS)
                costs.append((self._cpu_seconds() - before) / len(durations) * 1000)
            cost = statistics.median(costs)
            row += [statistics.median(rates), cost, 1000 / cost]
        return row

    def _cpu_seconds(self) -> float:
        return sum(process.cpu_seconds() for process in self.serving)

    async def _warm(self, request: bytes) -> None:
        """Send calls until every process has cached the key and received its share of the limits."""
        for _ in range(8 * len(self.serving)):
            connection = await connect(self.port)
            for _ in range(4):
                await connection.ask(request)
            connection.transport.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        os.chmod(folder, 0o711)
        provider = stack.enter_context(upstream())
        cluster = engine("PostgreSQL", lambda: stack.enter_context(running_cluster(lasting=True)))
        has_redis = find_program(*PROGRAMS) or absent("Redis")
        lines = [asyncio.run(step.measure()) for step in steps(provider, folder, cluster, bool(has_redis))]
        heads = ["step", "calls/s", "cpu ms", "a core's", "limited/s", "cpu ms", "a core's"]
        show(f"Calls, {IN_FLIGHT} in flight, {ROUNDS} rounds of {SECONDS} s, medians; load {load()}", heads, lines)
        databases = {"SQLite": {}} | ({"PostgreSQL": {"DATABASE_URL": cluster.make_database("log")}} if cluster else {})
        rows = [log_line(name, environment, folder / f"log-{name}") for name, environment in databases.items()]
        heads = ["log in", "rows/s", "µs of the processor", "million a day", "bytes a row", "GB a million"]
        show(f"The request log, {LOG_ROWS:,} plain calls by one process; load {load()}", heads, rows)


def steps(provider: Served, folder: Path, cluster: Cluster | None, has_redis: bool) -> Iterator[Setup]:
    environment, keys = install_gateway(provider, folder / "sqlite", {})
    for workers in (1, 2):
        with machines([environment], workers) as (serving, port):
            yield Setup(f"SQLite, {workers} worker{'s' * (workers > 1)}", serving, port, keys)
    if cluster is None:
        return
    environment, keys = install_gateway(
        provider, folder / "postgresql", {"DATABASE_URL": cluster.make_database("scale")}
    )
    for workers in (1, 2):
        with machines([environment], workers) as (serving, port):
            yield Setup(f"PostgreSQL, {workers} worker{'s' * (workers > 1)}", serving, port, keys)
    if not has_redis:
        return
    with redis_running(folder) as redis:
        environment |= {"REDIS_URL": redis.url}
        if find_program("nginx") is None:
            absent("nginx")
            return
        both = [environment, second_machine_environment(environment, folder / "other")]
        with machines(both, 1) as (serving, _), balancer(folder, [process.port for process in serving]) as port:
            yield Setup("PostgreSQL, Redis, 2 machines behind nginx", serving, port, keys)


def install_gateway(
    provider: Served, folder: Path, engines: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, str]]:
    """Create an installation with these engines. Return its environment and the keys of two agents.

    The second agent has limits.
    """
    environment, key = install(provider, folder, engines)
    manage(environment, "shell", "-c", LIMITS)
    return environment, (key, manage(environment, "issue_agent_key", LIMITED))


def second_machine_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the same installation's environment on another machine: the same secrets, but another data directory."""
    folder.mkdir()
    first = Path(environment["ROUTING_ADMIN_DATA_DIR"])
    return dict(environment) | {
        "ROUTING_ADMIN_DATA_DIR": str(folder),
        "ROUTING_ADMIN_SECRET_KEY": (first / "secret_key").read_text().strip(),
        "ROUTING_ADMIN_KEYS": (first / "keys").read_text().strip(),
    }


@contextmanager
def machines(environments: Sequence[dict[str, str]], workers: int) -> Iterator[tuple[list[Served], int]]:
    with ExitStack() as stack:
        serving = [stack.enter_context(serve(environment, "", workers)) for environment in environments]
        yield serving, serving[0].port


@contextmanager
def balancer(folder: Path, ports: Sequence[int]) -> Iterator[int]:
    port, file = free_port(), folder / "nginx.conf"
    servers = " ".join(f"server 127.0.0.1:{machine_port};" for machine_port in ports)
    file.write_text(NGINX.format(folder=folder, servers=servers, port=port))
    with running_process(
        "nginx",
        [find_program("nginx") or "nginx", "-c", str(file), "-e", str(folder / "nginx.log")],
        port,
        "",
        dict(os.environ),
    ):
        yield port


def engine(name: str, start: Callable[[], Cluster]) -> Cluster | None:
    """Start an engine and return it. If it is not installed, print a message and return None."""
    try:
        return start()
    except LookupError:
        return absent(name)


def absent(name: str) -> None:
    print(f"{name} is not installed: its steps are left out.", file=sys.stderr)


def log_line(name: str, engines: Mapping[str, str], folder: Path) -> list[object]:
    """Return the table row for request logging with these engines: rows per second, CPU time and size."""
    plain = {variable: value for variable, value in os.environ.items() if variable not in ("DATABASE_URL", "REDIS_URL")}
    command = [sys.executable, "-m", "tests.bench.log_rows", str(folder), str(LOG_ROWS)]
    result = subprocess.run(command, cwd=ROOT, env={**plain, **engines}, capture_output=True, text=True, check=True)
    measurement = json.loads(result.stdout.splitlines()[-1])
    rate, size = measurement["rate"], measurement["bytes"]
    return [name, rate, measurement["cpu"], rate * 86_400 / 1e6, size, size / 1000]


def load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
