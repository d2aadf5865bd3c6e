"""With a TLS proxy in front of deploy/nginx.conf, pages use https, and callers' addresses are known."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.deploy.proxies import inner_proxy, tls_proxy
from tests.gateway.serving import manage, served, server_environment
from tests.lab.certificate import self_signed

OUTER, CALLER, OTHER_CALLER = "127.0.0.2", "127.0.0.9", "127.0.0.7"
"""The addresses of the outer proxy and of two callers, all on this machine."""
SITE, PASSWORD = "routing.example.com", "a lantern for the heron"
FORGED = {"x-forwarded-for": "203.0.113.66", "x-forwarded-proto": "https"}
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
SETTINGS = {"PUBLIC_URL": f"https://{SITE}", "TRUSTED_PROXIES": "1", "ADMIN_PASSWORD": PASSWORD}


class Echo(BaseHTTPRequestHandler):
    """A server that returns the forwarding headers it received."""

    def do_GET(self) -> None:
        body = json.dumps([self.headers.get_all(name) for name in FORGED]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def echoing() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def client(url: str, address: str) -> httpx.Client:
    context = ssl.create_default_context(cafile=self_signed()[0])
    context.check_hostname = False
    headers = {"host": SITE, "referer": f"https://{SITE}/login/"}
    transport = httpx.HTTPTransport(local_address=address, verify=context)
    return httpx.Client(base_url=url, headers=headers, transport=transport, timeout=60)


def test_sign_in_through_a_tls_proxy_is_not_redirected_and_logs_the_callers_address(tmp_path: Path) -> None:
    """The outer proxy's forwarding headers are used. Those that its callers send are ignored."""
    data = tmp_path / "data"
    data.mkdir()
    with (
        served(data, settings=SETTINGS) as server,
        inner_proxy(tmp_path, {"one": server.port, "two": server.port}, OUTER) as inner,
        tls_proxy(tmp_path, inner, OUTER) as outer,
        client(outer, CALLER) as caller,
    ):
        page = caller.get("/login/", headers=FORGED)
        assert page.status_code == 200
        form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": TOKEN.findall(page.text)[0]}
        signed_in = caller.post("/login/", data=form, headers=FORGED)
        assert (signed_in.status_code, signed_in.headers["location"]) == (302, "/")
        assert caller.get("/").status_code == 200
        environment = server_environment(data, server.lab) | {f"ROUTING_ADMIN_{k}": v for k, v in SETTINGS.items()}
        entries = [
            json.loads(line) for line in manage(environment, "audit_export", "--action", "user.sign_in").splitlines()
        ]
        with client(inner, OTHER_CALLER) as other_caller:
            assert other_caller.get("/login/", headers=FORGED).headers["location"] == f"https://{SITE}/login/"
    assert [entry["address"] for entry in entries] == [CALLER]


def test_only_the_outer_proxy_is_trusted(tmp_path: Path) -> None:
    """The upstream server gets exactly one IP address and one scheme, regardless of the headers that were sent."""
    with (
        echoing() as port,
        inner_proxy(tmp_path, {"one": port, "two": port}, OUTER) as inner,
        client(inner, OUTER) as outer,
        client(inner, OTHER_CALLER) as other_caller,
    ):
        assert outer.get("/", headers=FORGED).json() == [["203.0.113.66"], ["https"]]
        chain = {"x-forwarded-for": f"198.51.100.1, {CALLER}, {OUTER}", "x-forwarded-proto": "http"}
        assert outer.get("/", headers=chain).json() == [[CALLER], ["http"]]
        assert outer.get("/").json() == [[OUTER], ["http"]]
        assert outer.get("/", headers={"x-forwarded-proto": "https, http"}).json() == [[OUTER], ["http"]]
        assert other_caller.get("/", headers=FORGED).json() == [[OTHER_CALLER], ["http"]]
        repeated = [("x-forwarded-proto", "https"), ("x-forwarded-proto", "https"), ("x-forwarded-for", OUTER)]
        assert other_caller.get("/", headers=repeated).json() == [[OTHER_CALLER], ["http"]]
