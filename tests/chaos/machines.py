"""Three servers that share PostgreSQL, Redis and S3. Each of these engines is stopped and started under load.

Meanwhile, a process is killed, the configuration is changed, a key is revoked and a budget is spent. The test measures
how long it takes until all processes agree. At the end, it checks that nothing acknowledged was lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import psycopg

from tests.chaos.callers import CUT, Finding, Person, ask, at_once, chat, finding, send, upload
from tests.chaos.installation import PASSWORD, SCOPES, write_import
from tests.chaos.proxy import BreakableProxy, proxy_to
from tests.engines.cluster import Cluster, running_cluster
from tests.engines.redis import RedisServer, redis_running
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.gateway.serving import Server, listening, manage, routing, server_environment
from tests.lab import Lab

MACHINES = 3
OUTAGE_SECONDS = 2.0
"""Seconds for which an engine is stopped, and for which it then runs again."""
PAUSE = 0.05
"""Seconds that a caller waits between two calls.

Without this delay, the test would measure the machine's capacity instead of concurrency.
"""
AGREEMENT_SECONDS = 1.0
"""Seconds within which all processes must agree while all engines run."""
TIMEOUT_SECONDS = 60.0
WRITE_SECONDS = 0.1
"""Seconds after which an answered call must be in the log, even if its process has been killed."""
WORKERS = "2"
"""The number of worker processes on the last machine. One of them is also killed."""
BUDGET = 3000
SPENDER = "vision-agent"
SAVE_LIMIT = (
    "from routing_admin.configuration.agents.actions import save_agent; from capabilities.actors import SYSTEM; "
    "from capabilities.models import Agent; "
    f"row = Agent.objects.get(agent_id='{SPENDER}'); row.limits = {{'tokensPerDay': %d}}; "
    "save_agent(SYSTEM, row)"
)
REFUSALS = (429, 503)


@dataclass
class Machines:
    """The installation: its processes, their engines, and what was acknowledged."""

    cluster: Cluster
    redis: RedisServer
    store_proxy: BreakableProxy
    lab: Lab
    environments: Sequence[dict[str, str]]
    servers: list[Server]
    keys: list[str]
    spender: str
    person: Person | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    calls: list[str] = field(default_factory=list)
    answered: list[tuple[str, float]] = field(default_factory=list)
    """Calls to the last machine, and the time at which each was answered."""
    kills: list[float] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    agreements: dict[str, list[float]] = field(default_factory=dict)
    spent: int = 0
    losses: list[str] = field(default_factory=list)
    finished: threading.Event = field(default_factory=threading.Event)

    def start(self, number: int) -> Server:
        environment = self.environments[number]
        directory = Path(environment["ROUTING_ADMIN_DATA_DIR"])
        options = ("--workers", WORKERS) if number == MACHINES - 1 else ()
        return listening(environment, self.keys[0], self.lab, directory, options)

    def call(self, number: int) -> None:
        """Send calls to a machine in sequence.

        The last machine is killed from time to time, so some calls are interrupted.
        """
        count, last = 0, number == MACHINES - 1
        while not self.finished.wait(PAUSE):
            count += 1
            name = f"machine-{number}-{count}"
            try:
                status = chat(self.servers[number], name).status
            except CUT:
                if not last:
                    self.losses.append(f"call {name} was cut")
                self.statuses["cut by the kill"] += 1
                self.finished.wait(0.1)
                continue
            self.statuses[str(status)] += 1
            if status != 200:
                self.losses.append(f"call {name} was answered {status}")
            elif last:
                self.answered.append((name, time.monotonic()))
            else:
                self.calls.append(name)

    def store(self) -> None:
        while not self.finished.wait(0.1):
            content = os.urandom(20_000)
            reply = upload(self.servers[0], content)
            self.statuses[f"upload {reply.status}"] += 1
            if reply.status == 200:
                self.files[reply.json["id"]] = content
            elif reply.status not in REFUSALS:
                self.losses.append(f"an upload was answered {reply.status}")

    def wait_for_agreement(self, fact: str, condition: Callable[[Server], bool]) -> None:
        started = time.monotonic()
        for server in self.servers:
            while not condition(server) and time.monotonic() - started < TIMEOUT_SECONDS:
                pass
        seconds = time.monotonic() - started
        self.agreements.setdefault(fact, []).append(seconds)
        if seconds > AGREEMENT_SECONDS:
            self.losses.append(f"{fact}: all agreed after {seconds * 1000:.0f} ms")

    def change(self, number: int) -> None:
        content = ask(self.servers[0], "GET", "/api/v1/config/llm-routing").json
        content["routing"]["planning"]["maxTokens"] = number
        reply = ask(self.servers[0], "POST", "/api/v1/config/import", content)
        if reply.status != 200:
            self.losses.append(f"a configuration was answered {reply.status}")
            return

        def knows(server: Server) -> bool:
            configuration = ask(server, "GET", "/api/v1/config/llm-routing").json
            return bool(configuration["routing"]["planning"]["maxTokens"] == number)

        self.wait_for_agreement("configuration", knows)

    def revoke(self, key: str) -> None:
        assert self.person is not None
        for server in self.servers:
            if chat(replace(server, key=key), "").status != 200:
                self.losses.append("a good key was refused")
        path = f"/keys/{key.split('_')[1]}/revoke/text-agent/"
        if self.person.post(path).status != 302:
            self.losses.append("a key could not be revoked")
        self.wait_for_agreement("revoked key", lambda server: chat(replace(server, key=key), "").status == 401)

    def spend(self, push: Callable[[], None]) -> None:
        """Run `push` while spending a budget through all processes. No more than the budget may be granted."""
        self.spent += BUDGET
        manage(self.environments[0], "shell", "-c", SAVE_LIMIT % self.spent)
        counts, ends = Counter[str](), time.monotonic() + TIMEOUT_SECONDS

        def run(server: Server) -> None:
            spender = replace(server, key=self.spender)
            while time.monotonic() < ends:
                reply = chat(spender, "", max_tokens=50)
                counts[str(reply.status)] += 1
                if reply.status == 200:
                    counts["tokens"] += reply.json["usage"]["total_tokens"]
                elif reply.status == 429:
                    # The call was rejected because the budget is used up.
                    return

        raised = at_once(push, *(lambda server=server: run(server) for server in self.servers for _ in range(3)))
        self.losses += [repr(error) for error in raised]
        self.statuses["of a budget: 429"] += counts["429"]
        self.statuses["of a budget: 503"] += counts["503"]
        self.statuses["of a budget: tokens"] += counts["tokens"]
        if self.statuses["of a budget: tokens"] > self.spent:
            self.losses.append(f"{self.statuses['of a budget: tokens']} tokens of {self.spent} were spent")

    def stop_and_start(self, stop: Callable[[], None], start: Callable[[], None]) -> None:
        """Stop an engine for some time, then start it and let it run for an equal time."""
        stop()
        self.finished.wait(OUTAGE_SECONDS)
        start()
        self.finished.wait(OUTAGE_SECONDS)

    def restart_redis(self) -> None:
        self.stop_and_start(self.redis.kill, self.redis.start)

    def kill_last(self) -> None:
        process = self.servers[-1].process
        workers = worker_pids(process.pid)
        self.kills.append(time.monotonic())
        for pid in (process.pid, *workers):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        self.servers[-1] = self.start(MACHINES - 1)

    def kill_worker(self) -> None:
        main = self.servers[-1].process.pid
        before = worker_pids(main)
        self.kills.append(time.monotonic())
        os.kill(before[0], signal.SIGKILL)
        until = time.monotonic() + TIMEOUT_SECONDS
        while len(set(worker_pids(main)) - set(before)) < 1:
            if time.monotonic() > until:
                self.losses.append("a worker that was killed is not replaced")
                return
            self.finished.wait(0.05)

    def lasting_calls(self) -> list[str]:
        """Return the calls to the last machine that must be logged: all but those answered shortly before a kill."""
        return [
            name
            for name, answered_at in self.answered
            if not any(0 <= kill - answered_at < WRITE_SECONDS for kill in self.kills)
        ]

    def round(self, number: int) -> None:
        self.restart_redis()
        self.stop_and_start(lambda: self.cluster.stop("immediate"), self.cluster.start)
        self.stop_and_start(self.store_proxy.shut, self.store_proxy.open)
        self.change(1000 + number)
        self.revoke(self.keys[1 + number])
        self.spend(self.restart_redis)
        self.kill_last()
        self.kill_worker()

    def check(self) -> None:
        for ref, content in self.files.items():
            bearer = {"authorization": f"Bearer {self.keys[0]}"}
            reply = send(self.servers[1], "GET", f"/v1/files/{ref}/content", headers=bearer)
            if reply.body != content:
                self.losses.append(f"upload {ref}: {reply.status}, {len(reply.body)} of {len(content)} bytes")
        missing, until = {*self.calls, *self.lasting_calls()}, time.monotonic() + TIMEOUT_SECONDS
        while missing and time.monotonic() < until:
            with psycopg.connect(self.environments[0]["DATABASE_URL"]) as rows:
                stored = rows.execute("select id from routing_admin_requestlog where id like 'machine-%'")
                missing -= {row[0] for row in stored}
        self.losses += [f"call {name} is not in the log" for name in sorted(missing)]
        try:
            manage(self.environments[0], "doctor")
        except AssertionError as error:
            self.losses.append(f"doctor: {error}")


def worker_pids(main: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(main)], capture_output=True, text=True, check=False
    )
    # Workers are started by multiprocessing, so their command line contains spawn_main.
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "spawn_main" in line]


@contextmanager
def machines(keys: int, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Machines]:
    """Start an installation of three processes, each with its own data directory as on a separate machine.

    `settings` are further environment variables.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="routing-admin-machines-")))
        lab, cluster = stack.enter_context(Lab({})), stack.enter_context(running_cluster(lasting=True))
        redis = stack.enter_context(redis_running(folder))
        bucket = s3_server()
        store_proxy = stack.enter_context(proxy_to(urlsplit(bucket.url).port or 0))
        options = f"endpoint_url=http://127.0.0.1:{store_proxy.port}&allow_http=true&region=us-east-1&style=path"
        database = cluster.make_database("machines")
        shared = {
            "DATABASE_URL": database,
            "REDIS_URL": redis.url,
            "ROUTING_ADMIN_ARTIFACTS_URL": f"s3://{bucket.bucket.name}/machines?{options}",
            "ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD,
            **CREDENTIALS,
            **settings,
        }
        environments = [server_environment(folder / str(number), lab) | shared for number in range(MACHINES)]
        manage(environments[0], "bootstrap")
        secrets = {
            "ROUTING_ADMIN_SECRET_KEY": (folder / "0" / "secret_key").read_text().strip(),
            "ROUTING_ADMIN_KEYS": (folder / "0" / "keys").read_text().strip(),
        }
        environments = [environment | secrets for environment in environments]
        write_import(environments[0], folder, routing(lab))
        scopes = [argument for scope in SCOPES for argument in ("--scope", scope)]
        issued = [manage(environments[0], "issue_agent_key", "text-agent", *scopes) for _ in range(1 + keys)]
        spender = manage(environments[0], "issue_agent_key", SPENDER)
        installation = Machines(cluster, redis, store_proxy, lab, environments, [], issued, spender)
        try:
            for number in range(MACHINES):
                (folder / str(number)).mkdir(exist_ok=True)
                installation.servers.append(installation.start(number))
            installation.person = Person(installation.servers[0]).sign_in()
            yield installation
        finally:
            installation.finished.set()
            for server in installation.servers:
                server.process.terminate()
            for server in installation.servers:
                server.process.wait(timeout=60)


def push_machines(rounds: int) -> Finding:
    """Run all rounds of faults. All processes must agree within a second, and no acknowledged data may be lost."""
    with machines(rounds) as installation:

        def push() -> None:
            try:
                for number in range(rounds):
                    installation.round(number)
            finally:
                installation.finished.set()

        started = time.monotonic()
        raised = at_once(
            push, installation.store, *(lambda number=number: installation.call(number) for number in range(MACHINES))
        )
        seconds = time.monotonic() - started
        installation.losses += [repr(error) for error in raised]
        installation.check()
        agreements = "; ".join(
            f"{fact} in {min(durations) * 1000:.0f}-{max(durations) * 1000:.0f} ms"
            for fact, durations in installation.agreements.items()
        )
        counts = ", ".join(f"{count} {status}" for status, count in sorted(installation.statuses.items()))
        excused = len(installation.answered) - len(installation.lasting_calls())
    facts = (
        f"{seconds:.0f} s of load: {counts}; all agreed: {agreements}; "
        f"of {installation.spent} tokens that were to be spent {installation.statuses['of a budget: tokens']} were; "
        f"{len(installation.kills)} kills, {len(installation.answered)} calls at the machine that was killed, "
        f"{excused} of them answered less than {WRITE_SECONDS * 1000:.0f} ms before"
    )
    return finding("three machines", f"{rounds} rounds", facts, installation.losses)
