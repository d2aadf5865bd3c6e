"""`python -m tests.bench.profile [plain|stream|paced|image|failover]`: in which of our rooms a call's CPU goes.

The application is served in this process, called by another one, and looked at every millisecond of CPU that it takes:
the innermost file of the table says which room it is in. Threads of ours are told apart by their own clocks.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from tests.bench.load import closed_loop, request_bytes
from tests.bench.processes import install, upstream
from tests.bench.table import show
from tests.bench.upstream import NAME
from tests.gateway.serving import free_port

SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
EVERY_SECONDS = 0.001
IN_FLIGHT = {"plain": 16, "stream": 8, "paced": 8, "image": 2, "failover": 1}
ROOMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("server", ("gateway/application", "gateway/http", "routing_admin/asgi", "/uvicorn/", "routing_admin/server/")),
    ("admission", ("gateway/admission", "gateway/key_cache", "capabilities/access", "configuration/")),
    ("reading the request", ("gateway/chat/parsing", "gateway/chat/messages", "gateway/fields", "gateway/body",
                             "gateway/media", "artifacts/")),
    ("planning", ("dispatch/plan", "dispatch/decisions", "core/planning/")),
    ("the chain", ("core/fallback/", "dispatch/send", "dispatch/recorded", "gateway/chat/completions")),
    ("preparing", ("dispatch/prepare", "core/delivery/", "openai/requests", "protocols/payload", "core/wire.py")),
    ("way out", ("routing_admin/upstream/", "/aiohttp/", "/yarl/", "/multidict/", "/httpx/")),
    ("way back", ("protocols/", "gateway/chat/rendering", "gateway/chat/streaming", "gateway/errors")),
    ("log entry", ("request_log/",)),
)  # fmt: skip
"""Parts of a file's path, by room; what is in none of them is the loop's and the interpreter's own."""


class Sampler:
    """Counts in which room, and in which function, the main thread is."""

    def __init__(self) -> None:
        self.rooms: Counter[str] = Counter()
        self.functions: Counter[tuple[str, str]] = Counter()

    def look(self, _number: int, frame: FrameType | None) -> None:
        """One look, by the innermost frame that belongs to a room."""
        while frame is not None:
            path = frame.f_code.co_filename
            room = next((room for room, parts in ROOMS if any(part in path for part in parts)), None)
            if room is not None:
                self.rooms[room] += 1
                self.functions[(room, f"{Path(path).stem}.{frame.f_code.co_qualname}")] += 1
                return
            frame = frame.f_back
        self.rooms["loop and interpreter"] += 1

    def start(self) -> None:
        """Begins to look."""
        self.rooms.clear()
        self.functions.clear()
        signal.setitimer(signal.ITIMER_PROF, EVERY_SECONDS, EVERY_SECONDS)

    def stop(self) -> None:
        """Looks no more."""
        signal.setitimer(signal.ITIMER_PROF, 0)


def request_for(what: str, port: int, key: str) -> bytes:
    """The request that is sent again and again."""
    import orjson

    from tests.bench.bench_data_plane import MB, picture

    body: dict[str, Any] = {
        "model": "task:failover0" if what == "failover" else f"{'plain' if what == 'image' else what}/{NAME}",
        "messages": [{"role": "user", "content": "hello"}],
    }
    body |= {"stream": True} if what in ("stream", "paced") else picture(MB) if what == "image" else {}
    return request_bytes(port, "/v1/chat/completions", orjson.dumps(body), key)


def call(port: int, request: bytes, in_flight: int, seconds: float, out: Any) -> None:
    """The caller's process: how many calls were answered."""
    out.put(len(asyncio.run(closed_loop(port, request, in_flight, seconds))))


def clocks() -> dict[str, float]:
    """Seconds of CPU of each thread so far, by the thread's name."""
    found: dict[str, float] = {}
    for thread in threading.enumerate():
        if thread.ident is not None:
            name = "other threads" if thread.name.startswith(("asyncio", "Thread", "uvicorn")) else thread.name
            clock = time.pthread_getcpuclockid(thread.ident)
            found[name] = found.get(name, 0.0) + time.clock_gettime(clock)
    return found


def measure(what: str, port: int, key: str) -> tuple[int, Sampler, dict[str, float]]:
    """Serves here while the other process calls: the calls, what was seen, and each thread's seconds."""
    import uvicorn

    from routing_admin.asgi import application

    sampler, spent = Sampler(), dict[str, float]()
    request, out = request_for(what, port, key), multiprocessing.get_context("spawn").Queue()
    config = uvicorn.Config(application, port=port, log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    calls: list[int] = []

    def drive() -> None:
        for seconds in (1.0, SECONDS):
            if seconds == SECONDS:
                before = clocks()
                sampler.start()
            work = (port, request, IN_FLIGHT[what], seconds, out)
            caller = multiprocessing.get_context("spawn").Process(target=call, args=work)
            caller.start()
            calls.append(out.get())
            caller.join()
        sampler.stop()
        spent.update({name: seconds - before.get(name, 0.0) for name, seconds in clocks().items()})
        server.should_exit = True

    signal.signal(signal.SIGPROF, sampler.look)
    driver = threading.Thread(target=drive, name="driver")
    started = threading.Timer(1.5, driver.start)
    started.start()
    server.run()
    driver.join()
    return calls[-1], sampler, spent


def main() -> None:
    """Prints µs of CPU per call by room, and the functions that take most."""
    what = sys.argv[1] if len(sys.argv) > 1 else "plain"
    with tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as folder, upstream() as to:
        environment, key = install(to, Path(folder))
        os.environ.update(environment)
        calls, sampler, spent = measure(what, free_port(), key)
    main_thread, looks = spent.pop("MainThread"), sum(sampler.rooms.values())
    spent.pop("driver", None)
    rows: list[tuple[Any, ...]] = [
        (room, main_thread * count / looks / calls * 1e6) for room, count in sampler.rooms.most_common()
    ]
    rows += [(f"thread: {name}", seconds / calls * 1e6) for name, seconds in spent.items() if seconds > 0]
    rows.append(("all", (main_thread + sum(spent.values())) / calls * 1e6))
    show(f"{what}: {calls} calls, {IN_FLIGHT[what]} at a time", ("where", "CPU µs per call"), rows)
    most = [
        (function, room, main_thread * count / looks / calls * 1e6)
        for (room, function), count in sampler.functions.most_common(int(os.environ.get("BENCH_FUNCTIONS", "25")))
    ]
    show("the functions that take most", ("function", "room", "CPU µs per call"), most)


if __name__ == "__main__":
    main()
