"""Signing in with OpenID Connect: an identity provider in this process, and a served installation in another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import pytest
from oidc_provider_mock import User, run_server_in_thread

from tests.gateway.serving import Server, served
from tests.identity.visitors import PASSWORD, Browser, form_fields, invite

# The package that simulates the identity provider causes this warning.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:authlib")

PEOPLE = (
    User(sub="ines-1", claims={"preferred_username": "ines", "email": "ines@example.com", "email_verified": True}),
    User(sub="otto-2", claims={"preferred_username": "otto", "email": "otto@example.com", "email_verified": True}),
    User(sub="anna-3", claims={"preferred_username": "admin", "email": "anna@example.com", "email_verified": True}),
    User(sub="mallory-4", claims={"preferred_username": "mallory", "email": "m@example.com", "email_verified": False}),
)
ID_PARAMETERS = MappingProxyType({"FEISHU": "app_id", "DINGTALK": "client_id", "WEIXIN": "appid"})
"""The parameter for the client id in the authorization URL of each vendor."""
VENDOR_APPS = {
    f"{vendor}_CLIENT_{field}": f"{vendor}-{field}" for vendor in ID_PARAMETERS for field in ("ID", "SECRET")
}
OIDC_APP = {"OIDC_NAME": "Acme", "OIDC_CLIENT_ID": "routing", "OIDC_CLIENT_SECRET": "a secret"}
SETTINGS = MappingProxyType({"ADMIN_PASSWORD": PASSWORD, **OIDC_APP, **VENDOR_APPS})


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with run_server_in_thread(user_claims=PEOPLE) as running:
        yield f"http://localhost:{running.server_port}"


@pytest.fixture(scope="module")
def invited_only(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("invited"), settings={**SETTINGS, "OIDC_URL": provider}) as server:
        yield server


@pytest.fixture(scope="module")
def administrator(invited_only: Server) -> Browser:
    browser = Browser(invited_only)
    browser.sign_in()
    return browser


@pytest.fixture(scope="module")
def open_to_viewers(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that admits, as a viewer, everyone with a verified e-mail address in one domain."""
    rules = {"OIDC_URL": provider, "NEWCOMERS": "viewer", "NEWCOMER_DOMAINS": "example.com"}
    with served(tmp_path_factory.mktemp("open"), settings={**SETTINGS, **rules}) as server:
        yield server


def test_sign_in_uses_the_authorization_code_flow_with_pkce_and_state(invited_only):
    query = parse_qs(urlsplit(Browser(invited_only).start_sign_in()).query)
    assert query["response_type"] == ["code"]
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["state"][0]) >= 16
    assert query["redirect_uri"] == [f"{invited_only.url}/sign-in/oidc/callback/"]


def test_uninvited_person_cannot_sign_in(invited_only):
    browser = Browser(invited_only)
    answer = browser.sign_in_with_account("mallory-4")
    assert answer.status_code == 403
    assert "has not been invited yet" in answer.text
    assert browser.pages.get("/").status_code == 302


def test_invitation_is_accepted_with_an_external_account(invited_only, administrator):
    link = invite(administrator, "ines")
    first = Browser(invited_only)
    assert first.sign_in_with_account("ines-1", link, **form_fields(link)).headers["location"] == "/"
    assert "ines" in first.pages.get("/password/").text
    assert first.pages.get(link).status_code == 410
    later_browser = Browser(invited_only)
    assert later_browser.sign_in_with_account("ines-1", next="/routes/").headers["location"] == "/routes/"
    assert later_browser.pages.get("/routes/").status_code == 200


def test_external_account_linked_to_one_user_never_signs_in_another(invited_only, administrator):
    link = invite(administrator, "invited")
    mine, stranger = invite(administrator, "otto"), Browser(invited_only)
    assert stranger.sign_in_with_account("otto-2", mine, **form_fields(mine)).status_code == 302
    answer = Browser(invited_only).sign_in_with_account("otto-2", link, **form_fields(link))
    assert answer.status_code == 403
    assert "is already linked to another user" in answer.text
    assert Browser(invited_only).pages.get(link).status_code == 200


def test_user_links_and_unlinks_an_external_account_on_the_password_page(invited_only, administrator):
    assert administrator.sign_in_with_account("anna-3", "/password/").headers["location"] == "/password/"
    assert "anna@example.com" in administrator.pages.get("/password/").text
    guest = Browser(invited_only)
    assert guest.sign_in_with_account("anna-3").status_code == 302
    assert guest.pages.get("/users/invite/").status_code == 405  # Only administrators may open this page.
    link = re.search(r"/identity/\d+/unlink/", administrator.pages.get("/password/").text)
    assert link is not None
    administrator.send("/password/", link[0])
    assert Browser(invited_only).sign_in_with_account("anna-3").status_code == 403


def test_failed_external_sign_in_is_explained(invited_only, administrator):
    browser = Browser(invited_only)
    cancelled = browser.finish_sign_in(browser.start_sign_in(), action="deny")
    foreign = Browser(invited_only).finish_sign_in(browser.start_sign_in(), sub="ines-1")
    state = parse_qs(urlsplit(browser.start_sign_in()).query)["state"][0]
    made_up = browser.pages.get(f"/sign-in/oidc/callback/?code=made-up&state={state}")
    assert (cancelled.status_code, foreign.status_code, made_up.status_code) == (400, 400, 502)
    assert "reports that you canceled" in cancelled.text
    assert "sign-in attempt has expired" in foreign.text
    assert "Acme did not sign you in" in made_up.text
    assert "Sign-in failed" in administrator.events()


def test_newcomer_becomes_a_viewer_with_a_unique_name(open_to_viewers):
    browser = Browser(open_to_viewers)
    assert browser.sign_in_with_account("anna-3").status_code == 302
    assert browser.pages.get("/routes/").status_code == 200
    assert "admin-2" in browser.pages.get("/password/").text
    assert browser.pages.get("/export/llm-routing.json").status_code in (403, 404)
    refused = Browser(open_to_viewers).sign_in_with_account("mallory-4")
    assert refused.status_code == 403
    assert "no verified e-mail address at example.com" in refused.text


def test_sign_ins_and_refusals_are_audited(open_to_viewers):
    Browser(open_to_viewers).sign_in_with_account("mallory-4")
    Browser(open_to_viewers).sign_in_with_account("otto-2")
    reader = Browser(open_to_viewers)
    reader.sign_in()
    page = reader.events()
    assert "Sign-in refused" in page
    assert "a secret" not in page + open_to_viewers.log


def test_sign_in_redirects_to_the_authorization_host_of_each_vendor(invited_only):
    addresses = {
        vendor: urlsplit(Browser(invited_only).start_sign_in(provider=vendor.lower())) for vendor in ID_PARAMETERS
    }
    assert {vendor: address.hostname for vendor, address in addresses.items()} == {
        "FEISHU": "open.feishu.cn",
        "DINGTALK": "login.dingtalk.com",
        "WEIXIN": "open.weixin.qq.com",
    }
    for vendor, name in ID_PARAMETERS.items():
        query = parse_qs(addresses[vendor].query)
        assert query[name] == [f"{vendor}-ID"]
        assert query["redirect_uri"] == [f"{invited_only.url}/sign-in/{vendor.lower()}/callback/"]
        assert len(query["state"][0]) >= 16
