"""A large request to `/v1` stays in memory. No temporary file is created for it, not even an unnamed one."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.asgi_caller import PATH, chat_call
from tests.gateway.serving import Server, served
from tests.processes import wait_until

MB = 1_000_000
BLOCK = 500_000
TEXT = "word and word again " * MB
"""A text of 20 MB."""


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the files created with `os.open`, which `tempfile` uses, and the spooled bodies that are moved to disk."""
    created: list[str] = []
    creation_flags = os.O_CREAT | getattr(os, "O_TMPFILE", 0)
    original_open, original_rollover = os.open, tempfile.SpooledTemporaryFile.rollover

    def recording_open(path: Any, flags: int, *args: Any, **more: Any) -> int:
        # Another thread may connect to SQLite meanwhile, so database files are ignored.
        if flags & creation_flags and ".sqlite3" not in str(path):
            created.append(str(path))
        return original_open(path, flags, *args, **more)

    def recording_rollover(file: Any) -> None:
        created.append("a body that outgrew memory")
        original_rollover(file)

    monkeypatch.setattr(os, "open", recording_open)
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", recording_rollover)
    return created


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
@pytest.mark.parametrize("pieces", [1, 300])
async def test_large_call_creates_no_temporary_file(key, loopback, files, pieces, settings):
    settings.MAX_JSON_BYTES = 2 * len(TEXT)
    async with loopback.serve():
        assert (await chat_call(key, "plain").run()).status == 200
        # Forget the database files that the first call may have opened.
        files.clear()
        messages = [{"role": "user", "content": TEXT}]
        assert (await chat_call(key, "plain", pieces=pieces, messages=messages).run()).status == 200
    assert files == []


def test_fixture_records_every_temporary_file(files):
    with tempfile.NamedTemporaryFile(), tempfile.TemporaryFile(), tempfile.SpooledTemporaryFile(max_size=5) as body:
        body.write(b"longer")
    assert len(files) == 4


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, temporary: Path) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        with served(tmp_path_factory.mktemp("no-files"), settings={"MAX_JSON_BYTES": str(2 * len(TEXT))}) as server:
            yield server


def temporary_files(server: Server, temporary: Path) -> set[str]:
    """Return the files in `temporary` that the server process has open, and its open files that have no name."""
    targets = set()
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except FileNotFoundError:
            # The file was closed after the directory was listed.
            continue
        if target.startswith(str(temporary)) or target.endswith("(deleted)"):
            targets.add(target)
    return targets


def begin(server: Server, path: str, body: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {server.key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


linux = pytest.mark.skipif(sys.platform != "linux", reason="which files a process has open is read from Linux's /proc")


@linux
def test_served_call_of_20_mb_creates_no_temporary_file(server, temporary):
    messages = [{"role": "user", "content": TEXT}]
    body = json.dumps({"model": "one/fault:silent", "messages": messages}).encode()
    server.get("/v1/models")
    # Files such as the one for standard output may already be open.
    made_before, open_before = temporary.stat().st_mtime_ns, temporary_files(server, temporary)
    seen = set[str]()
    with begin(server, PATH, body) as caller:
        for start in range(0, len(body), BLOCK):
            caller.sendall(body[start : start + BLOCK])
            seen |= temporary_files(server, temporary)
        assert server.lab.wait_until(lambda: bool(server.lab.requests), 30)
        seen |= temporary_files(server, temporary)
    assert len(server.lab.requests[0].body) > 20 * MB
    assert seen - open_before == set()
    assert temporary.stat().st_mtime_ns == made_before


@linux
def test_file_of_a_spooled_body_is_detected(server, temporary):
    """If a page gets a large body, Django spools it to a file."""
    open_before = temporary_files(server, temporary)
    with begin(server, "/api/v1/messages/route", b" " * 10 * MB) as caller:
        caller.sendall(b" " * 9 * MB)
        assert wait_until(lambda: temporary_files(server, temporary) - open_before)
