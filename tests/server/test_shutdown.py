"""After SIGTERM, requests in progress are completed and logged. After SIGKILL, everything written before is intact."""

from __future__ import annotations

import http.client
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.chaos.callers import chat
from tests.gateway.serving import served


def test_sigterm_completes_running_calls_and_logs_them(tmp_path: Path):
    with served(tmp_path) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        headers = {"authorization": f"Bearer {server.key}", "x-request-id": "last-one"}
        body = {"model": "one/fault:delay:seconds=1", "messages": [{"role": "user", "content": "hello"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        assert server.lab.wait_until(lambda: bool(server.lab.requests))
        server.process.terminate()
        response = connection.getresponse()
        assert response.status == 200
        assert json.loads(response.read())["choices"][0]["finish_reason"] == "stop"
        connection.close()
        server.process.wait(timeout=30)
    with sqlite3.connect(tmp_path / "logs.sqlite3") as rows:
        query = "select outcome, status from routing_admin_requestlog where id = 'last-one'"
        assert rows.execute(query).fetchall() == [("ok", 200)]


def test_killed_server_keeps_logged_requests(tmp_path: Path):
    names = [f"call-{number}" for number in range(5)]
    with served(tmp_path) as server:
        for name in names:
            assert chat(server, name).status == 200
        while len(read_rows(tmp_path)) < len(names):
            assert server.get("/v1/models")  # This call neither writes nor reads the log.
        server.process.kill()
        server.process.wait(timeout=30)
    assert read_rows(tmp_path) == [(name, "ok", "one") for name in names]
    with closing(sqlite3.connect(tmp_path / "logs.sqlite3")) as rows:
        assert rows.execute("pragma integrity_check").fetchall() == [("ok",)]


def read_rows(directory: Path) -> list[tuple[str, str, str]]:
    query = (
        "select request.id, request.outcome, attempt.provider from routing_admin_requestlog request "
        "join routing_admin_attemptlog attempt on attempt.request_id = request.id "
        "where request.id like 'call-%' order by request.id"
    )
    with closing(sqlite3.connect(directory / "logs.sqlite3")) as rows:
        return rows.execute(query).fetchall()
