"""CORS in a real browser: pages of allowed origins can call the agents' APIs, and other pages cannot."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.gateway.serving import Server, served

pytestmark = pytest.mark.ui
CALL = """async ([url, key, body]) => {
  const headers = {authorization: `Bearer ${key}`, "content-type": "application/json"};
  try {
    const answer = await fetch(url, body ? {method: "POST", headers, body} : {headers});
    const named = ["x-request-id", "x-routing-model"].map((name) => answer.headers.get(name));
    return [answer.status, ...named, await answer.text()];
  } catch (problem) {
    return [0, null, null, String(problem)];
  }
}"""
HELLO = '{"model": "task:planning", "stream": true, "messages": [{"role": "user", "content": "hello"}]}'
LIST = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'


class Empty(BaseHTTPRequestHandler):
    """An HTTP handler whose response is an empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>page</title>")

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Serve an empty page on localhost and yield the port. From there, Chromium allows calls to this machine without
    asking.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as pages:
        Thread(target=pages.serve_forever, daemon=True).start()
        yield pages.server_port
        pages.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("origins"), settings={"CORS_ORIGINS": f"http://localhost:{port}"}) as server:
        yield server


@pytest.fixture
def page_at(browser: Any, port: int) -> Iterator[Any]:
    """Yield a function that opens the empty page under a host name of this machine. Each name is a separate origin."""
    context = browser.new_context()

    def open_page(name: str) -> Any:
        page = context.new_page()
        page.goto(f"http://{name}:{port}/")
        return page

    yield open_page
    context.close()


def test_page_of_an_allowed_origin_can_read_responses_streams_headers_and_errors(page_at: Any, server: Server) -> None:
    """The browser sends the preflight requests by itself."""
    page = page_at("localhost")
    status, request_id, model, text = page.evaluate(CALL, [f"{server.url}/v1/chat/completions", server.key, HELLO])
    assert (status, model) == (200, "echo-text"), text
    assert request_id
    assert "[DONE]" in text
    status, request_id, _, text = page.evaluate(CALL, [f"{server.url}/v1/chat/completions", "ra_wrong", HELLO])
    assert (status, bool(request_id)) == (401, True)
    assert "invalid_api_key" in text
    assert page.evaluate(CALL, [f"{server.url}/api/v1/tools", server.key, ""])[0] == 200
    status, _, _, text = page.evaluate(CALL, [f"{server.url}/mcp", server.key, LIST])
    assert (status, "get_artifact" in text) == (200, True)


def test_page_of_another_origin_cannot_read_responses(page_at: Any, server: Server) -> None:
    """The administrators' pages cannot be read even from an allowed origin."""
    page = page_at("127.0.0.1")
    assert page.evaluate(CALL, [f"{server.url}/v1/models", server.key, ""])[0] == 0
    assert page.evaluate(CALL, [f"{server.url}/v1/chat/completions", server.key, HELLO])[0] == 0
    assert page_at("localhost").evaluate(CALL, [f"{server.url}/login/", server.key, ""])[0] == 0
