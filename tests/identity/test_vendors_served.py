"""Signing in with Feishu, DingTalk and Weixin, each spoken to in its own words, by a served installation."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.gateway.serving import Server, served
from tests.identity.vendors import CODE, ID, NAME, SECRET, TOKEN, make_certificate, running_vendors
from tests.identity.visitors import PASSWORD, Browser, fields_of, invite

TITLES = {"feishu": "Feishu", "dingtalk": "DingTalk", "weixin": "Weixin"}
CODES = {"dingtalk": "authCode"}
"""What the code is called on the way back, where it is not `code`."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with buttons for all three, whose calls go out through the proxy behind which they stand."""
    folder = tmp_path_factory.mktemp("vendors")
    certificate = make_certificate(folder)
    apps = {f"{word.upper()}_CLIENT_ID": ID for word in TITLES}
    apps |= {f"{word.upper()}_CLIENT_SECRET": SECRET for word in TITLES}
    with pytest.MonkeyPatch.context() as environment, running_vendors(certificate) as proxy:
        environment.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        settings = {"ADMIN_PASSWORD": PASSWORD, "OUTGOING_PROXY": proxy, **apps}
        with served(tmp_path_factory.mktemp("served"), settings=settings) as server:
            yield server


def come_back(browser: Browser, word: str, code: str, page: str = "/login/", **fields: str) -> httpx.Response:
    """What our pages say to somebody whom the vendor sends back with that code."""
    asked = parse_qs(urlsplit(browser.go_elsewhere(page, word, **fields)).query)
    query = {CODES.get(word, "code"): code, "state": asked["state"][0]}
    return browser.pages.get(f"/sign-in/{word}/callback/", params=query)


@pytest.mark.parametrize("word", TITLES)
def test_an_invitation_is_accepted_with_an_account_of_the_vendor(installation: Server, word: str) -> None:
    """The code becomes a person, who signs in from then on with the role that was given; both are in the audit."""
    link = invite(installation, f"of-{word}")
    first = Browser(installation)
    assert come_back(first, word, CODE, link, **fields_of(link)).headers["location"] == "/"
    account = first.pages.get("/password/").text
    assert f"of-{word}" in account
    assert NAME in account
    again = Browser(installation)
    assert come_back(again, word, CODE, next="/routes/").headers["location"] == "/routes/"
    assert "/routes/new/" not in again.pages.get("/routes/").text  # a viewer
    events = again.events()
    assert "Sign-in account linked" in events
    assert "Signed in" in events


@pytest.mark.parametrize("word", TITLES)
def test_a_code_that_the_vendor_refuses_lets_nobody_in(installation: Server, word: str) -> None:
    """Each says so in its own way: the page names the vendor, the audit has it, no secret stands anywhere."""
    browser = Browser(installation)
    answer = come_back(browser, word, "a-bad-code")
    assert answer.status_code == 502
    assert f"{TITLES[word]} did not sign you in" in answer.text
    assert browser.pages.get("/").status_code == 302
    browser.sign_in()
    events = browser.events()
    assert "Sign-in failed" in events
    for secret in (SECRET, TOKEN, CODE):
        assert secret not in answer.text + events + installation.log
    assert "Traceback" not in installation.log
