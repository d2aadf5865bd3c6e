"""Start Python programs in processes that have already imported libraries and `core` packages.

This halves the CPU time of a start.

A helper process imports modules that read neither settings nor the environment, and is forked for each program. The
program then runs as usual, with its own environment, arguments and files, imports everything else, and is a child of
the process that runs the tests. Another helper process imports the file readers, and is forked for each extraction.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = (
    *("aiohttp", "charset_normalizer", "cryptography.fernet", "markdown_it", "prometheus_client", "pydantic"),
    *("django.core.handlers.asgi", "django.core.management", "django.db.models", "django.forms", "django.template"),
    *("django.test", "django.urls", "django.views.generic", "uvicorn", "uvicorn.lifespan.on", "uvicorn.loops.uvloop"),
    *("csp.middleware", "django.contrib.admin", "django.db.backends.sqlite3.base", "django.db.migrations.executor"),
    *("environ", "httptools", "orjson", "platformdirs", "pydantic.json_schema", "pydantic.networks", "pydantic.types"),
    *("django_htmx.middleware", "whitenoise.middleware"),
)
PACKAGES = (
    *("artifacts.core", "capabilities.core", "routing_admin.core"),
    *("capabilities.migrations", "routing_admin.upstream", "routing_admin.configuration.stamped_cache"),
    *("routing_admin.console.base.tags.charting", "routing_admin.console.base.tags.drawing"),
    *("routing_admin.gateway.http", "routing_admin.platform.server.http_protocol"),
)
"""Modules and packages that can be imported without settings, and therefore do not depend on their values."""
READ_BY_THE_INTERPRETER = ("COVERAGE", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "SSL_", "TZ")
"""Prefixes of environment variables that take effect only when an interpreter starts."""
READERS = ROOT / "artifacts" / "extract" / "__main__.py"
"""The program that the extraction process runs."""
PR_SET_CHILD_SUBREAPER = 36


class ForkedProcess(subprocess.Popen[Any]):
    """A `Popen` of a process that is forked from a helper process. The command is `sys.executable` and its arguments.

    Interpreter options are not supported.
    """

    # `Popen` passes these parameters by position. Those not used here are not needed by the callers.
    def _execute_child(self, args: Any, *options: Any) -> None:
        environment, ends = options[5], options[9:15]
        stdin, _, _, stdout, _, stderr = ends
        files = [inherited if end == -1 else end for inherited, end in enumerate((stdin, stdout, stderr))]
        self.pid = fork_program(args[1:], os.environ if environment is None else environment, files)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


def start_reader(*arguments: str, stdin: int) -> subprocess.Popen[bytes]:
    """Start the extraction process with these arguments, forked from a helper process that imported every reader."""
    return ForkedProcess(
        [sys.executable, str(READERS), *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LANG": "C.UTF-8"},
    )


def start_program(command: Sequence[str], env: Mapping[str, str] | None = None, **files: Any) -> subprocess.Popen[Any]:
    """Start a command in this checkout, forked from the helper process if it runs this Python.

    `files` are further options of `Popen`, such as `stdout`.
    """
    is_python = command[0] == sys.executable and can_run(command[1]) and (env is None or can_fork(env))
    return (ForkedProcess if is_python else subprocess.Popen)(command, cwd=ROOT, env=env, **files)


def run_python(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in this checkout for at most two minutes, and return its output."""
    command, pipe = [sys.executable, *arguments], subprocess.PIPE
    with start_program(command, environment, stdout=pipe, stderr=pipe, text=True) as program:
        try:
            output, errors = program.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    return subprocess.CompletedProcess(command, program.returncode, output, errors)


def can_run(argument: str) -> bool:
    return argument in ("-c", "-m") or argument.endswith(".py")


def can_fork(variables: Mapping[str, str]) -> bool:
    return sys.platform == "linux" and all(
        variables.get(name) == os.environ.get(name)
        for name in {*variables, *os.environ}
        if name.startswith(READ_BY_THE_INTERPRETER)
    )


def fork_program(arguments: Sequence[str], variables: Mapping[str, str], files: Sequence[int]) -> int:
    """Start a program with these standard files as a child of this process, and return its process id."""
    message = json.dumps([list(arguments), dict(variables)]).encode()
    with _lock:
        helper = start_helper("readers" if arguments[0] == str(READERS) else "programs")
        # The helper process's child ends immediately, and its orphan, the program, is adopted by the nearest ancestor
        # that adopts orphans.
        adopt_orphans(True)
        try:
            socket.send_fds(helper, [len(message).to_bytes(4)], list(files))
            helper.sendall(message)
            return int.from_bytes(helper.recv(4, socket.MSG_WAITALL))
        finally:
            adopt_orphans(False)


_lock = threading.Lock()


def adopt_orphans(adopts: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0)


@cache
def start_helper(preloads: str) -> socket.socket:
    """Start a helper process, which ends when this process closes its end of the socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, "-m", "tests.preloaded", preloads, str(number)]
        helper = subprocess.Popen(command, cwd=ROOT, pass_fds=[number])

    def end() -> None:
        ours.close()
        helper.wait()

    atexit.register(end)
    return ours


# From here on, this process is a helper process.


def preload_readers() -> None:
    program = runpy.run_path(str(READERS), run_name="readers")
    for operation in program["OPERATIONS"]:
        program["load"](operation, {"reader": "pdf"})
    for reader in sys.modules["artifacts.extract.documents"].READERS:
        program["load"]("text", {"reader": reader})
    for mime_type in program["LIBRARIES"]:
        program["load"]("facts", {"mime_type": mime_type})


def preload_programs() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    for name in PACKAGES:
        path = getattr(importlib.import_module(name), "__path__", ())
        for module in pkgutil.walk_packages(path, f"{name}."):
            importlib.import_module(module.name)


def next_program(requests: socket.socket) -> tuple[list[str], dict[str, str]] | None:
    """Wait for requests, and fork a child process for each.

    In the child, return the requested program's arguments and environment, with its standard input, output and error in
    place. In the parent, the helper process, return None when the test process has closed the socket.
    """
    while True:
        size, files, *_ = socket.recv_fds(requests, 4, 3)
        if not size:
            return None
        message = requests.recv(int.from_bytes(size), socket.MSG_WAITALL)
        reading, writing = os.pipe()
        if child := os.fork():
            os.waitpid(child, 0)
            requests.sendall(os.read(reading, 4))  # The answer is sent only after the program has been adopted.
            for file in (*files, reading, writing):
                os.close(file)
            continue
        if program := os.fork():
            os.write(writing, program.to_bytes(4))
            os._exit(0)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        for end in (reading, writing, requests.detach()):
            os.close(end)
        arguments, variables = json.loads(message)
        return arguments, variables


def run(arguments: list[str]) -> None:
    """Run what Python would run if given these arguments."""
    first, *others = arguments
    if first == "-c":
        sys.argv = [first, *others[1:]]
        exec(compile(others[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    preload_readers() if sys.argv[1] == "readers" else preload_programs()
    gc.collect()
    gc.freeze()
    if (program := next_program(socket.socket(fileno=int(sys.argv[2])))) is not None:
        arguments, variables = program
        os.environ.clear()
        os.environ.update(variables)
        run(arguments)
