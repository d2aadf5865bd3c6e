"""A file of 25 MiB passes through a real server. The server never holds three copies of it in memory."""

from __future__ import annotations

import http.client
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

import pytest

from tests.chaos.callers import Reply, ask, send
from tests.gateway.serving import NAMES, Server, routing, serving
from tests.lab import Lab

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of memory is read from /proc, which is Linux's"
)

MIB = 1024 * 1024
SIZE = 25 * MIB - 64 * 1024
"""Slightly less than the upload limit, which also covers the form around the file."""

BLOCK = bytes((n * 193 + n // 7) % 256 for n in range(64 * 1024))
EDGE = "part-of-the-form"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("large")
    with Lab() as lab:
        services = {"services": [vision_service(lab, name) for name in NAMES]}
        with serving(directory, lab, [routing(lab), services]) as server:
            yield server


def vision_service(lab: Lab, name: str) -> dict[str, Any]:
    return {
        "id": f"eye-{name}",
        "name": name,
        "baseURL": lab.url("openai", name),
        "apiKey": "",
        "model": "lab",
        "capabilityTags": [],
        "capabilities": {"input": ["text", "vision", "file"], "output": ["text"]},
        "description": "Sees.",
        "limits": {"image": {"maxBytes": 40 * MIB}, "maxRequestBytes": 60 * MIB},
    }


def picture() -> Iterator[bytes]:
    yield (
        f'--{EDGE}\r\nContent-Disposition: form-data; name="file"; filename="large.png"\r\n'
        "Content-Type: image/png\r\n\r\n"
    ).encode()
    yield b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x04\0\x08\2\0\0\0"
    for _ in range(SIZE // len(BLOCK)):
        yield BLOCK
    yield f"\r\n--{EDGE}--\r\n".encode()


def upload(server: Server, length: Mapping[str, str] = MappingProxyType({})) -> Reply:
    headers = {"authorization": f"Bearer {server.key}", "content-type": f"multipart/form-data; boundary={EDGE}"}
    return send(server, "POST", "/api/v1/artifacts", picture(), headers | dict(length))


def read_memory(server: Server, field: str) -> int:
    """Return the server's memory in bytes: its current size for `VmRSS`, or its peak since `reset_peak` for `VmHWM`."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024


def reset_peak(server: Server) -> int:
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    return read_memory(server, "VmRSS")


def test_large_file_is_uploaded_previewed_sent_and_downloaded_in_blocks(server: Server) -> None:
    ask(server, "GET", "/v1/models")
    peaks: dict[str, float] = {}
    length = {"content-length": str(sum(map(len, picture())))}

    def measure(name: str, call: Callable[[], Reply]) -> bytes:
        before = reset_peak(server)
        reply = call()
        peaks[name] = (read_memory(server, "VmHWM") - before) / MIB
        assert reply.status < 300, reply.body[:500]
        return reply.body

    artifact = json.loads(measure("upload", lambda: upload(server, length)))
    assert (artifact["mimeType"], artifact["size"] > 24 * MIB) == ("image/png", True)
    shown = json.loads(measure("preview", lambda: ask(server, "GET", f"/api/v1/artifacts/{artifact['ref']}/preview")))
    native = {delivery["serviceId"] for delivery in shown["deliveries"] if delivery["outcome"] == "native"}
    assert native >= {"eye-one", "eye-two", "eye-three"}
    server.lab.play({"one": ["http_503"], "two": ["http_503"]})
    parts = [{"type": "image_url", "image_url": {"url": artifact["ref"]}}]
    chat = {"model": "task:chain", "messages": [{"role": "user", "content": parts}]}
    measure("chat", lambda: ask(server, "POST", "/v1/chat/completions", chat))
    assert [received.name for received in server.lab.requests] == ["one", "two", "three"]
    assert all(len(received.body) > SIZE * 4 // 3 for received in server.lab.requests)
    whole = measure("download", lambda: ask(server, "GET", f"/api/v1/artifacts/{artifact['ref']}/raw"))
    assert len(whole) == artifact["size"]
    # The limits are in MiB, and the file has almost 25 MiB.
    assert {name: mib for name, mib in peaks.items() if mib > 20} == {}


def test_answer_that_contains_a_large_file_is_sent_in_blocks(server: Server) -> None:
    """`get_artifact` and `/messages/route` return the file as base64 in blocks.

    The file was uploaded without a Content-Length.
    """
    ref = upload(server).json["ref"]
    message = {"text": "", "attachments": [{"type": "image", "artifactRef": ref}]}
    calls: dict[str, tuple[Any, ...]] = {
        "get_artifact": ("GET", f"/api/v1/artifacts/{ref}?serviceId=eye-one"),
        "route": ("POST", "/api/v1/messages/route", {"message": message, "serviceId": "eye-one"}),
    }
    peaks = {}
    for name, call in calls.items():
        # Memory is measured for each call, because memory of the previous call may not have been collected yet.
        before = reset_peak(server)
        reply = ask(server, *call)
        peaks[name] = (read_memory(server, "VmHWM") - before) / MIB
        assert (reply.status, len(reply.body) > SIZE * 4 // 3) == (200, True)
    assert {name: mib for name, mib in peaks.items() if mib > 20} == {}


def test_ten_concurrent_downloads_of_a_large_file_use_a_few_blocks_each(server: Server) -> None:
    path = f"/api/v1/artifacts/{upload(server).json['ref']}?serviceId=eye-one"
    lengths: list[int] = []

    def download() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.request("GET", path, headers={"authorization": f"Bearer {server.key}"})
        response = connection.getresponse()
        lengths.append(sum(len(block) for block in iter(lambda: response.read(MIB), b"")))

    before = reset_peak(server)
    for _ in range(2):
        threads = [Thread(target=download) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(lengths), len(set(lengths)), lengths[0] > SIZE * 4 // 3) == (20, 1, True)
    # Ten copies of the file would take 250 MiB.
    assert (read_memory(server, "VmHWM") - before) / MIB < 60
    assert (read_memory(server, "VmRSS") - before) / MIB < 60
