"""CORS: which APIs allow cross-origin requests, which headers a page can read, and how preflights are answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routing_admin.environment import browser_origin
from routing_admin.platform.server.cross_origin import share
from tests.gateway.serving import server_environment
from tests.lab import Lab
from tests.preloaded import run_python

PAGE = "https://app.example"


async def plain_app(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application whose response is recognizable and has its own Vary header."""
    headers = [(b"vary", b"Cookie"), (b"x-routing-novelty", b"1"), (b"x-asked", b"1")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


async def ask(
    origins: tuple[str, ...], path: str = "/v1/models", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of the response. Underscores in names of request headers become hyphens."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": pairs}
    await share(plain_app, origins)(scope, None, send)
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def preflight(origins: tuple[str, ...], path: str = "/v1/models", origin: str = PAGE, **headers: str) -> Any:
    return ask(origins, path, "OPTIONS", origin=origin, access_control_request_method="POST", **headers)


def test_application_is_not_wrapped_without_cors_origins() -> None:
    assert share(plain_app, ()) is plain_app


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/mcp", "/api/v1/tools", "//v1//models/", "/v1"])
async def test_allowed_origin_can_read_every_response(path: str) -> None:
    status, headers = await ask((PAGE,), path, origin=PAGE)
    assert (status, headers["access-control-allow-origin"]) == (401, PAGE)
    assert headers["vary"] == "Cookie, Origin"
    readable = headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "retry-after", "mcp-session-id", "mcp-protocol-version", "x-routing-novelty"} <= {*readable}
    assert "x-asked" not in readable
    assert "access-control-allow-credentials" not in headers


@pytest.mark.parametrize("path", ["/", "/login/", "/requests/", "/api/v1/docs", "/v10/models", "/healthz", "/mcpx"])
async def test_pages_never_allow_cross_origin_requests(path: str) -> None:
    assert "access-control-allow-origin" not in (await ask(("*",), path, origin=PAGE))[1]
    assert (await preflight(("*",), path))[1]["x-asked"] == "1"


async def test_unlisted_origin_cannot_read_the_response() -> None:
    status, headers = await ask((PAGE,), origin="https://other.example")
    assert (status, headers["vary"]) == (401, "Cookie, Origin")
    assert "access-control-allow-origin" not in headers
    assert (await preflight((PAGE,), origin="https://other.example"))[0] == 403


async def test_response_to_a_request_without_origin_differs_only_in_vary() -> None:
    """A cache might later serve the same response to a web page, so `Vary` is needed."""
    assert "access-control-allow-origin" not in (await ask((PAGE,)))[1]
    assert (await ask((PAGE,)))[1]["vary"] == "Cookie, Origin"
    assert (await ask(("*",)))[1]["vary"] == "Cookie"


async def test_star_allows_every_origin_without_credentials() -> None:
    """`*` allows every origin but no cookies, since the Fetch standard (§3.2.5) forbids both together."""
    _, headers = await ask(("*",), origin=PAGE)
    assert headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in headers


async def test_preflight_is_answered_before_the_application_is_called() -> None:
    """A preflight needs no key and no database. Its response allows all requested headers."""
    requested = "authorization,content-type,x-stainless-lang"
    status, headers = await preflight((PAGE,), access_control_request_headers=requested)
    assert (status, headers["access-control-allow-headers"]) == (204, requested)
    assert headers["access-control-allow-origin"] == PAGE
    assert "PUT" in headers["access-control-allow-methods"]
    assert "Access-Control-Request-Headers" in headers["vary"]
    assert "x-asked" not in headers


async def test_invalid_requested_headers_are_not_echoed_by_a_preflight() -> None:
    _, headers = await preflight((PAGE,), access_control_request_headers="a: b\r\nset-cookie: c")
    assert "access-control-allow-headers" not in headers


async def test_options_without_preflight_headers_is_an_ordinary_request() -> None:
    assert (await ask((PAGE,), method="OPTIONS", origin=PAGE))[1]["x-asked"] == "1"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://a.example", "https://a.example"),
        ("HTTPS://A.example:443/", "https://a.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("tauri://localhost", "tauri://localhost"),
        ("null", None),
        ("a.example", None),
        ("https://a.example/x", None),
        ("https://a.example?x", None),
        ("https://user@a.example", None),
        ("https://*.example", None),
        ("https://a.example:99999", None),
    ],
)
def test_origin_is_accepted_only_in_browser_notation(text: str, origin: str | None) -> None:
    assert browser_origin(text) == origin


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("https://a.example,nonsense", "'nonsense' is no origin"),
        ("https://A.example/", "browsers write 'https://A.example/' as 'https://a.example'"),
        ("*,https://a.example", "'*' is no origin: * must be the only value"),
    ],
)
def test_invalid_cors_origin_stops_startup_with_one_error_line(tmp_path: Path, value: str, sentence: str) -> None:
    with Lab({}) as lab:
        environment = server_environment(tmp_path, lab) | {"ROUTING_ADMIN_CORS_ORIGINS": value}
    result = run_python(environment, "manage.py", "serve")
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("ROUTING_ADMIN_CORS_ORIGINS: ")
    assert sentence in line
