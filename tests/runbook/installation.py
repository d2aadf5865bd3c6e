"""An installation for the runbook's tests, with its own server process and the fault lab's simulated providers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.chaos.callers import Person, Reply, chat, send, upload
from tests.chaos.installation import PASSWORD, write_import
from tests.gateway.serving import Server, bootstrap, listening, manage, routing, server_environment
from tests.lab import Lab
from tests.runbook.pages import SERVER, run_block


@dataclass
class Installation:
    """An installation: its directories, environment variables, agent key, fault lab and server process."""

    directory: Path
    folder: Path
    lab: Lab
    environment: dict[str, str]
    key: str
    running: Server | None = None

    @property
    def server(self) -> Server:
        assert self.running is not None
        return self.running

    def start(self) -> None:
        self.running = listening(self.environment, self.key, self.lab, self.directory)

    def stop(self) -> None:
        if self.running is not None:
            self.running.process.terminate()
            self.running.process.wait(timeout=60)
            self.running = None

    def play(self, page: str, name: str, **replacements: str) -> str:
        """Run a code block of a runbook page and return its output. `replacements` maps the page's placeholders to
        values.
        """
        all_replacements = {"/backups": f"{self.folder}/backups", "/safe": f"{self.folder}/safe", **replacements}
        if self.running is not None:
            all_replacements[SERVER] = self.running.url
        return run_block(page, name, self.environment, all_replacements)

    def manage(self, *arguments: str) -> str:
        return manage(self.environment, *arguments)

    def number(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over all samples that have these labels, or 0 if there are none."""
        text = send(self.server, "GET", "/metrics").body.decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def call(self, model: str = "one/lab", key: str = "", name: str = "") -> Reply:
        """Send a chat request whose request id is `name`. The agent's key is used by default."""
        return chat(replace(self.server, key=key or self.key), name, model)

    def upload(self, content: bytes) -> Reply:
        return upload(self.server, content)

    def person(self) -> Person:
        return Person(self.server).sign_in()

    def audited(self) -> str:
        return self.manage("audit_export")


@contextmanager
def installed(folder: Path) -> Iterator[Installation]:
    """Yield a new installation with the demo configuration and the fault lab's providers. It is not started."""
    directory = folder / "var"
    directory.mkdir(mode=0o700)
    with Lab({}) as lab:
        environment = server_environment(directory, lab) | {"ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD}
        bootstrap(environment, directory)
        write_import(environment, directory, routing(lab))
        yield Installation(directory, folder, lab, environment, manage(environment, "issue_agent_key", "text-agent"))


@contextmanager
def copied(template: Installation, folder: Path, data: Path | None = None) -> Iterator[Installation]:
    """Yield a copy of a stopped installation. The agent key and the fault lab are shared; the lab's script is
    cleared.
    """
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
