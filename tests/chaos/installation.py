"""An installation for stress tests. It is served by a separate process and has the fault lab as its provider."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gateway.serving import Server, listening, manage, prepare, routing, server_environment, stable_port
from tests.lab import Lab

PASSWORD = "pushed-and-pulled-about"
SCOPES = ("route", "artifacts:read", "artifacts:write", "agents:write", "config:read", "config:write", "registry:read")


@dataclass(frozen=True)
class Installation:
    """A data directory with the demo configuration, and a key with `SCOPES` for the demo's text agent."""

    directory: Path
    lab: Lab
    environment: dict[str, str]
    key: str

    @contextmanager
    def serve(self, *options: str) -> Iterator[Server]:
        server = listening(self.environment, self.key, self.lab, self.directory, options)
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait(timeout=60)

    def rows(self, query: str, database: str = "routing_admin") -> list[Any]:
        with closing(sqlite3.connect(self.directory / f"{database}.sqlite3", timeout=30)) as rows:
            return rows.execute(query).fetchall()

    def faults(self) -> list[str]:
        """Return what `doctor` and SQLite's integrity check find."""
        problems = [
            f"{name}: {row[0]}"
            for name in ("routing_admin", "logs")
            for row in self.rows("pragma integrity_check", name)
            if row[0] != "ok"
        ]
        try:
            manage(self.environment, "doctor")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            problems.append(f"doctor: {error}")
        return problems


@contextmanager
def installed(database: str = "", **settings: str) -> Iterator[Installation]:
    """Yield a new installation.

    `settings` are environment variables without the prefix `ROUTING_ADMIN_`, and `database` is a PostgreSQL URL.
    """
    with tempfile.TemporaryDirectory(prefix="routing-admin-chaos-") as folder, Lab({}, stable_port()) as lab:
        directory = Path(folder)
        variables = {"ADMIN_PASSWORD": PASSWORD, **settings}
        environment = server_environment(directory, lab) | {
            f"ROUTING_ADMIN_{name}": value for name, value in variables.items()
        }
        environment |= {"DATABASE_URL": database} if database else {}
        yield Installation(directory, lab, environment, prepare(environment, directory, [routing(lab)], SCOPES))


def write_import(environment: dict[str, str], directory: Path, content: Any) -> None:
    file = directory / "import.json"
    file.write_text(json.dumps(content))
    manage(environment, "import_config", str(file))
