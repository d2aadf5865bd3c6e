"""While the disk is full, requests are answered, uploads and changes fail with a clear error, and no saved data is
lost.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routing_admin.platform.server.request_limit import limit_bodies
from tests.chaos.callers import ask, chat, upload
from tests.gateway.serving import Server, manage, served, server_environment
from tests.processes import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are set as Linux does")


def test_calls_succeed_while_the_disk_is_full_and_are_logged_later(tmp_path: Path):
    """A file size limit of 0 has the same effect as a full disk."""
    with served(tmp_path) as server:
        environment = server_environment(tmp_path, server.lab)
        key = manage(environment, "issue_agent_key", "text-agent", "--scope", "agents:write")
        assert upload(server, b"before").status == 200
        limit_file_size(server, 0)
        names = [f"full-{number}" for number in range(20)]
        assert [chat(server, name).status for name in names] == [200] * len(names)
        reply = upload(server, os.urandom(300_000))
        assert (reply.status, reply.json["error"]["code"]) == (507, "storage_full")
        reply = ask(replace(server, key=key), "PUT", "/api/v1/agents/new-one", {"taskType": "planning"})
        assert (reply.status, reply.json["error"]) == (503, "unavailable")
        assert ask(server, "GET", f"/api/v1/requests/{names[0]}").status == 503
        limit_file_size(server, resource.RLIM_INFINITY)
        wait_until(lambda: ask(server, "GET", f"/api/v1/requests/{names[-1]}").status != 503)
        assert [server.timeline(name)["outcome"] for name in names] == ["ok"] * len(names)
        assert upload(server, b"after").status == 200
        assert [file["bytes"] for file in server.get("/v1/files")["data"]] == [5, 6]
        assert list((tmp_path / "artifacts" / "tmp").iterdir()) == []


async def test_large_body_that_cannot_be_spooled_returns_507():
    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await limit_bodies(full)({"type": "http", "path": "/api/v1/artifacts", "headers": []}, full, send)
    assert sent[0]["status"] == 507
    assert json.loads(sent[1]["body"])["error"] == "storage_full"


def limit_file_size(server: Server, size: int) -> None:
    """Limit the size of files that the server can write."""
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))
