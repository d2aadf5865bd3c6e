"""Users who sign in to a served installation with a password or an external account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape

import httpx

from tests.gateway.serving import Server
from tests.processes import NO_CERTIFICATES

PASSWORD = "an administrator's own"
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Browser:
    def __init__(self, server: Server) -> None:
        self.pages = httpx.Client(base_url=server.url, timeout=30, verify=NO_CERTIFICATES)
        self.provider_client = httpx.Client(timeout=30, verify=NO_CERTIFICATES)

    def send(self, page: str, address: str, **fields: str) -> httpx.Response:
        token = CSRF.search(self.pages.get(page).text)
        assert token is not None
        return self.pages.post(address, data={"csrfmiddlewaretoken": token[1], **fields})

    def sign_in(self) -> httpx.Response:
        return self.send("/login/", "/login/", username="admin", password=PASSWORD)

    def start_sign_in(self, page: str = "/login/", provider: str = "oidc", **fields: str) -> str:
        """Begin to sign in, and return the identity provider's URL to which the server redirects."""
        answer = self.send(page, f"/sign-in/{provider}/", **fields)
        assert answer.status_code == 200
        address = answer.headers["refresh"].removeprefix("0; url=")
        assert address in unescape(answer.text)
        return address

    def finish_sign_in(self, address: str, **fields: str) -> httpx.Response:
        response = self.provider_client.post(address, data=fields)
        assert response.status_code == 302
        return self.pages.get(response.headers["location"])

    def sign_in_with_account(self, subject: str, page: str = "/login/", **fields: str) -> httpx.Response:
        return self.finish_sign_in(self.start_sign_in(page, **fields), sub=subject)

    def events(self) -> str:
        return self.pages.get("/history/audit/").text


def invite(administrator: Browser, name: str) -> str:
    """Invite a viewer, and return the path of the invitation."""
    answer = administrator.send("/users/", "/users/invite/", username=name, role="viewer")
    match = re.search(r"/join/[\w-]+/[\w-]+/", answer.text)
    assert match is not None
    return match[0]


def form_fields(link: str) -> Mapping[str, str]:
    _, _, uid, token, _ = link.split("/")
    return {"uid": uid, "token": token}
