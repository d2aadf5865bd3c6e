"""Compression and caching: text responses are compressed, and browsers may cache static files for a year."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.conf import settings

from tests.gateway.serving import ADMIN_PASSWORD, Server, manage, served, server_environment

STATIC = Path(settings.BASE_DIR) / "static"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("weight")) as server:
        yield server


class Caller:
    """An HTTP client with cookies and an `Accept-Encoding` header."""

    def __init__(self, server: Server) -> None:
        self.port, self.key, self.cookies = server.port, server.key, dict[str, str]()

    def ask(
        self, path: str, encoding: str = "gzip", method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        defaults = {"accept-encoding": encoding, "cookie": cookies, "authorization": f"Bearer {self.key}"}
        connection.request(
            method, path, body, defaults | {name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = connection.getresponse()
        for cookie in answer.headers.get_all("set-cookie") or []:
            name, _, rest = cookie.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return answer, answer.read()

    def sign_in(self) -> None:
        _, page = self.ask("/login/", "identity")
        token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.decode())[0]
        form = {"username": "admin", "password": ADMIN_PASSWORD, "csrfmiddlewaretoken": token}
        answer, _ = self.ask(
            "/login/", method="POST", body=urlencode(form).encode(), content_type="application/x-www-form-urlencoded"
        )
        assert answer.status == 302


@pytest.fixture(scope="module")
def caller(server: Server) -> Caller:
    signed_in = Caller(server)
    signed_in.sign_in()
    return signed_in


def static_names(caller: Caller) -> list[str]:
    _, page = caller.ask("/requests/", "identity")
    return sorted(set(re.findall(r'/static/[^"#]+', page.decode())))


@pytest.mark.parametrize("path", ["/", "/requests/", "/matrix/", "/find/?q=echo", "/settings/"])
def test_page_is_compressed_if_the_client_accepts_gzip(caller: Caller, path: str) -> None:
    uncompressed, text = caller.ask(path, "identity")
    answer, compressed = caller.ask(path, "gzip, deflate, br")
    assert (uncompressed.status, uncompressed.headers["content-encoding"]) == (200, None)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(compressed))
    assert "Accept-Encoding" in answer.headers["vary"]
    assert gzip.decompress(compressed)[:2000].splitlines()[:3] == text.splitlines()[:3]
    assert len(compressed) < len(text) / 3


def test_compressed_page_length_varies(caller: Caller) -> None:
    """A page's length and its masked CSRF token vary, so that its compressed length reveals nothing about secrets
    (BREACH).
    """
    pages = [caller.ask("/requests/")[1] for _ in range(8)]
    assert len({len(page) for page in pages}) > 1
    masks = {re.findall(rb'"X-CSRFToken":"(\w+)"', gzip.decompress(page))[0] for page in pages}
    assert len(masks) == 8


def test_json_of_the_agents_api_is_compressed(caller: Caller) -> None:
    for path in ("/api/v1/services", "/api/v1/openapi.json"):
        answer, compressed = caller.ask(path)
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(compressed)) == json.loads(caller.ask(path, "identity")[1])


def test_responses_of_v1_are_not_compressed(caller: Caller) -> None:
    """Compression would delay a stream's events."""
    body = {"model": "echo/echo-text", "stream": True, "messages": [{"role": "user", "content": "x" * 2000}]}
    for request in (body, body | {"stream": False}):
        answer, _ = caller.ask(
            "/v1/chat/completions", method="POST", body=json.dumps(request).encode(), content_type="application/json"
        )
        assert (answer.status, answer.headers["content-encoding"]) == (200, None)
    assert caller.ask("/v1/models")[0].headers["content-encoding"] is None


def test_download_is_not_compressed_and_supports_ranges(caller: Caller) -> None:
    text = b"word " * 2000
    answer, body = caller.ask(
        "/api/v1/artifacts",
        method="POST",
        body=b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + text + b"\r\n--b--\r\n",
        content_type="multipart/form-data; boundary=b",
    )
    assert answer.status == 201
    ref = json.loads(gzip.decompress(body) if answer.headers["content-encoding"] else body)["id"]
    answer, content = caller.ask(f"/api/v1/artifacts/{ref}/raw")
    assert (answer.headers["content-encoding"], content) == (None, text)
    answer, content = caller.ask(f"/api/v1/artifacts/{ref}/raw", range="bytes=5-9")
    assert (answer.status, answer.headers["content-encoding"], content) == (206, None, b"word ")


def test_static_files_may_be_cached_for_a_year(caller: Caller) -> None:
    """A static file's name contains a hash of its content."""
    names = static_names(caller)
    assert len(names) >= 6
    for name in names:
        answer, content = caller.ask(name, "identity")
        assert answer.status == 200, name
        assert set(answer.headers["cache-control"].split(", ")) == {"public", "max-age=31536000", "immutable"}
        assert name.rpartition(".")[0].rpartition(".")[2] == hashlib.sha256(content).hexdigest()[:12]


def test_static_text_files_are_compressed(caller: Caller) -> None:
    for name in static_names(caller):
        uncompressed = caller.ask(name, "identity")[1]
        answer, compressed = caller.ask(name)
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-length"] == str(len(compressed))
        assert gzip.decompress(compressed) == uncompressed
        head, body = caller.ask(name, method="HEAD")
        assert (head.headers["content-length"], body) == (str(len(compressed)), b"")
        part, content = caller.ask(name, range="bytes=0-3")
        assert (part.status, part.headers["content-encoding"], content) == (206, None, uncompressed[:4])
        tag = answer.headers["etag"]
        assert caller.ask(name, if_none_match=tag)[0].status == 304


def test_static_file_with_a_wrong_hash_returns_404(caller: Caller) -> None:
    assert caller.ask("/static/css/app.000000000000.css")[0].status == 404
    assert caller.ask("/static/css/..%2f..%2fmanage.000000000000.py")[0].status in (400, 404)
    assert "immutable" not in caller.ask("/static/css/app.css")[0].headers["cache-control"]


def test_every_page_loads_htmx_once_and_only_route_pages_load_the_drag_library(caller: Caller) -> None:
    pages = {
        path: caller.ask(path, "identity")[1].decode() for path in ("/", "/requests/", "/matrix/", "/routes/design/")
    }
    for path, page in pages.items():
        assert len(re.findall(r"<script[^>]*htmx", page)) == 1
        assert ("Sortable" in page) == (path == "/routes/design/")
        assert not re.search(r"<script[^>]*Sortable", page)


def test_collectstatic_produces_the_same_names(server: Server, caller: Caller) -> None:
    """A web server can then serve the collected files under the names that pages use."""
    manage(server_environment(server.directory, server.lab), "collectstatic", "--no-input")
    collected = {
        f"/static/{path.relative_to(server.directory / 'static')}" for path in server.directory.rglob("static/**/*.*")
    }
    assert set(static_names(caller)) <= collected


@pytest.mark.parametrize(
    "path",
    [
        *("", "css", "css/", "css/none.css", "css/app.000000000000.css", "../manage.py", "..%2f..%2fmanage.py", "%00"),
        *("%2fcss/app.css", "css%2f%2fapp.css", "css/%2e/app.css", "css/%2e%2e/css/app.css"),
    ],
)
def test_static_url_of_anything_but_a_static_file_returns_404(caller: Caller, path: str) -> None:
    """A folder, an unknown name, a wrong hash, a path out of the folder and a file's second URL all get a 404."""
    answer, _ = caller.ask(f"/static/{path}")
    assert answer.status == 404
