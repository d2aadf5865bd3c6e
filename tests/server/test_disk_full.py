"""A full disk: requests are answered, uploads and changes fail with a clear error, and no acknowledged data is lost."""

from __future__ import annotations

import errno
import http.client
import json
import os
import resource
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from routing_admin.platform.server.request_limit import limit_bodies
from tests.gateway.serving import Server, environment_of, manage, served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are set as Linux does")
BOUNDARY = "part"


def test_calls_succeed_while_the_disk_is_full_and_are_logged_later(tmp_path: Path):
    """With a full disk calls are answered and uploads refused. The log is written when there is space again.

    A file size limit of 0 acts like a full disk.
    """
    with served(tmp_path) as server:
        environment = environment_of(tmp_path, server.lab)
        key = manage(environment, "issue_agent_key", "text-agent", "--scope", "agents:write")
        writer = {"authorization": f"Bearer {key}"}
        assert send(server, "POST", "/v1/files", upload(b"before"))[0] == 200
        set_room(server, 0)
        names = [f"full-{number}" for number in range(20)]
        assert [chat(server, name) for name in names] == [200] * len(names)
        status, body = send(server, "POST", "/v1/files", upload(os.urandom(300_000)))
        assert (status, body["error"]["code"]) == (507, "storage_full")
        status, body = send(server, "PUT", "/api/v1/agents/new-one", b'{"taskType": "planning"}', writer)
        assert (status, body["error"]) == (503, "unavailable")
        assert send(server, "GET", f"/api/v1/requests/{names[0]}")[0] == 503
        set_room(server, resource.RLIM_INFINITY)
        while send(server, "GET", f"/api/v1/requests/{names[-1]}")[0] == 503:
            assert server.process.poll() is None
        assert [server.timeline(name)["outcome"] for name in names] == ["ok"] * len(names)
        assert send(server, "POST", "/v1/files", upload(b"after"))[0] == 200
        assert [file["bytes"] for file in server.get("/v1/files")["data"]] == [5, 6]
        assert list((tmp_path / "artifacts" / "tmp").iterdir()) == []


async def test_large_body_that_cannot_be_spooled_is_507():
    """If the disk is full while a large body is spooled, the response is 507 instead of a client error."""

    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await limit_bodies(full)({"type": "http", "path": "/api/v1/artifacts", "headers": []}, full, send)
    assert sent[0]["status"] == 507
    assert json.loads(sent[1]["body"])["error"] == "storage_full"


def set_room(server: Server, size: int) -> None:
    """Limit the size of files that the server can write."""
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def chat(server: Server, name: str) -> int:
    body = {"model": "one/lab", "messages": [{"role": "user", "content": "hello"}]}
    return send(server, "POST", "/v1/chat/completions", json.dumps(body).encode(), {"x-request-id": name})[0]


def upload(content: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()


def send(
    server: Server, method: str, path: str, body: bytes | None = None, extra_headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    kind = f"multipart/form-data; boundary={BOUNDARY}" if path == "/v1/files" else "application/json"
    headers = {"authorization": f"Bearer {server.key}", "content-type": kind, **(extra_headers or {})}
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
