"""Signing in to a served installation with Feishu, DingTalk and Weixin, whose protocols differ.

An OpenID Connect provider is configured as well, but cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.gateway.serving import Server, served
from tests.identity.vendors import CODE, ID, NAME, SECRET, TOKEN, make_certificate, running_vendors
from tests.identity.visitors import PASSWORD, Browser, form_fields, invite

TITLES = {"feishu": "Feishu", "dingtalk": "DingTalk", "weixin": "Weixin"}
CODES = {"dingtalk": "authCode"}
"""The code parameter's name for vendors that do not call it `code`."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with all three vendors configured. Its outgoing proxy plays the vendors, and refuses all other hosts."""
    folder = tmp_path_factory.mktemp("vendors")
    certificate = make_certificate(folder)
    apps = {f"{vendor.upper()}_CLIENT_ID": ID for vendor in TITLES}
    apps |= {f"{vendor.upper()}_CLIENT_SECRET": SECRET for vendor in TITLES}
    apps |= {"OIDC_CLIENT_ID": ID, "OIDC_CLIENT_SECRET": SECRET, "OIDC_NAME": "Acme"}
    apps |= {"OIDC_URL": "https://unavailable.example.com"}
    with pytest.MonkeyPatch.context() as environment, running_vendors(certificate) as proxy:
        # The requests library trusts the certificates in this file.
        environment.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        settings = {"ADMIN_PASSWORD": PASSWORD, "OUTGOING_PROXY": proxy, **apps}
        with served(tmp_path_factory.mktemp("served"), settings=settings) as server:
            yield server


@pytest.fixture(scope="module")
def administrator(installation: Server) -> Browser:
    browser = Browser(installation)
    browser.sign_in()
    return browser


def finish_sign_in(browser: Browser, vendor: str, code: str, page: str = "/login/", **fields: str) -> httpx.Response:
    """Return the response to the vendor's redirect with this code."""
    authorization = parse_qs(urlsplit(browser.start_sign_in(page, vendor, **fields)).query)
    query = {CODES.get(vendor, "code"): code, "state": authorization["state"][0]}
    return browser.pages.get(f"/sign-in/{vendor}/callback/", params=query)


@pytest.mark.parametrize("vendor", TITLES)
def test_invitation_is_accepted_with_a_vendor_account(
    installation: Server, administrator: Browser, vendor: str
) -> None:
    link = invite(administrator, f"of-{vendor}")
    first = Browser(installation)
    assert finish_sign_in(first, vendor, CODE, link, **form_fields(link)).headers["location"] == "/"
    account = first.pages.get("/password/").text
    assert f"of-{vendor}" in account
    assert NAME in account
    later_browser = Browser(installation)
    assert finish_sign_in(later_browser, vendor, CODE, next="/routes/").headers["location"] == "/routes/"
    assert "/routes/new/" not in later_browser.pages.get("/routes/").text  # Only administrators get the link.
    events = later_browser.events()
    assert "Sign-in account linked" in events
    assert "Signed in" in events


@pytest.mark.parametrize("vendor", TITLES)
def test_code_refused_by_the_vendor_does_not_sign_in(installation: Server, administrator: Browser, vendor: str) -> None:
    browser = Browser(installation)
    answer = finish_sign_in(browser, vendor, "a-bad-code")
    assert answer.status_code == 502
    assert f"{TITLES[vendor]} did not sign you in" in answer.text
    assert browser.pages.get("/").status_code == 302
    events = administrator.events()
    assert "Sign-in failed" in events
    for secret in (SECRET, TOKEN, CODE):
        assert secret not in answer.text + events + installation.log
    assert "Traceback" not in installation.log


def test_unavailable_identity_provider_is_explained_and_passwords_still_work(installation: Server) -> None:
    browser = Browser(installation)
    answer = browser.send("/login/", "/sign-in/oidc/")
    assert answer.status_code == 502
    assert "Acme did not sign you in" in answer.text
    assert browser.sign_in().status_code == 302
    assert "Traceback" not in installation.log
