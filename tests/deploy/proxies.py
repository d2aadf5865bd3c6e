"""nginx with the configuration in deploy/, and another nginx in front of it that terminates TLS."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines.programs import find_program
from tests.gateway.serving import ROOT
from tests.lab.certificate import self_signed
from tests.processes import free_port, is_listening, wait_until

CONF = ROOT / "deploy/nginx.conf"
MIN_RESOLVING_VERSION = (1, 27, 3)
"""The first nginx version whose `server` directive supports `resolve`."""
REMOVED_VARIABLES = ("ROUTING_ADMIN_", "LLM_", "DJANGO", "DATABASE_URL", "REDIS_URL", "TESTS_")
"""Prefixes of environment variables that a service does not inherit from the test process."""


def own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(REMOVED_VARIABLES)}


def find_nginx() -> str:
    """Return the path of nginx. If it is not installed, skip the test, or fail it in continuous integration."""
    nginx = find_program("nginx")
    if nginx is None:
        missing = "nginx is missing: apt-get install nginx-light"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return nginx


def parse_version(text: str) -> tuple[int, ...]:
    match = re.search(r"nginx[:/]([\d.]+)", text)
    assert match
    return tuple(map(int, match[1].split(".")))


@contextmanager
def inner_proxy(folder: Path, ports: Mapping[str, int], outer: str = "127.0.0.1") -> Iterator[str]:
    """Run nginx with the configuration in deploy/ on local ports and yield its URL. It trusts the proxy at `outer`."""
    port, text = free_port(), CONF.read_text()
    version = subprocess.run([find_nginx(), "-v"], capture_output=True, text=True, check=True).stderr
    if parse_version(version) < MIN_RESOLVING_VERSION:
        text = text.replace(" resolve;", ";")
    for name, service_port in ports.items():
        text = text.replace(f"server {name}:8000", f"server 127.0.0.1:{service_port}")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{port};")
    text = text.replace("${OUTER_PROXY}", outer).replace("${NGINX_LOCAL_RESOLVERS}", "127.0.0.1")
    with running_nginx(folder, "inner", text, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def tls_proxy(folder: Path, inner: str, address: str) -> Iterator[str]:
    certificate, key = self_signed()
    port = free_port()
    (location,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/scale.md").read_text(), re.DOTALL)
    text = f"""server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        proxy_bind {address};
        {location.replace("http://127.0.0.1:8000", inner)}
    }}"""
    with running_nginx(folder, "outer", text, port):
        yield f"https://127.0.0.1:{port}"


@contextmanager
def running_nginx(folder: Path, name: str, text: str, port: int) -> Iterator[None]:
    """Run nginx with `text` in its `http` block, and yield once it responds on the port."""
    home = folder / f"nginx-{name}"
    home.mkdir()
    paths = "".join(
        f"{directory}_temp_path {home}/{directory};\n"
        for directory in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = home / "nginx.conf"
    file.write_text(f"daemon off; pid {home}/pid; events {{}}\nhttp {{ access_log off;\n{paths}{text}}}\n")
    with subprocess.Popen([find_nginx(), "-e", f"{home}/log", "-c", str(file)]) as process:
        try:
            wait_until(lambda: is_listening(port))
            yield
        finally:
            process.terminate()
