"""A temporary Redis server that tests can kill, freeze and restart."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis

from tests.engines.programs import find_program
from tests.processes import free_port, is_listening, wait_until

PROGRAMS = ("redis-server", "valkey-server")
MISSING = "Redis is missing: apt-get install redis-server"


@dataclass
class RedisServer:
    """A server without persistence, which is empty after a restart."""

    directory: Path
    options: Sequence[str] = ()
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True)

    def start(self) -> None:
        """Start the server, on its previous port if it had one."""
        program = find_program(*PROGRAMS)
        assert program is not None
        self.port = self.port or free_port()
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.directory)]
        self.process = subprocess.Popen([*command, *self.options], stdout=subprocess.DEVNULL)
        port = self.port
        wait_until(lambda: is_listening(port), 20)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def freeze(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def redis_running(directory: Path, *options: str) -> Iterator[RedisServer]:
    """Yield a running server. If Redis is not installed, skip the test, or fail it in continuous integration."""
    if find_program(*PROGRAMS) is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    server = RedisServer(directory, options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
