"""SIGTERM: what is in flight is finished, what waits is written."""

from __future__ import annotations

import http.client
import json
import sqlite3
from pathlib import Path

from tests.gateway.serving import served


def test_a_server_that_is_told_to_stop_finishes_its_answers_and_writes_its_journal(tmp_path: Path):
    """The caller gets the whole answer after the signal; the log has the request after the process has ended."""
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
