"""An installation that gets into trouble: served in a process of its own, with the fault lab for its providers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.chaos.callers import Person, Reply, chat, send, upload
from tests.chaos.installation import PASSWORD, write_import
from tests.gateway.serving import Server, bootstrap, environment_of, listening, manage, routing
from tests.lab import Lab
from tests.runbook.pages import SERVER, run_block


@dataclass
class Installation:
    """Its data directory and environment, a place for backups and secrets, an agent's key, and who serves it."""

    directory: Path
    place: Path
    lab: Lab
    environment: dict[str, str]
    key: str
    running: Server | None = None

    @property
    def server(self) -> Server:
        """The server that runs."""
        assert self.running is not None
        return self.running

    def start(self) -> None:
        """Serves it."""
        self.running = listening(self.environment, self.key, self.lab, self.directory)

    def stop(self) -> None:
        """Ends the server, as SIGTERM does."""
        if self.running is not None:
            self.running.process.terminate()
            self.running.process.wait(timeout=60)
            self.running = None

    def play(self, page: str, name: str, **words: str) -> str:
        """What a block of a page says here; `words` stand for those that the page leaves to its reader."""
        places = {"/backups": f"{self.place}/backups", "/safe": f"{self.place}/safe", **words}
        if self.running is not None:
            places[SERVER] = self.running.url
        return run_block(page, name, self.environment, places)

    def manage(self, *words: str) -> str:
        """What a command prints."""
        return manage(self.environment, *words)

    def number(self, name: str, **labels: str) -> float:
        """A number of `/metrics`, of all samples with these labels together; 0 where there is none."""
        text = send(self.server, "GET", "/metrics").body.decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def call(self, model: str = "one/lab", key: str = "", name: str = "") -> Reply:
        """A chat call with that key, by default with the agent's own; `name` is the request's id."""
        return chat(replace(self.server, key=key or self.key), name, model)

    def upload(self, content: bytes) -> Reply:
        """A file of the agent's."""
        return upload(self.server, content)

    def person(self) -> Person:
        """The administrator's browser."""
        return Person(self.server).sign_in()

    def audited(self) -> str:
        """The audit log, as its export has it."""
        return self.manage("audit_export")


@contextmanager
def installed(folder: Path) -> Iterator[Installation]:
    """A new one with the demo and the lab's providers, not served yet."""
    directory = folder / "var"
    directory.mkdir(mode=0o700)
    with Lab({}) as lab:
        environment = environment_of(directory, lab) | {"ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD}
        bootstrap(environment, directory)
        write_import(environment, directory, routing(lab))
        yield Installation(directory, folder, lab, environment, manage(environment, "issue_agent_key", "text-agent"))


@contextmanager
def copied(template: Installation, folder: Path, data: Path | None = None) -> Iterator[Installation]:
    """A copy of one that is not served, with the same key and the same lab, whose script begins anew."""
    directory = data or folder / "var"
    shutil.copytree(template.directory, directory)
    directory.chmod(0o700)
    template.lab.play({})
    environment = template.environment | {"ROUTING_ADMIN_DATA_DIR": str(directory)}
    copy = Installation(directory, folder, template.lab, environment, template.key)
    try:
        yield copy
    finally:
        copy.stop()


def until(holds: Callable[[], Any], seconds: float = 30) -> Any:
    """What `holds` gives once that is true. Raises `AssertionError` when it does not come true."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.05)
    return found
