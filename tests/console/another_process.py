"""A second process on the same database. It saves at a moment that the test chooses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection

from tests.engines.databases import database_url
from tests.preloaded import start_program

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
import django
django.setup()
from capabilities.actors import Actor
from routing_admin.console.routes.actions import save_route
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.models import TaskRoute
print("ready", flush=True)
for line in sys.stdin:
    row = TaskRoute.objects.filter(task_type=line.strip()).first() or TaskRoute(task_type=line.strip())
    row.retries = 9
    save_route(Actor("person", "bob"), row, [CandidateSpec("echo")])
    print("saved", flush=True)
"""


FIRST_STATEMENTS = ("BEGIN", "SELECT pg_advisory_xact_lock")
"""The first statement of a change: BEGIN on SQLite, and on PostgreSQL the advisory lock that serializes changes."""


class AnotherProcess:
    """A process in which the user bob creates or changes a task route, setting its retries to 9."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert self._read_line() == "ready"

    def save_route(self, name: str) -> None:
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)
        assert self._read_line() == "saved"

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def another_process() -> Iterator[AnotherProcess]:
    environment = os.environ | {
        "DATABASE_URL": database_url(str(connection.settings_dict["NAME"])),
        "DJANGO_SETTINGS_MODULE": "routing_admin.settings",
    }
    command = [sys.executable, "-c", SCRIPT]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with start_program(command, env=environment, **pipes) as process:
        yield AnotherProcess(process)


@contextmanager
def before_the_change(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` once, just before the test's own process begins its next transaction."""
    waiting = [act]

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if waiting and sql.startswith(FIRST_STATEMENTS):
            waiting.pop()()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield
    assert not waiting


@contextmanager
def after_the_change(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` once, after the test's own process has committed its next revision and before its next query."""
    waiting = [act]
    is_audited = False

    # A revision and its audit event are written in one transaction. The first query outside it follows the commit.
    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal is_audited
        if waiting and is_audited and not connection.in_atomic_block:
            waiting.pop()()
        is_audited = is_audited or 'INSERT INTO "routing_admin_auditevent"' in sql
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield
    assert not waiting
