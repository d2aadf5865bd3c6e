"""The fault lab's server on the loopback interface. It runs in a thread, follows a script and records all requests."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tests.lab.certificate import self_signed
from tests.lab.operations import operation_at, read_operation
from tests.lab.received_requests import ReceivedRequest, counted_call, protocol_at, read
from tests.lab.scenarios import SCENARIOS, Step, perform
from tests.lab.wire import Connection, Watched, read_request

BASES = {"openai": "/v1", "openai-responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}
Script = Mapping[str, "str | int | Iterable[str | int]"]


@dataclass
class Received:
    """A received request, its scenario, and how it ended. Times are in seconds of `time.monotonic()`.

    `closed_at` is when the client closed its socket, or None if it did not. `sent` counts the response bytes sent.
    `started` is true once part of the response was sent, and `done` once the scenario has ended. `connection` is the
    client's port.
    """

    name: str
    protocol: str
    path: str
    headers: dict[str, str]
    body: bytes
    heard: ReceivedRequest
    scenario: str
    arrived_at: float
    closed_at: float | None = None
    ended_at: float | None = None
    sent: int = 0
    connection: int = 0
    started: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def done(self) -> bool:
        return self.ended_at is not None


def _count(protocol: str, body: bytes) -> bytes:
    return json.dumps({"totalTokens" if protocol == "gemini" else "input_tokens": len(body)}).encode()


def parse_step(word: str | int) -> Step:
    """Parse `ok`, `http_429:retry_after=2`, a status code or `say:any words`. Raise `ValueError` for unknown names."""
    if isinstance(word, int):
        return parse_step(f"http_{word}")
    name, _, rest = word.partition(":")
    if name == "say":
        return Step("ok", {"text": rest})
    if name not in SCENARIOS:
        raise ValueError(f"the lab knows no scenario {name!r}; it knows say, {', '.join(sorted(SCENARIOS))}")
    pairs = (pair.partition("=") for pair in rest.split(",") if pair)
    return Step(name, {key: value for key, _, value in pairs})


def key_in(headers: Mapping[str, str]) -> str:
    """Return the key from the header that the vendor uses for it, or an empty string if there is none."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return bearer or headers.get("x-api-key", "") or headers.get("x-goog-api-key", "")


@dataclass
class Lab:
    """A simulated provider on the loopback interface.

    Example: `with Lab({"deepseek": ["http_503", "ok"]}) as lab: lab.url("openai", "deepseek")`. The script maps a
    provider name (the first segment of the path) or `name/key` to steps. The steps of a list are used once, in order,
    followed by `ok`. A single step is used for every request. A model named `fault:STEP`, such as
    `fault:http_429:retry_after=2`, overrides the script.
    """

    script: Script = field(default_factory=dict)
    port: int = 0
    host: str = "127.0.0.1"
    on_request: Callable[[Received], None] | None = None
    model: Callable[[ReceivedRequest], str | int] | None = None

    def __post_init__(self) -> None:
        self.requests: list[Received] = []
        self._queues = {name: self._queue(steps) for name, steps in self.script.items()}
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._extra: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.tls_port = 0

    def play(self, script: Script) -> None:
        """Replace the script and clear the list of received requests."""
        self.requests.clear()
        self._queues = {name: self._queue(steps) for name, steps in script.items()}

    @staticmethod
    def _queue(steps: str | int | Iterable[str | int]) -> Step | deque[Step]:
        return parse_step(steps) if isinstance(steps, str | int) else deque(parse_step(step) for step in steps)

    @property
    def played(self) -> list[str]:
        return [received.scenario for received in self.requests]

    def played_for(self, name: str) -> list[str]:
        return [received.scenario for received in self.requests if received.name == name]

    def url(self, protocol: str = "openai", name: str = "lab") -> str:
        return f"http://{self.host}:{self.port}/{name}{BASES[protocol]}"

    def broken_url(self, fault: str, protocol: str = "openai") -> str:
        """Return a base URL whose calls fail with the fault: connect_refused, connect_timeout, dns_error, tls_error or
        tls_cert_error.
        """
        base = BASES[protocol]
        if fault == "dns_error":
            return f"http://no-such-host.invalid{base}"
        if fault == "tls_error":
            return f"https://{self.host}:{self.port}/lab{base}"
        if fault == "tls_cert_error":
            return f"https://{self.host}:{self.tls_port}/lab{base}"
        return f"http://{self.host}:{self._dead_port(fault)}{base}"

    def _dead_port(self, fault: str) -> int:
        closed = socket.socket()
        self._extra.append(closed)
        # A socket that is bound but does not listen keeps the port reserved and refuses connections.
        closed.bind((self.host, 0))
        port: int = closed.getsockname()[1]
        if fault == "connect_timeout":
            closed.listen(0)
            for _ in range(3):  # These connections fill the backlog, so the next SYN gets no answer.
                caller = socket.socket()
                caller.setblocking(False)
                caller.connect_ex((self.host, port))
                self._extra.append(caller)
        return port

    def wait_until(self, holds: Callable[[], bool], seconds: float = 5.0) -> bool:
        """Return whether the condition becomes true before the timeout. It is checked after each event in the lab."""
        with self._changed:
            return self._changed.wait_for(holds, seconds)

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="fault-lab", daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the lab did not start within ten seconds")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(10)
        for extra in self._extra:
            extra.close()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        self._over = asyncio.Event()
        plain = await self._loop.create_server(self._protocol, self.host, self.port, backlog=512)
        self.port = plain.sockets[0].getsockname()[1]
        secure = await self._loop.create_server(self._protocol, self.host, 0, ssl=_context())
        self.tls_port = secure.sockets[0].getsockname()[1]
        started.set()
        await self._over.wait()
        plain.close()
        secure.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self) -> None:
        self._over.set()

    def _protocol(self) -> Watched:
        reader = asyncio.StreamReader(limit=1024 * 1024, loop=self._loop)
        watched: Watched

        def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._converse(reader, writer, watched))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        watched = Watched(reader, met, loop=self._loop)
        return watched

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watched: Watched) -> None:
        connection = Connection(writer, watched)
        try:
            while (request := await read_request(reader)) is not None:
                connection = Connection(writer, watched)
                await self._answer(request, connection)
                if not connection.keep:
                    return
        except ConnectionAbortedError:
            # The client began a TLS handshake on a plain connection.
            connection.reset()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            return
        finally:
            writer.close()

    async def _answer(self, request: tuple[str, str, dict[str, str], bytes], connection: Connection) -> None:
        method, path, headers, body = request
        if method == "GET":
            await self._models(connection)
            return
        operation = operation_at(path)
        parsed = read_operation(operation, body) if operation else read(path, body)
        name = path.strip("/").split("/")[0]
        key = key_in(headers)
        step = parse_step(self.model(parsed)) if self.model else self._next(name, parsed.model, key)
        # The real vendor would reject an invalid request, so respond with 400 and the reason.
        if step.name == "ok" and parsed.problem:
            step = Step("http_400", {"message": parsed.problem})
        counted = counted_call(path)
        received = Received(
            name, protocol_at(counted or path), path, headers, body, parsed, step.name, arrived_at=time.monotonic()
        )
        received.connection = connection.writer.get_extra_info("peername")[1]
        connection.on_start = lambda: self._start(received)
        self.requests.append(received)
        self._tell(received)
        try:
            if counted_call(path) and step.name == "ok":
                await connection.reply(200, _count(received.protocol, body), "application/json")
            else:
                await perform(step, connection, parsed)
        finally:
            received.closed_at, received.sent, received.ended_at = (
                connection.watched.closed_at,
                connection.sent,
                time.monotonic(),
            )
            self._tell(received)

    def _start(self, received: Received) -> None:
        received.started = True
        with self._changed:
            self._changed.notify_all()

    async def _models(self, connection: Connection) -> None:
        rows = [{"id": "lab-model", "object": "model", "created": 1_790_000_000, "owned_by": "lab"}]
        await connection.reply(200, json.dumps({"object": "list", "data": rows}).encode(), "application/json")

    def _next(self, name: str, model: str, key: str) -> Step:
        if model.startswith("fault:"):
            return parse_step(model.removeprefix("fault:"))
        steps = self._queues.get(f"{name}/{key}", self._queues.get(name))
        if isinstance(steps, Step):
            return steps
        return steps.popleft() if steps else Step("ok")

    def _tell(self, received: Received) -> None:
        if self.on_request is not None and not received.done:
            self.on_request(received)
        with self._changed:
            self._changed.notify_all()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = self_signed()
    context.load_cert_chain(certificate, key)
    return context
