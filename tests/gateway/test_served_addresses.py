"""Over real sockets: URLs with extra slashes or prefixes, and clients that speak HTTP/1.0."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from tests.chaos.callers import send
from tests.gateway.serving import Server, served

CHAT = {"model": "echo/echo-text", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("served")) as server:
        yield server


def request(server: Server, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """Return the status and body of the first response, without following redirects."""
    data = b"" if body is None else json.dumps(body).encode()
    reply = send(server, method, path, data, {"authorization": f"Bearer {server.key}"})
    return reply.status, reply.body


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/chat/completions/", "//v1/chat/completions", "/v1//chat/completions", "//v1//chat//completions//"),
        *("/chat/completions", "/api/v1/chat/completions", "//api/v1/chat/completions/"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_chat_call_with_extra_slashes_or_another_prefix_is_served(server, path, stream):
    """The call is not redirected, since clients follow redirects without the request's body."""
    status, answer = request(server, "POST", path, {**CHAT, "stream": stream})
    assert (status, b"hello" in answer) == (200, True)
    assert answer.endswith(b"data: [DONE]\n\n") is stream


@pytest.mark.parametrize(
    "path",
    [
        *("//v1/models", "/v1/models/", "/v1/models//echo-text", "/v1/models/echo-text/", "/v1/files/"),
        *("/api/v1/services/", "//api/v1/services", "/api//v1//services//", "/api/v1/agents/me/"),
    ],
)
def test_other_paths_with_extra_slashes_are_served(server, path):
    exact = "/" + "/".join(segment for segment in path.split("/") if segment)
    assert request(server, "GET", path) == request(server, "GET", exact)
    assert request(server, "GET", path)[0] == 200


def test_post_with_a_trailing_slash_keeps_its_body(server):
    status, answer = request(server, "POST", "/api/v1/llm/send/", {"prompt": "hello", "taskType": "planning"})
    assert (status, "hello" in json.loads(answer)["content"]) == (200, True)


def raw(server: Server, version: str, body: dict[str, object], path: str = "/v1/chat/completions") -> tuple[str, bytes]:
    """Send a call and return the headers and body of its response, read until the connection closes."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/{version}\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.key}\r\n"
    head += f"Content-Type: application/json\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head.encode() + data)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    received_head, _, answer = received.partition(b"\r\n\r\n")
    return received_head.decode().lower(), answer


def test_http_1_0_stream_is_not_chunked_and_ends_with_the_connection(server):
    head, answer = raw(server, "1.0", {**CHAT, "stream": True})
    assert "200 ok" in head
    assert "transfer-encoding" not in head
    assert "connection: close" in head
    events = answer.split(b"\n\n")
    assert all(event.startswith(b"data: ") for event in events[:-1])
    assert events[-2:] == [b"data: [DONE]", b""]


def test_complete_http_1_0_answer_has_a_content_length(server):
    head, answer = raw(server, "1.0", CHAT)
    assert f"content-length: {len(answer)}" in head
    assert json.loads(answer)["object"] == "chat.completion"


def test_http_1_1_stream_is_chunked(server):
    """With chunks, a client can distinguish the end of a stream from a broken connection."""
    head, answer = raw(server, "1.1", {**CHAT, "stream": True})
    assert "transfer-encoding: chunked" in head
    assert answer.endswith(b"0\r\n\r\n")
