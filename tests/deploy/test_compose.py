"""The services in deploy/compose.yaml work when started as processes instead of containers.

No image is downloaded. PostgreSQL, Redis and nginx are installed on this machine, and the tests start their own S3
store.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from routing_admin.platform.server.health_checks import PROBE_SECONDS
from tests.deploy.proxies import MIN_RESOLVING_VERSION, find_nginx, inner_proxy, own_environment, parse_version
from tests.engines.cluster import running_cluster
from tests.engines.redis import redis_running
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.gateway.serving import ROOT
from tests.preloaded import run_python, start_program
from tests.processes import free_port, wait_for_success

DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SERVERS = ("one", "two")
OWN_SERVICES = ("setup", *SERVERS, "daily")
VARIABLE = re.compile(r"\$\{(\w+)\}")
SECRETS = {
    "OUTER_PROXY": "127.0.0.1",
    "LISTEN": "8000",
    "PUBLIC_URL": "http://localhost",
    "SECRET_KEY": "x" * 50,
    "ENCRYPTION_KEYS": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "METRICS_TOKEN": "a scraper's own",
    "ALERT_WEBHOOK": "",
    "ADMIN_PASSWORD": "an administrator's own",
    "DATABASE_PASSWORD": "secret",
    "FILES_KEY": CREDENTIALS["AWS_ACCESS_KEY_ID"],
    "FILES_SECRET": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
}


@dataclass(frozen=True)
class Installation:
    """A running installation: the proxy's URL, an agent's key, and the server processes."""

    url: str
    key: str
    servers: Mapping[str, subprocess.Popen[bytes]]


def variables(value: Any) -> set[str]:
    return set(VARIABLE.findall(json.dumps(value)))


def fill_in_values(text: str, replacements: Mapping[str, str]) -> str:
    """In a value from compose.yaml, replace the variables and the addresses of services."""
    for name, value in replacements.items():
        text = text.replace(name, value)
    return VARIABLE.sub(lambda match: SECRETS[match[1]], text)


def service_command(service: str) -> list[str]:
    return [sys.executable, "-m", "routing_admin", *SERVICES[service]["command"]]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    find_nginx()
    folder = tmp_path_factory.mktemp("compose")
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster())
        shared = stack.enter_context(redis_running(folder))
        files, database = s3_server(), cluster.make_database("routing")
        files.make_bucket("routing-admin")
        replacements = {
            "postgres://routing:${DATABASE_PASSWORD}@database:5432/routing": database,
            "redis://shared:6379": shared.url,
            "http://files:8333": files.url,
        }
        variables_of_service = {
            name: fill_in_values(value, replacements) for name, value in SERVICES["one"]["environment"].items()
        }
        environment = {**own_environment(), **variables_of_service, "ROUTING_ADMIN_ALLOWED_HOSTS": "127.0.0.1"}
        with running_service("setup", environment_for("setup", environment, folder)) as setup:
            assert setup.wait(timeout=60) == 0
        ports = {name: free_port() for name in SERVERS}
        servers = {
            name: stack.enter_context(running_service(name, environment_for(name, environment, folder, port)))
            for name, port in ports.items()
        }
        for port in ports.values():
            wait_for_success(f"http://127.0.0.1:{port}/readyz")
        url = stack.enter_context(inner_proxy(folder, ports))
        issued = run_python(
            environment_for("one", environment, folder), *("-m", "routing_admin", "issue-key", "text-agent")
        )
        assert issued.returncode == 0, issued.stderr
        yield Installation(url, issued.stdout.strip(), servers)


def environment_for(name: str, environment: Mapping[str, str], folder: Path, port: int = 0) -> dict[str, str]:
    data = folder / name
    data.mkdir(exist_ok=True)
    return {**environment, "ROUTING_ADMIN_DATA_DIR": str(data), "ROUTING_ADMIN_PORT": str(port or 8000)}


@contextmanager
def running_service(service: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with start_program(service_command(service), environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def caller(installation: Installation) -> httpx.Client:
    headers = {"authorization": f"Bearer {installation.key}"}
    return httpx.Client(base_url=installation.url, headers=headers, timeout=30)


CHAT = {"model": "task:planning", "messages": [{"role": "user", "content": "Plan my day"}]}


def test_example_env_has_every_variable_of_compose():
    lines = (DEPLOY / "example.env").read_text().splitlines()
    assert {line.partition("=")[0] for line in lines if line and not line.startswith("#")} == variables(COMPOSE)


def test_images_are_pinned_and_both_servers_are_equal():
    """Every image tag is a version number."""
    images = [service["image"] for name, service in SERVICES.items() if name not in OWN_SERVICES]
    assert all(re.search(r":[\d.]+(-\w+)?$", image) for image in images)
    assert SERVICES["one"] == SERVICES["two"]
    assert parse_version(SERVICES["proxy"]["image"]) >= MIN_RESOLVING_VERSION[:2]


def test_image_runs_without_root_on_a_read_only_file_system():
    """The user is given as a number, so that Kubernetes can check that it is not root.

    The data directory is a volume.
    """
    _build, image = CONTAINERFILE.split("\nFROM ${BASE}\n")
    lines = image.splitlines()
    assert lines[-1] == 'ENTRYPOINT ["routing-admin"]'
    assert {"USER 10001", "VOLUME /data", "COPY --from=build /opt/routing-admin /opt/routing-admin"} <= {*lines}
    assert "PATH=/opt/routing-admin/bin:$PATH" in image
    assert "ROUTING_ADMIN_DATA_DIR=/data" in image
    for name in OWN_SERVICES:
        assert SERVICES[name]["read_only"]
        assert SERVICES[name]["tmpfs"] == ["/tmp"]


def test_compose_probe_timeouts_exceed_the_servers_own_check_timeout():
    """The image's health check tests liveness, and the one in compose.yaml tests readiness."""
    server = SERVICES["one"]["healthcheck"]
    assert "8000/healthz', timeout=4)" in CONTAINERFILE
    assert "8000/readyz', timeout=4)" in server["test"][-1]
    docs = (ROOT / "docs" / "monitoring.md").read_text()
    timeouts = [
        int(seconds) for seconds in re.findall(r"timeout(?:=|Seconds: |: )(\d+)", f"{CONTAINERFILE} {server} {docs}")
    ]
    assert min(timeouts) > PROBE_SECONDS
    assert all(SERVICES[name]["healthcheck"] == {"disable": True} for name in ("setup", "daily"))
    assert SERVICES["proxy"]["depends_on"] == {name: {"condition": "service_healthy"} for name in ("one", "two")}


def test_two_servers_behind_the_proxy_share_keys_and_files(installation):
    """Both servers accept a key that a command created, and each server serves files that the other stored.

    The proxy sends successive requests to the servers in turn.
    """
    with caller(installation) as agent:
        stored = [agent.post("/api/v1/artifacts", files={"file": ("note.txt", text)}) for text in (b"hello", b"bye")]
        read = [agent.get(f"/api/v1/artifacts/{answer.json()['ref']}/raw") for answer in stored for _ in SERVERS]
        answers = [agent.post("/v1/chat/completions", json=CHAT) for _ in SERVERS]
    assert {answer.status_code for answer in stored} == {201}
    assert [answer.content for answer in read] == [b"hello", b"hello", b"bye", b"bye"]
    assert all(answer.json()["choices"][0]["message"]["content"] for answer in answers)


def test_no_call_fails_if_one_of_two_servers_is_stopped(installation):
    with caller(installation) as agent:
        installation.servers["two"].terminate()
        answers = [agent.post("/v1/chat/completions", json=CHAT) for _ in range(40)]
    assert {answer.status_code for answer in answers} == {200}
    assert installation.servers["two"].wait(timeout=40) in (0, -signal.SIGTERM)
