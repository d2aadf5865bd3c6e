"""A real server in its own process with its own data directory. Its providers are in the fault lab."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.engines.databases import copy_database, database_environment, drop_database
from tests.lab import Lab
from tests.lab.server import Script
from tests.preloaded import run_python, start_program
from tests.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("one", "two", "three")
LOG = "server.log"
OURS = ("ROUTING_ADMIN_", "LLM_", "DJANGO")
ADMIN_PASSWORD = "canary heron 4471 lantern"
"""The administrator's password in prepared data directories, unless a test sets another one."""


@dataclass(frozen=True)
class Server:
    """A running server: its port, the key of its text agent, and the fault lab that plays its providers."""

    port: int
    key: str
    lab: Lab
    directory: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.directory / LOG).read_text()

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self.url + path, headers={"authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())

    def post(self, path: str, body: bytes) -> Any:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())

    def timeline(self, request_id: str) -> Any:
        return self.get(f"/api/v1/requests/{request_id}")


def routing(lab: Lab) -> dict[str, Any]:
    demo: dict[str, Any] = json.loads((ROOT / "routing_admin/console/demo/llm-routing.json").read_text())
    demo["providers"] += [
        {"providerName": name, "apiKey": "NOT_NEEDED", "endpoint": lab.url("openai", name), "defaultModel": "lab"}
        for name in NAMES
    ]
    demo["providers"] += [
        {
            "providerName": f"by-{protocol}",
            "apiKey": "NOT_NEEDED",
            "endpoint": lab.url(protocol, f"by-{protocol}"),
            "defaultModel": "lab",
            "protocol": protocol,
        }
        for protocol in ("openai-responses", "anthropic", "gemini")
    ]
    demo["routing"] |= {
        "chain": {"provider": "one", "fallback": ["two", "three"], "retries": 0},
        "patient": {"provider": "one", "fallback": ["two"], "retries": 2},
    }
    return demo


def manage(environment: dict[str, str], *arguments: str) -> str:
    completed = run_python(environment, "manage.py", *arguments)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


MANAGE_ALL = """
import io, json, os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
import django
django.setup()
from django.core.management import call_command
outputs = []
for arguments in json.loads(sys.argv[1]):
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    outputs.append(out.getvalue().strip())
json.dump(outputs, sys.stdout)
"""


def manage_all(environment: dict[str, str], *commands: Sequence[str]) -> list[str]:
    """Run management commands in one process and return their outputs. This saves a second per command."""
    completed = run_python(environment, "-c", MANAGE_ALL, json.dumps(commands))
    assert completed.returncode == 0, completed.stderr
    outputs: list[str] = json.loads(completed.stdout)
    return outputs


def bootstrap(environment: dict[str, str], directory: Path) -> None:
    """Fill a data directory in the same way as the command `bootstrap`.

    If possible, copy a directory that was filled earlier with the same settings.
    """
    if has_external_storage(environment, directory):
        manage(environment, "bootstrap", "--no-traffic")
    else:
        copy_template(_make_template(written_settings(environment)), directory)


def prepare(environment: dict[str, str], directory: Path, files: Iterable[Any], scopes: tuple[str, ...] = ()) -> str:
    """Fill a data directory, import the files in order, and return a key of the text agent with these scopes.

    If a directory was prepared from the same files, scopes and settings before, it is copied with its key.
    """
    contents = tuple(json.dumps(file) for file in files)
    if has_external_storage(environment, directory):
        bootstrap(environment, directory)
        return import_files(environment, directory, contents, scopes)
    template = _make_template(written_settings(environment), contents, scopes)
    copy_template(template, directory)
    return template.key


def has_external_storage(environment: dict[str, str], directory: Path) -> bool:
    """Return whether the database or stored files are outside the directory, so that a copy would lack them."""
    return (
        environment.get("DATABASE_URL") != database_environment(directory).get("DATABASE_URL")
        or "ROUTING_ADMIN_ARTIFACTS_URL" in environment
    )


def import_files(
    environment: dict[str, str], directory: Path, contents: Iterable[str], scopes: Iterable[str] = ()
) -> str:
    """Import files in order and return a new key for the text agent, with the default scopes if none are given."""
    commands = []
    for number, content in enumerate(contents):
        file = directory / f"import-{number}.json"
        file.write_text(content)
        commands.append(("import_config", str(file)))
    options = [argument for scope in scopes for argument in ("--scope", scope)]
    return manage_all(environment, *commands, ("issue_agent_key", "text-agent", *options))[-1]


ONLY_SERVED = frozenset(
    f"ROUTING_ADMIN_{name}"
    for name in (
        *("BODY_SECONDS", "CONNECTIONS_PER_ADDRESS", "CORS_ORIGINS", "DRAIN_SECONDS", "HEAD_SECONDS"),
        *("KEEP_ALIVE_SECONDS", "LOG_FORMAT", "MAX_JSON_BYTES", "MAX_UPLOAD_BYTES", "METRICS_PORT"),
        *("ALERT_WEBHOOK", "NEWCOMERS", "NEWCOMER_DOMAINS", "PUBLIC_URL", "PUBLISH_DIR", "TRUSTED_PROXIES"),
        *("ALLOWED_ORIGINS", "DATA_DIR"),  # The template has its own values for these settings.
    )
)
"""Settings that do not affect what `bootstrap` and `import_config` write."""


def written_settings(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (name, value)
        for name, value in {"ROUTING_ADMIN_ADMIN_PASSWORD": ADMIN_PASSWORD, **environment}.items()
        if name.startswith("ROUTING_ADMIN_") and name not in ONLY_SERVED
    )


@dataclass(frozen=True)
class Template:
    """A prepared data directory that is never served, and a key of its text agent if files were imported."""

    directory: Path
    key: str = ""


def copy_template(template: Template, directory: Path) -> None:
    shutil.copytree(template.directory, directory, dirs_exist_ok=True)
    copy_database(template.directory, directory)


@cache
def _make_template(
    settings: frozenset[tuple[str, str]], contents: tuple[str, ...] = (), scopes: tuple[str, ...] = ()
) -> Template:
    folder = Path(tempfile.mkdtemp(prefix="routing-admin-served-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    own = {"ROUTING_ADMIN_DATA_DIR": str(folder), "ROUTING_ADMIN_ALLOWED_ORIGINS": "*", **database_environment(folder)}
    environment = {**inherited, **dict(settings), **own}
    if not contents:
        manage(environment, "bootstrap", "--no-traffic")
        return Template(folder)
    copy_template(_make_template(settings), folder)
    return Template(folder, import_files(environment, folder, contents, scopes))


@contextmanager
def served(
    directory: Path,
    script: Script = MappingProxyType({}),
    configured: Callable[[Lab], dict[str, Any]] = routing,
    settings: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> Iterator[Server]:
    """Start a server with the demo configuration and the fault lab's providers.

    `configured` returns the configuration to import, `settings` are environment variables without their prefix,
    `options` are options of the command `serve`, and `prefix` is a command that runs the server.
    """
    with (
        Lab(script, port=stable_port()) as lab,
        serving(directory, lab, [configured(lab)], settings, options, prefix) as server,
    ):
        yield server


def stable_port() -> int:
    """Return the same port for every fault lab of this process, so that files that contain the port are equal.

    Return 0 if the port is taken. The port is below the range from which systems assign ephemeral ports.
    """
    port = 20_000 + os.getpid() % 10_000
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


@contextmanager
def serving(
    directory: Path,
    lab: Lab,
    files: Iterable[Any],
    settings: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> Iterator[Server]:
    """Start a server with the demo configuration and import these files in order."""
    environment = server_environment(directory, lab) | {
        f"ROUTING_ADMIN_{name}": value for name, value in settings.items()
    }
    key = prepare(environment, directory, files)
    server = listening(environment, key, lab, directory, options, prefix=prefix)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(timeout=40)
        drop_database(directory)


def server_environment(directory: Path, lab: Lab) -> dict[str, str]:
    """Return the server's environment variables.

    The server has its own data directory, and may call only one private address, that of the fault lab.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    origin = lab.url("openai").split("/lab")[0]
    settings = {"ROUTING_ADMIN_DATA_DIR": str(directory), "ROUTING_ADMIN_ALLOWED_ORIGINS": origin}
    return inherited | database_environment(directory) | settings


def listening(
    environment: dict[str, str],
    key: str,
    lab: Lab,
    directory: Path,
    options: Sequence[str] = (),
    tries: int = 5,
    prefix: Sequence[str] = (),
) -> Server:
    """Start the server and wait until it accepts its key.

    If another process has taken the port meanwhile, try another one.
    """
    for _ in range(tries):
        port = free_port()
        command = [*prefix, sys.executable, "manage.py", "serve", "--port", str(port), *options]
        with (directory / LOG).open("ab") as log:
            process = start_program(command, env=environment, stderr=log)
        server = Server(port, key, lab, directory, process)
        if accepts_its_key(server):
            return server
        process.terminate()
        process.wait(timeout=40)
    raise AssertionError(f"the server does not answer: {(directory / LOG).read_text()}")


def accepts_its_key(server: Server) -> bool:
    """Return whether this server, and not another process on its port, responds within half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            return bool(server.get("/v1/models"))
        except urllib.error.HTTPError:
            return False
        except OSError:
            time.sleep(0.05)
    return False
