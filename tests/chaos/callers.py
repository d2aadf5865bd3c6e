"""Callers for the stress tests: a program with an agent key, and a signed-in user. Each call has its own connection."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.chaos.installation import PASSWORD
from tests.gateway.serving import Server

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
CUT = (OSError, http.client.HTTPException)
"""The exceptions that a caller gets after the server has stopped."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def send(
    server: Server,
    method: str,
    path: str,
    body: bytes | Iterable[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Send a request and return the complete response. Raise one of the exceptions in `CUT` if none arrives."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def ask(server: Server, method: str, path: str, value: Any = None, **headers: str) -> Reply:
    """Send JSON as an agent's program does. Underscores in the header arguments' names become hyphens."""
    defaults = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    extra = {name.replace("_", "-"): header for name, header in headers.items()}
    return send(server, method, path, None if value is None else json.dumps(value).encode(), defaults | extra)


def chat(server: Server, name: str, model: str = "one/lab", **options: Any) -> Reply:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], **options}
    return ask(server, "POST", "/v1/chat/completions", body, x_request_id=name)


def upload(server: Server, content: bytes) -> Reply:
    head = b'--part\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    kind = {"authorization": f"Bearer {server.key}", "content-type": "multipart/form-data; boundary=part"}
    return send(server, "POST", "/v1/files", head + content + b"\r\n--part--\r\n", kind)


@dataclass
class Person:
    server: Server
    cookies: dict[str, str] = field(default_factory=dict)
    token: str = ""
    source: str = "127.0.0.1"

    def sign_in(self) -> Person:
        self.open("/login/")
        assert self.post("/login/", username="admin", password=PASSWORD).status == 302
        self.open("/routes/")
        return self

    def open(self, path: str) -> Reply:
        reply = self._send("GET", path)
        if token := TOKEN.search(reply.body.decode("utf-8", "replace")):
            self.token = token[1]
        return reply

    def post(self, path: str, **fields: object) -> Reply:
        return self._send("POST", path, urlencode({"csrfmiddlewaretoken": self.token, **fields}).encode())

    def _send(self, method: str, path: str, body: bytes | None = None) -> Reply:
        headers = {
            "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "content-type": "application/x-www-form-urlencoded",
        }
        port, source = self.server.port, (self.source, 0)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=source)) as connection:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self.cookies[key] = rest.partition(";")[0]
            return Reply(response.status, dict(response.getheaders()), response.read())


def at_once(*works: Callable[[], None]) -> list[BaseException]:
    """Run the functions in threads until all have ended, and return their exceptions."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@dataclass(frozen=True)
class Finding:
    """The result of a scenario: what was tried, what was acknowledged, and which acknowledged data was lost."""

    scenario: str
    tries: str
    facts: str
    losses: tuple[str, ...] = ()


def finding(scenario: str, tries: str, facts: str, losses: Iterable[str]) -> Finding:
    return Finding(scenario, tries, facts, tuple(losses))
