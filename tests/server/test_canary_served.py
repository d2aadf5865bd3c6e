"""Secrets planted in a served installation do not leak into responses, logs, exports, files or backups.

Three occurrences are allowed: a new key in the response that creates it, a session key in Django's session store, and
the secret in the URL of an agent's page, which the links on that page repeat.
"""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from django.urls import Resolver404, resolve

from tests.gateway.serving import ADMIN_PASSWORD, Server, manage, served, server_environment
from tests.processes import NO_CERTIFICATES

PASSWORDS = {
    "admin": ADMIN_PASSWORD,
    "edith": "canary plover 9023 anvil",
    "vera": "canary finch 6615 kettle",
}
PROVIDER_KEYS = ("sk-canary-first-7f3a91c05be2", "sk-canary-second-0d48ab6e97f1")
MISTYPED = "canary password in the field of the name 3390"
LINK = re.compile(r'href="(/[^"#]*)"')
FORM = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
OWN_FILES = {"secret_key", "keys"}
"""Files in the data directory that hold the installation's own secrets. The search skips them.

None of the planted secrets is stored in them.
"""


class Echo(BaseHTTPRequestHandler):
    """A provider that repeats the received key in its error message and in a response header."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        authorization = self.headers.get("authorization", "")
        body = json.dumps(
            {"error": {"message": f"Incorrect API key provided: {authorization}", "key": authorization}}
        ).encode()
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("x-said", authorization)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815 - as the library calls it

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def leaking_provider() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


class Browser:
    """A browser session that records every page it has received."""

    def __init__(self, url: str, seen: dict[str, bytes], name: str) -> None:
        self.client, self.seen, self.name = httpx.Client(base_url=url, timeout=60, verify=NO_CERTIFICATES), seen, name

    def get(self, path: str) -> str:
        answer = self.client.get(path, follow_redirects=True)
        self.keep(f"GET {path}", answer)
        return answer.text

    def post(self, page: str, path: str, *, once: bool = False, **fields: Any) -> str:
        token = FORM.search(self.client.get(page).text)
        assert token is not None, page
        data = {"csrfmiddlewaretoken": token[1], **fields}
        answer = self.client.post(path, data=data, headers={"referer": f"{self.client.base_url}"})
        if not once:
            self.keep(f"POST {path}", answer)
        return answer.text

    def keep(self, request: str, answer: httpx.Response) -> None:
        headers = {name: value for name, value in answer.headers.items() if name != "set-cookie"}
        self.seen[f"{self.name}: {request}"] = f"{answer.status_code} {headers}\n".encode() + answer.content

    def sign_in(self, name: str) -> Browser:
        self.post("/login/", "/login/", username=name, password=PASSWORDS[name])
        assert self.client.get("/").status_code == 200
        return self


def accept_invitation(admin: Browser, name: str, role: str) -> Browser:
    """Return a new user's browser. The user has accepted an invitation and is signed in."""
    page = admin.post("/users/", "/users/invite/", once=True, username=name, role=role)
    link = re.search(r"/join/[^<\s]+", page)
    assert link is not None
    fields = {"new_password1": PASSWORDS[name], "new_password2": PASSWORDS[name], "language": "en"}
    Browser(str(admin.client.base_url), admin.seen, f"join {name}").post(link[0], link[0], **fields)
    return Browser(str(admin.client.base_url), admin.seen, name).sign_in(name)


def ask(
    server: Server, seen: dict[str, bytes], method: str, path: str, secret: str, body: Any = None, **headers: str
) -> Any:
    all_headers = {
        "authorization": f"Bearer {secret}",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    answer = httpx.request(
        method, server.url + path, json=body, headers=all_headers, timeout=60, verify=NO_CERTIFICATES
    )
    seen[f"program: {method} {path.split('?')[0]} {len(seen)}"] = (
        f"{answer.status_code} {answer.headers}".encode() + answer.content
    )
    return answer


def call_everything(server: Server, seen: dict[str, bytes], key: str, token: str) -> None:
    """Send requests that succeed, that fail at the provider, that are malformed, and that have secrets in the wrong
    place.
    """
    chat = {"model": "leaky/m", "messages": [{"role": "user", "content": "hello"}]}
    for body in (chat, {**chat, "stream": True}, {**chat, "model": "echo/echo-text"}, {**chat, "messages": 7}):
        ask(server, seen, "POST", "/v1/chat/completions", key, body, idempotency_key=f"canary-{len(seen)}")
    for path in (
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/responses",
        "/v1beta/models/leaky%2Fm:generateContent",
        "/api/v1/llm/send",
        "/api/v1/admin/config/import",
    ):
        ask(server, seen, "POST", path, f"{key}x", chat)
        ask(server, seen, "POST", f"{path}?key={key}&token={token}", key, chat)
        ask(server, seen, "POST", path, token, chat, x_api_key=key)
    document = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=60, verify=NO_CERTIFICATES).json()
    names = {
        "name": "llm-routing",
        "service_id": "text-model",
        "agent_id": "text-agent",
        "provider": "leaky",
    }
    names |= {"task_type": "planning", "username": "edith", "ref": "artifact:none", "request_id": "none"}
    for path, methods in document["paths"].items():
        if "get" in methods:
            secret = token if "/admin/" in path else key
            ask(server, seen, "GET", re.sub(r"{(\w+)}", lambda match: names.get(match[1], "1"), path), secret)
    for path in ("/metrics", "/healthz", "/readyz", "/v1/models", "/v1/nothing", "/api/v1/nothing"):
        ask(server, seen, "GET", path, key)
    invalid_provider = {"endpoint": "nowhere", "defaultModel": "m", "apiKey": PROVIDER_KEYS[0]}
    ask(server, seen, "PUT", "/api/v1/admin/providers/other", token, invalid_provider)
    ask(
        server,
        seen,
        "PUT",
        "/api/v1/admin/services/other",
        token,
        {"provider": "leaky", "model": "m", "apiKey": PROVIDER_KEYS[0]},
    )


def share_page(admin: Browser, opened: dict[str, bytes]) -> str:
    """Create the link to an agent's page, use it in valid and invalid ways, revoke it, and return its secret."""
    form = {"link-name": "Mei", "link-days": "7", "link-with_bodies": "on"}
    page = admin.post("/agents/text-agent/", "/links/make/text-agent/", once=True, **form)
    link = re.search(r"/agent-page/rap_([0-9a-f]{8})_([\w-]{43})_[0-9a-f]{8}/", page)
    assert link is not None
    mei = Browser(str(admin.client.base_url), opened, "link")
    call = re.search(r"/agent-page/calls/[^\"]+", mei.get(link[0]))
    assert call is not None
    nothing = link[0].replace("/agent-page/", "/agent-page/calls/none/")
    for path in (call[0], nothing, f"{link[0][:-3]}/", f"{link[0]}x"):
        mei.get(path)
    mei.keep("POST", mei.client.post(link[0]))
    admin.post("/agents/text-agent/", f"/links/{link[1]}/revoke/text-agent/")
    mei.get(link[0])
    assert opened[f"link: GET {link[0]}"].startswith(b"404")
    return link[2]


def visit_pages(browser: Browser) -> None:
    """Follow links from the first page, and visit at most two pages of each kind."""
    waiting, kinds, done = ["/", "/history/audit/", "/tokens/"], Counter[str](), set[str]()
    while waiting:
        here = waiting.pop(0)
        kind = page_kind(here)
        if here in done or not kind or kinds[kind] == 2:
            continue
        done.add(here)
        kinds[kind] += 1
        waiting += [link.replace("&amp;", "&") for link in LINK.findall(browser.get(here))]
    assert len(kinds) > 20


def page_kind(path: str) -> str:
    try:
        name = resolve(path.split("?")[0]).view_name
    except Resolver404:
        return ""
    return "" if ":" in name else name


def spellings(secret: str) -> Iterator[bytes]:
    """Yield the secret as plain text and in common encodings."""
    raw = secret.encode()
    yield from (raw, quote(secret).encode(), raw.hex().encode(), raw[::-1])
    # A secret's base64 depends on its offset modulo three, and the first and last characters depend on the text around
    # it.
    for skipped in range(3):
        whole = base64.b64encode(b"\0" * skipped + raw)
        yield whole[4:-4]


def leaks(secrets: dict[str, str], sinks: dict[str, bytes]) -> list[str]:
    targets = [(name, spelling) for name, secret in secrets.items() for spelling in spellings(secret)]
    return sorted(
        {f"{name} in {sink}" for sink, data in sinks.items() for name, spelling in targets if spelling in data}
    )


def files_in(directory: Path, *excluded: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in {*OWN_FILES, *excluded}
    }


def rows_in(path: Path, *excluded: str) -> bytes:
    with closing(sqlite3.connect(path)) as database:
        lines = (
            line for line in database.iterdump() if not line.startswith(tuple(f'INSERT INTO "{t}"' for t in excluded))
        )
        return "\n".join(lines).encode()


def test_planted_secrets_do_not_leak(tmp_path: Path, leaking_provider: str) -> None:
    data, published = tmp_path / "data", tmp_path / "published"
    data.mkdir()
    settings = {"ADMIN_PASSWORD": PASSWORDS["admin"], "PUBLISH_DIR": str(published), "ALLOWED_ORIGINS": "*"}
    seen: dict[str, bytes] = {}
    with served(data, settings=settings) as server:
        admin = Browser(server.url, seen, "admin")
        admin.post("/login/", "/login/", username=MISTYPED, password="x")
        admin.sign_in("admin")
        scopes = re.findall(r'name="scopes" value="([^"]+)"', admin.get("/tokens/"))
        page = admin.post("/tokens/", "/tokens/new/", once=True, name="deploy", scopes=scopes, days=5)
        token = re.search(r"rat_[0-9a-f]{8}_[\w-]{43}_[0-9a-f]{8}", page)
        assert token is not None
        provider = {"endpoint": leaking_provider, "defaultModel": "m"}
        for body in ({**provider, "apiKey": PROVIDER_KEYS[1]}, {**provider, "apiKey": PROVIDER_KEYS[0]}):
            assert ask(server, seen, "PUT", "/api/v1/admin/providers/leaky", token[0], body).status_code < 300
        issued = httpx.post(
            f"{server.url}/api/v1/admin/agents/text-agent/keys",
            headers={"authorization": f"Bearer {token[0]}"},
            json={},
            verify=NO_CERTIFICATES,
        )
        key = issued.json()["key"]
        people = [admin, accept_invitation(admin, "edith", "editor"), accept_invitation(admin, "vera", "viewer")]
        kept = {"default_language": "zh", "content_policy": "extract+convert", "request_days": 30}
        admin.post("/settings/", "/settings/", **kept, record_bodies="1")
        admin.post("/providers/leaky/", "/test/provider/leaky/")
        call_everything(server, seen, key, token[0])
        opened: dict[str, bytes] = {}
        shared = share_page(admin, opened)
        for browser in people:
            visit_pages(browser)
        sessions = {f"{browser.name}'s session": browser.client.cookies["sid"] for browser in people}
        environment = server_environment(data, server.lab)
        manage(environment, "backup", str(tmp_path / "backup"))
        output = {name: manage(environment, *name.split()).encode() for name in ("doctor", "export_config llm-routing")}
        planted = {
            **{f"{name}'s password": text for name, text in PASSWORDS.items()},
            **{f"provider key {number}": text for number, text in enumerate(PROVIDER_KEYS)},
            # Pages may show the public id of a key, so only its secret part (without id and checksum) is searched for.
            "agent key": key.split("_", 2)[2][:43],
            "token": token[0].split("_", 2)[2][:43],
            "mistyped": MISTYPED,
        }
        assert len(seen) > 150
        assert any(b"Incorrect API key provided" in page for page in seen.values())
        assert leaks({**planted, **sessions}, opened) == []
        planted["link"] = shared
        assert leaks({**planted, **sessions}, seen) == []
        databases = {path.name for path in data.glob("*.sqlite3*")}
        assert databases
        assert leaks(planted, files_in(tmp_path) | output) == []
        assert leaks(sessions, files_in(tmp_path, *databases) | output) == []
        assert len(leaks(sessions, {path.name: rows_in(path) for path in data.glob("*.sqlite3")})) == len(people)
        rows = {path.name: rows_in(path, "django_session") for path in data.glob("*.sqlite3")}
        assert leaks(sessions, rows) == []


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc:"])
def test_leaks_finds_a_secret_in_every_encoding(before: bytes) -> None:
    secret = PASSWORDS["vera"]
    encoded = base64.b64encode(before + secret.encode() + b":after")
    for spelling in (encoded, *spellings(secret)):
        assert leaks({"it": secret}, {"sink": b"<p>" + spelling + b"</p>"}) == ["it in sink"]
    assert leaks({"it": secret}, {"sink": b"nothing of the kind"}) == []
