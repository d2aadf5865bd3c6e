"""`python -m tests.bench.profile [plain|stream|paced|image|failover]`: a call's CPU time in each part of the program.

The application is served in this process, called by another one, and sampled once per millisecond of CPU time. A sample
counts towards the program part of the innermost file that the table lists. Each thread has its own CPU clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from tests.bench.bench_data_plane import MB, model_name, picture
from tests.bench.load import closed_loop, request_bytes
from tests.bench.processes import install, upstream
from tests.bench.table import show
from tests.gateway.serving import ROOT
from tests.processes import free_port, is_listening, wait_until

SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
FUNCTIONS = int(os.environ.get("BENCH_FUNCTIONS", "25"))
WARM_SECONDS = min(1.0, SECONDS)
EVERY_SECONDS = 0.001
IN_FLIGHT = {"plain": 16, "stream": 8, "paced": 8, "image": 2, "failover": 1}
"""The workloads that can be profiled, and the number of concurrent calls in each."""
THREADS = ("journal", "upkeep", "upstream")
LIBRARIES = "site-packages/"
NO_AREA = "loop and interpreter"

AREAS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("server", (
        "uvicorn/protocols/", "routing_admin/asgi.py", "routing_admin/platform/server/",
        "routing_admin/gateway/application.py", "routing_admin/gateway/http.py",
    )),
    ("admission", (
        "routing_admin/gateway/admission.py", "routing_admin/gateway/key_cache.py", "routing_admin/configuration/",
        "capabilities/access.py", "capabilities/core/permissions.py",
    )),
    ("reading the request", (
        "routing_admin/gateway/body.py", "routing_admin/gateway/fields.py", "routing_admin/gateway/media.py",
        "routing_admin/gateway/chat/parsing.py", "routing_admin/gateway/chat/messages.py",
        "capabilities/core/message.py", "artifacts/",
    )),
    ("planning", (
        "routing_admin/dispatch/plan.py", "routing_admin/dispatch/decisions.py", "routing_admin/core/planning/",
        "routing_admin/core/configuration/",
    )),
    ("the chain", (
        "routing_admin/core/fallback/", "routing_admin/dispatch/send.py", "routing_admin/dispatch/recorded.py",
        "routing_admin/gateway/calls.py", "routing_admin/gateway/answers.py",
    )),
    ("preparing", (
        "routing_admin/dispatch/", "capabilities/core/delivery/", "capabilities/core/texts/",
        "capabilities/core/wire.py", "capabilities/core/protocols/answer_fields.py",
        "capabilities/core/protocols/openai/requests.py",
    )),
    ("way out", ("routing_admin/upstream/", "aiohttp/", "yarl/", "multidict/")),
    ("way back", (
        "capabilities/core/protocols/", "routing_admin/gateway/chat/rendering.py",
        "routing_admin/gateway/streaming.py", "routing_admin/gateway/errors.py",
    )),
    ("log entry", ("routing_admin/request_log/",)),
)  # fmt: skip
"""Maps each part of the program to its files and folders, ours or a library's. The first match counts."""


@lru_cache(maxsize=10_000)
def find_area(file: str) -> str | None:
    """Return the program part that a source file belongs to, or None if its time counts towards its caller's part."""
    _, library, path = file.rpartition(LIBRARIES)
    path = path if library else file.removeprefix(f"{ROOT}/")
    return next((area for area, parts in AREAS if path.startswith(parts)), None)


class Sampler:
    """Count samples by the main thread's current program part and function."""

    def __init__(self) -> None:
        self.areas: Counter[str] = Counter()
        self.functions: Counter[tuple[str, str]] = Counter()

    def take_sample(self, _number: int, frame: FrameType | None) -> None:
        """Take a sample: count the innermost stack frame that belongs to a program part."""
        while frame is not None:
            code = frame.f_code
            area = find_area(code.co_filename)
            if area is not None:
                self.areas[area] += 1
                self.functions[(area, f"{Path(code.co_filename).stem}.{code.co_qualname}")] += 1
                return
            frame = frame.f_back
        self.areas[NO_AREA] += 1

    def start(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, EVERY_SECONDS, EVERY_SECONDS)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


@dataclass(frozen=True)
class Profile:
    """The result for a number of calls: the samples, and the CPU seconds of each thread, including `main`."""

    calls: int
    sampler: Sampler
    threads: dict[str, float]

    def areas(self) -> Iterator[tuple[str, float, str]]:
        """Yield each part of the program with its CPU time per call in µs and its share of the main thread's time."""
        samples = self.sampler.areas.total()
        for area, count in self.sampler.areas.most_common():
            yield area, self._each(self.threads["main"] * count / samples), f"{count / samples:.0%}"

    def others(self) -> Iterator[tuple[str, float, str]]:
        """Yield each thread except the main thread, and the total."""
        for name, seconds in self.threads.items():
            if name != "main" and seconds > 0:
                yield f"thread: {name}", self._each(seconds), ""
        yield "all", self._each(sum(self.threads.values())), ""

    def functions(self) -> Iterator[tuple[str, str, float]]:
        """Yield the functions that take the most time, with their program part and their µs of CPU per call."""
        samples = self.sampler.areas.total()
        for (area, function), count in self.sampler.functions.most_common(FUNCTIONS):
            yield function, area, self._each(self.threads["main"] * count / samples)

    def _each(self, seconds: float) -> float:
        return seconds / self.calls * 1e6


def request_for(workload: str, port: int, key: str) -> bytes:
    behaviour = {"image": "plain", "failover": "failover0"}.get(workload, workload)
    body: dict[str, Any] = {"model": model_name(behaviour), "messages": [{"role": "user", "content": "hello"}]}
    if workload == "image":
        body |= picture(MB)
    if workload in ("stream", "paced"):
        body["stream"] = True
    return request_bytes(port, "/v1/chat/completions", json.dumps(body).encode(), key)


def call(port: int, request: bytes, in_flight: int, seconds: float) -> int:
    return len(asyncio.run(closed_loop(port, request, in_flight, seconds)))


def clocks() -> dict[str, float]:
    """Return the CPU seconds used so far by the main thread, by each of our threads, and by all others together."""
    seconds = {"main": _thread_clock(threading.main_thread())}
    seconds |= {thread.name: _thread_clock(thread) for thread in threading.enumerate() if thread.name in THREADS}
    return seconds | {"others": time.process_time() - sum(seconds.values())}


def _thread_clock(thread: threading.Thread) -> float:
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def measure(workload: str, port: int, key: str) -> Profile:
    import uvicorn  # Import late, because importing reads the environment.

    from routing_admin.asgi import application
    from routing_admin.core.fallback.cooldown import LocalCooldowns
    from routing_admin.platform.server.http_protocol import Protocol

    if workload == "failover":  # A cooldown would skip the provider after its third failure.
        LocalCooldowns.record_failure = lambda *_: None  # type: ignore[method-assign]
    sampler, results = Sampler(), list[Profile | BaseException]()
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "proxy_headers": False}
    config = uvicorn.Config(application, port=port, http=Protocol, **options)
    server = uvicorn.Server(config)

    def drive() -> None:
        try:
            results.append(_drive(workload, port, request_for(workload, port, key), sampler))
        except BaseException as error:  # The main thread re-raises this exception.
            results.append(error)
        finally:
            server.should_exit = True

    signal.signal(signal.SIGPROF, sampler.take_sample)
    driver = threading.Thread(target=drive)
    driver.start()
    server.run()
    driver.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def _drive(workload: str, port: int, request: bytes, sampler: Sampler) -> Profile:
    """Make another process send calls in two rounds: one to warm up, and one while samples are taken."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as callers:
        wait_until(lambda: is_listening(port))
        callers.submit(call, port, request, IN_FLIGHT[workload], WARM_SECONDS).result()
        before = clocks()
        sampler.start()
        try:
            calls = callers.submit(call, port, request, IN_FLIGHT[workload], SECONDS).result()
        finally:
            sampler.stop()
        return Profile(calls, sampler, {name: seconds - before.get(name, 0.0) for name, seconds in clocks().items()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.profile", description=__doc__)
    parser.add_argument("what", nargs="?", default="plain", choices=IN_FLIGHT, help="default plain")
    workload = parser.parse_args().what
    with tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as folder, upstream() as provider:
        environment, key = install(provider, Path(folder))
        os.environ.update(environment)
        profile = measure(workload, free_port(), key)
    title = f"{workload}: {profile.calls} calls, {IN_FLIGHT[workload]} at a time"
    show(title, ("where", "CPU µs per call", "share"), [*profile.areas(), *profile.others()])
    show("the functions that take most", ("function", "area", "CPU µs per call"), [*profile.functions()])


if __name__ == "__main__":
    main()
