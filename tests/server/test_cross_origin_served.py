"""The CORS headers that a served installation sends, including those of every kind of error response."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from tests.gateway.serving import Server, served

PAGE = "https://app.example"
FAILING = b'{"model": "echo/echo-503", "messages": [{"role": "user", "content": "x"}]}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("origins"), settings={"CORS_ORIGINS": PAGE}) as server:
        yield server


def ask(
    server: Server, method: str, path: str, key: str = "", body: bytes = b"", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    defaults = {"origin": PAGE, "content-type": "application/json", "authorization": f"Bearer {key}"}
    connection.request(
        method, path, body, {**defaults, **{name.replace("_", "-"): value for name, value in headers.items()}}
    )
    return connection.getresponse()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/models", b"", 200),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", FAILING, 502),
        ("POST", "/v1/messages", b'{"model": "unknown-model"}', 400),
        ("POST", "/api/v1/llm/resolve", b'{"taskType": 1}', 422),
        ("GET", "/api/v1/nothing", b"", 404),
        ("GET", "/v1/nothing", b"", 404),
        ("POST", "/mcp", b"{", 400),
    ],
)
def test_allowed_page_can_read_every_response(server: Server, method: str, path: str, body: bytes, status: int) -> None:
    answer = ask(server, method, path, server.key, body, accept="application/json, text/event-stream")
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "x-request-id" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/v1/artifacts", "/mcp"])
def test_allowed_page_can_read_an_error_sent_before_the_body(server: Server, path: str) -> None:
    assert ask(server, "POST", path, "ra_wrong").headers["access-control-allow-origin"] == PAGE
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest("POST", path)
    for name, value in {"origin": PAGE, "content-length": str(10**9), "authorization": f"Bearer {server.key}"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (413, PAGE)


def test_preflight_needs_no_key(server: Server) -> None:
    """Browsers send no credentials with a preflight."""
    headers = {"access_control_request_method": "POST", "access_control_request_headers": "authorization"}
    answer = ask(server, "OPTIONS", "/v1/chat/completions", **headers)
    assert (answer.status, answer.headers["access-control-allow-headers"]) == (204, "authorization")


def test_login_and_docs_pages_have_no_cors_headers(server: Server) -> None:
    for path in ("/login/", "/api/v1/docs"):
        assert "access-control-allow-origin" not in ask(server, "GET", path).headers
