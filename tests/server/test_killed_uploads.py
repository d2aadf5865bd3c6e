"""If the server is killed during uploads, `prune` removes all leftovers and keeps every file whose upload succeeded."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.chaos.callers import CUT, send, upload
from tests.engines.others import locked, other_connection
from tests.engines.s3 import S3Server, s3_server
from tests.gateway.serving import Server, listening, manage, served, server_environment
from tests.processes import wait_until

WAITING = os.urandom(50_000)
LARGE = 20 * 1024 * 1024
TRIES = 50


def kill_inside_an_upload(server: Server, is_under_way: Callable[[], bool]) -> None:
    """Kill the server while it writes an upload. It is suspended first, to make sure that the upload is not yet
    complete.
    """
    for _ in range(TRIES):
        uploading = start_upload(server, os.urandom(LARGE))
        while uploading.is_alive():
            if not is_under_way():
                continue
            server.process.send_signal(signal.SIGSTOP)
            if is_under_way():
                server.process.kill()
                server.process.wait()
                uploading.join()
                return
            server.process.send_signal(signal.SIGCONT)
    raise AssertionError("every upload was over before it was seen")


def kill_during_two_uploads(server: Server, is_stored: Callable[[str], bool], is_under_way: Callable[[], bool]) -> str:
    """Kill the server while it writes an upload, and after it has stored the bytes of another one, but before it has
    written their row. Return their hash.
    """
    digest = hashlib.sha256(WAITING).hexdigest()
    with locked(server.directory / "routing_admin.sqlite3"):
        uploading = start_upload(server, WAITING)
        wait_until(lambda: is_stored(digest))
        kill_inside_an_upload(server, is_under_way)
    uploading.join()
    return digest


def start_upload(server: Server, content: bytes) -> threading.Thread:
    """Begin an upload that fails if the server is killed."""

    def run() -> None:
        with suppress(*CUT):
            upload(server, content)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def hashes_of_rows(server: Server) -> set[str]:
    with other_connection(server.directory / "routing_admin.sqlite3") as rows:
        return {sha256 for (sha256,) in rows.execute("SELECT sha256 FROM artifacts_artifact").fetchall()}


def hashes_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@contextmanager
def restart_server(server: Server, **settings: str) -> Iterator[Server]:
    environment = server_environment(server.directory, server.lab) | settings
    restarted_server = listening(environment, server.key, server.lab, server.directory)
    try:
        yield restarted_server
    finally:
        restarted_server.process.terminate()
        restarted_server.process.wait(timeout=40)


def check_content(server: Server, older: str) -> None:
    """Assert that the successful upload is readable and that the interrupted one can be repeated."""
    newer = upload(server, WAITING).json["id"]
    for ref, content in ((older, b"stored and acknowledged"), (newer, WAITING)):
        headers = {"authorization": f"Bearer {server.key}"}
        assert send(server, "GET", f"/v1/files/{ref}/content", headers=headers).body == content


def test_prune_removes_only_leftovers_of_killed_uploads(tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"

    def is_stored(digest: str) -> bool:
        return (artifacts / "obj" / digest[:2] / digest[2:4] / digest).exists()

    with served(tmp_path) as server:
        older = upload(server, b"stored and acknowledged").json["id"]
        digest = kill_during_two_uploads(server, is_stored, lambda: any((artifacts / "tmp").iterdir()))
        assert list((artifacts / "tmp").iterdir())
        assert hashes_in(artifacts / "obj") == hashes_of_rows(server) | {digest}
        # Bytes that were stored within the last hour are kept, since their row may still be written.
        for path in artifacts.rglob("*"):
            os.utime(path, (time.time() - 7200,) * 2)
        manage(server_environment(tmp_path, server.lab), "prune")
        assert hashes_in(artifacts) == hashes_of_rows(server)
        with restart_server(server) as restarted_server:
            check_content(restarted_server, older)


def test_prune_removes_only_leftovers_of_killed_uploads_from_a_bucket(tmp_path: Path) -> None:
    """A bucket never lists an incomplete upload. The bucket's own rule removes the parts (docs/scale.md)."""
    s3: S3Server = s3_server()
    bucket = s3.make_bucket(f"killed-{os.getpid()}")
    url = f"s3://{bucket.name}?endpoint_url={s3.url}&allow_http=true"
    settings = {"ROUTING_ADMIN_ARTIFACTS_URL": url}

    def list_hashes() -> set[str]:
        return {key.rpartition("/")[2] for key in s3.keys(bucket)}

    with served(tmp_path, settings={"ARTIFACTS_URL": url}) as server:
        older = upload(server, b"stored and acknowledged").json["id"]
        digest = kill_during_two_uploads(
            server, lambda digest: digest in list_hashes(), lambda: "<UploadId>" in s3.unfinished(bucket)
        )
        assert digest not in hashes_of_rows(server)
        assert list_hashes() == hashes_of_rows(server) | {digest}
        # Bytes that were stored within the last hour are kept, since their row may still be written.
        for key in s3.keys(bucket):
            s3.date(bucket, key, time.time() - 7200)
        manage(server_environment(tmp_path, server.lab) | settings, "prune")
        assert list_hashes() == hashes_of_rows(server)
        with restart_server(server, **settings) as restarted_server:
            check_content(restarted_server, older)
