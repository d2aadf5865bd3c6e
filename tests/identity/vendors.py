"""Stand-ins for Feishu, DingTalk and Weixin on the loopback interface, which exchange codes as the vendors document.

They are behind a proxy that answers for the vendors' hosts itself, so that the server calls the real URLs over TLS,
with a certificate that the test makes.
"""

from __future__ import annotations

import datetime
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOSTS = ("open.feishu.cn", "api.dingtalk.com", "api.weixin.qq.com")
ID, SECRET = "an-app", "the-secret-of-an-app"
CODE, TOKEN, PERSON, NAME = "a-good-code", "token-of-a-person", "person-1", "张三"
JSON, TEXT = "application/json; charset=utf-8", "text/plain"
Answer = tuple[int, str, Any]


@dataclass(frozen=True)
class VendorRequest:
    call: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: Any


def answer_feishu(request: VendorRequest) -> Answer:
    """Answer in JSON. An error has a code other than 0, status 200 and no data."""
    body = request.body
    if request.call == "POST /open-apis/auth/v3/app_access_token/internal/":
        if body != {"app_id": ID, "app_secret": SECRET}:
            return 200, JSON, {"code": 10003, "msg": "invalid param"}
        return 200, JSON, {"code": 0, "msg": "ok", "app_access_token": "app-token", "expire": 7200}
    if request.call == "POST /open-apis/authen/v1/access_token":
        if body != {"grant_type": "authorization_code", "code": CODE, "app_access_token": "app-token"}:
            return 200, JSON, {"code": 20003, "msg": "invalid code", "data": None}
        data = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 6900, "open_id": PERSON}
        return 200, JSON, {"code": 0, "msg": "success", "data": data}
    if request.call == "GET /open-apis/authen/v1/user_info" and request.headers["authorization"] == f"Bearer {TOKEN}":
        return 200, JSON, {"code": 0, "msg": "success", "data": {"name": NAME, "open_id": PERSON, "union_id": "u"}}
    return 404, TEXT, "404 page not found"


def answer_dingtalk(request: VendorRequest) -> Answer:
    """Answer in JSON with camel-case names. An error has its own status and a textual code."""
    expected = {"clientId": ID, "clientSecret": SECRET, "code": CODE, "grantType": "authorization_code"}
    if request.call == "POST /v1.0/oauth2/userAccessToken":
        if request.body != expected:
            code = "invalidParameter.authCode.notFound"
            return 400, JSON, {"code": code, "requestid": "1", "message": "不存在的授权码"}
        return 200, JSON, {"accessToken": TOKEN, "refreshToken": "r", "expireIn": 7200, "corpId": "c"}
    if request.call == "GET /v1.0/contact/users/me" and request.headers["x-acs-dingtalk-access-token"] == TOKEN:
        return 200, JSON, {"nick": NAME, "openId": PERSON, "unionId": "u", "stateCode": "86"}
    return 404, JSON, {"code": "InvalidAction.NotFound", "message": "not found"}


def answer_weixin(request: VendorRequest) -> Answer:
    """Answer GET requests with JSON sent as plain text. An error is an `errcode` with status 200."""
    expected = {"appid": ID, "secret": SECRET, "code": CODE, "grant_type": "authorization_code"}
    if request.call == "GET /sns/oauth2/access_token":
        if request.query != expected:
            return 200, TEXT, {"errcode": 40029, "errmsg": "invalid code"}
        token_fields = {"expires_in": 7200, "refresh_token": "r", "openid": PERSON, "scope": "snsapi_login"}
        return 200, TEXT, {"access_token": TOKEN, **token_fields}
    if request.call == "GET /sns/userinfo" and request.query == {"access_token": TOKEN, "openid": PERSON}:
        return 200, TEXT, {"openid": PERSON, "nickname": NAME, "sex": 0, "headimgurl": "", "privilege": []}
    return 200, TEXT, {"errcode": 48001, "errmsg": "api unauthorized"}


VENDORS = dict(zip(HOSTS, (answer_feishu, answer_dingtalk, answer_weixin), strict=True))


class VendorHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        address = urlsplit(self.path)
        text = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_json = self.headers.get("content-type", "").startswith("application/json")
        body = json.loads(text) if text and is_json else text.decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = VendorRequest(f"{self.command} {address.path}", headers, dict(parse_qsl(address.query)), body)
        status, kind, value = VENDORS[self.headers["host"]](request)
        data = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None: ...


class TunnelHandler(BaseHTTPRequestHandler):
    """A proxy that accepts only the vendors' hosts and answers for them itself at the end of the tunnel."""

    context: ssl.SSLContext

    def do_CONNECT(self) -> None:
        if self.path.rpartition(":")[0] not in HOSTS:
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        with self.context.wrap_socket(self.connection, server_side=True) as tls_connection:
            VendorHandler(tls_connection, self.client_address, self.server)
        self.close_connection = True

    def log_message(self, *_: Any) -> None: ...


def make_certificate(folder: Path) -> Path:
    """Write a self-signed certificate for the vendors' hosts and its key into one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vendors of a test")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    file, pem = folder / "vendors.pem", serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem) + secret)
    return file


@contextmanager
def running_vendors(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    handler = type("Tunnel", (TunnelHandler,), {"context": context})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
