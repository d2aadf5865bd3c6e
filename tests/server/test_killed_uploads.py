"""A server killed in the middle of uploads leaves nothing behind that `prune` does not take, and loses nothing."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.chaos.callers import CUT, send, upload
from tests.engines.others import locked, other_connection
from tests.gateway.serving import Server, environment_of, listening, manage, served

WAITING = os.urandom(50_000)
LARGE = 20 * 1024 * 1024
TRIES = 50


def kill_inside_an_upload(server: Server) -> None:
    """Kills the server while a file that came in is written: it stands still as soon as some of it is there."""
    temporary = server.directory / "artifacts" / "tmp"
    for _ in range(TRIES):
        pushing = push(server, os.urandom(LARGE))
        while pushing.is_alive():
            if not list(temporary.iterdir()):
                continue
            server.process.send_signal(signal.SIGSTOP)
            if list(temporary.iterdir()):
                server.process.kill()
                server.process.wait()
                pushing.join()
                return
            server.process.send_signal(signal.SIGCONT)
    raise AssertionError("every upload was over before it was seen")


def kill_between_bytes_and_row(server: Server) -> str:
    """Kills the server when the bytes of an upload are stored and its row waits for the database; their hash."""
    digest = hashlib.sha256(WAITING).hexdigest()
    with locked(server.directory / "routing_admin.sqlite3"):
        pushing = push(server, WAITING)
        wait_for(server.directory / "artifacts" / "obj" / digest[:2] / digest[2:4] / digest)
        server.process.kill()
        server.process.wait()
    pushing.join()
    return digest


def push(server: Server, content: bytes) -> threading.Thread:
    """An upload that may be cut."""

    def run() -> None:
        with suppress(*CUT):
            upload(server, content)

    pushing = threading.Thread(target=run)
    pushing.start()
    return pushing


def wait_for(path: Path) -> None:
    """Until the file is there. Raises `AssertionError` after half a minute."""
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, f"{path} is not there"


def hashes_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@contextmanager
def listening_again(server: Server) -> Iterator[Server]:
    """The server on the same directory, once more."""
    again = listening(environment_of(server.directory, server.lab), server.key, server.lab, server.directory)
    try:
        yield again
    finally:
        again.process.terminate()
        again.process.wait(timeout=40)


def test_what_a_killed_server_leaves_of_uploads_is_swept_and_nothing_else(tmp_path: Path) -> None:
    """Half a file goes, bytes without a row go; what was acknowledged is there, and equal bytes can come again."""
    artifacts = tmp_path / "artifacts"
    with served(tmp_path) as server:
        older = upload(server, b"stored and acknowledged").json["id"]
        kill_inside_an_upload(server)
        with listening_again(server) as again:
            digest = kill_between_bytes_and_row(again)
        assert list((artifacts / "tmp").iterdir())
        assert digest in hashes_in(artifacts / "obj")
        for path in artifacts.rglob("*"):
            os.utime(path, (time.time() - 7200,) * 2)
        manage(environment_of(tmp_path, server.lab), "prune")
        with other_connection(tmp_path / "routing_admin.sqlite3") as rows:
            wanted = {sha256 for (sha256,) in rows.execute("SELECT sha256 FROM artifacts_artifact").fetchall()}
        assert hashes_in(artifacts) == wanted
        with listening_again(server) as again:
            newer = upload(again, WAITING).json["id"]
            for ref, content in ((older, b"stored and acknowledged"), (newer, WAITING)):
                headers = {"authorization": f"Bearer {server.key}"}
                assert send(again, "GET", f"/v1/files/{ref}/content", headers=headers).body == content
