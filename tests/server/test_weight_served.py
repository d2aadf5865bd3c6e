"""Responses over the wire: compressed text, static files cached for a year, everything else unchanged."""

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

from tests.gateway.serving import Server, environment_of, manage, served

PASSWORD = "a password for weighing 1"
STATIC = Path(settings.BASE_DIR) / "static"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("weight"), settings={"ADMIN_PASSWORD": PASSWORD}) as server:
        yield server


class Caller:
    """Client with cookies and an `Accept-Encoding` header."""

    def __init__(self, server: Server) -> None:
        self.port, self.key, self.cookies = server.port, server.key, dict[str, str]()

    def ask(
        self, path: str, encoding: str = "gzip", method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        said = {"accept-encoding": encoding, "cookie": cookies, "authorization": f"Bearer {self.key}"}
        line.request(method, path, body, said | {name.replace("_", "-"): value for name, value in headers.items()})
        answer = line.getresponse()
        for cookie in answer.headers.get_all("set-cookie") or []:
            name, _, rest = cookie.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return answer, answer.read()

    def sign_in(self) -> None:
        _, page = self.ask("/login/", "identity")
        token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.decode())[0]
        form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": token}
        answer, _ = self.ask(
            "/login/", method="POST", body=urlencode(form).encode(), content_type="application/x-www-form-urlencoded"
        )
        assert answer.status == 302


@pytest.fixture(scope="module")
def caller(server: Server) -> Caller:
    made = Caller(server)
    made.sign_in()
    return made


def static_names(caller: Caller) -> list[str]:
    _, page = caller.ask("/requests/", "identity")
    return sorted(set(re.findall(r'/static/[^"#]+', page.decode())))


@pytest.mark.parametrize("path", ["/", "/requests/", "/matrix/", "/find/?q=echo", "/settings/"])
def test_a_page_is_compressed_for_who_takes_that(caller: Caller, path: str) -> None:
    """A page is compressed to less than a quarter of its size if the client accepts gzip."""
    plain, words = caller.ask(path, "identity")
    answer, packed = caller.ask(path, "gzip, deflate, br")
    assert (plain.status, plain.headers["content-encoding"]) == (200, None)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(packed))
    assert "Accept-Encoding" in answer.headers["vary"]
    assert gzip.decompress(packed)[:2000].splitlines()[:3] == words.splitlines()[:3]
    assert len(packed) < len(words) / 4


def test_the_length_of_a_page_tells_nothing_of_its_secret(caller: Caller) -> None:
    """The length and the masked CSRF token of a page vary, so that its length reveals nothing."""
    packed = [caller.ask("/requests/")[1] for _ in range(8)]
    assert len({len(each) for each in packed}) > 1
    masks = {re.findall(rb'"X-CSRFToken":"(\w+)"', gzip.decompress(each))[0] for each in packed}
    assert len(masks) == 8


def test_what_the_agents_api_answers_is_compressed(caller: Caller) -> None:
    """JSON of the agents' API is compressed."""
    for path in ("/api/v1/services", "/api/v1/openapi.json"):
        answer, packed = caller.ask(path)
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(packed)) == json.loads(caller.ask(path, "identity")[1])


def test_streams_and_answers_of_the_data_plane_stay_as_they_are(caller: Caller) -> None:
    """Streams and responses of `/v1` are not compressed, so that each event arrives at once."""
    body = {"model": "echo/echo-text", "stream": True, "messages": [{"role": "user", "content": "x" * 2000}]}
    for asked in (body, body | {"stream": False}):
        answer, _ = caller.ask(
            "/v1/chat/completions", method="POST", body=json.dumps(asked).encode(), content_type="application/json"
        )
        assert (answer.status, answer.headers["content-encoding"]) == (200, None)
    assert caller.ask("/v1/models")[0].headers["content-encoding"] is None


def test_a_file_comes_as_its_own_bytes(caller: Caller) -> None:
    """A download is not compressed and supports ranges."""
    text = b"word " * 2000
    answer, said = caller.ask(
        "/api/v1/artifacts",
        method="POST",
        body=b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + text + b"\r\n--b--\r\n",
        content_type="multipart/form-data; boundary=b",
    )
    assert answer.status == 201
    ref = json.loads(gzip.decompress(said) if answer.headers["content-encoding"] else said)["id"]
    answer, found = caller.ask(f"/api/v1/artifacts/{ref}/raw")
    assert (answer.headers["content-encoding"], found) == (None, text)
    answer, found = caller.ask(f"/api/v1/artifacts/{ref}/raw", range="bytes=5-9")
    assert (answer.status, answer.headers["content-encoding"], found) == (206, None, b"word ")


def test_static_files_are_kept_for_ever_under_a_name_that_holds_their_hash(caller: Caller) -> None:
    """Static files may be cached for a year, since their names contain the hash."""
    names = static_names(caller)
    assert len(names) >= 6
    for name in names:
        answer, content = caller.ask(name, "identity")
        assert answer.status == 200, name
        assert set(answer.headers["cache-control"].split(", ")) == {"public", "max-age=31536000", "immutable"}
        assert name.rpartition(".")[0].rpartition(".")[2] == hashlib.sha256(content).hexdigest()[:12]


def test_static_texts_are_compressed(caller: Caller) -> None:
    """Static text files are compressed; ranges are of the plain file, and an ETag gives 304."""
    for name in static_names(caller):
        plain = caller.ask(name, "identity")[1]
        answer, packed = caller.ask(name)
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-length"] == str(len(packed))
        assert gzip.decompress(packed) == plain
        head, nothing = caller.ask(name, method="HEAD")
        assert (head.headers["content-length"], nothing) == (str(len(packed)), b"")
        part, some = caller.ask(name, range="bytes=0-3")
        assert (part.status, part.headers["content-encoding"], some) == (206, None, plain[:4])
        tag = answer.headers["etag"]
        assert caller.ask(name, if_none_match=tag)[0].status == 304


def test_a_name_with_another_hash_is_not_there(caller: Caller) -> None:
    """A static file with a wrong hash is a 404; without a hash it is not immutable."""
    assert caller.ask("/static/css/app.000000000000.css")[0].status == 404
    assert caller.ask("/static/css/..%2f..%2fmanage.000000000000.py")[0].status in (400, 404)
    assert "immutable" not in caller.ask("/static/css/app.css")[0].headers["cache-control"]


def test_htmx_comes_once_and_the_drag_library_only_with_a_chain(caller: Caller) -> None:
    """Every page loads htmx once, and only the page of a route names the drag library."""
    pages = {
        path: caller.ask(path, "identity")[1].decode() for path in ("/", "/requests/", "/matrix/", "/routes/design/")
    }
    for path, page in pages.items():
        assert len(re.findall(r"<script[^>]*htmx", page)) == 1
        assert ("Sortable" in page) == (path == "/routes/design/")
        assert not re.search(r"<script[^>]*Sortable", page)


def test_who_collects_static_files_gets_the_same_names(server: Server, caller: Caller) -> None:
    """`collectstatic` produces the same names, so that another server can serve the files."""
    manage(environment_of(server.directory, server.lab), "collectstatic", "--no-input")
    collected = {
        f"/static/{path.relative_to(server.directory / 'static')}" for path in server.directory.rglob("static/**/*.*")
    }
    assert set(static_names(caller)) <= collected
