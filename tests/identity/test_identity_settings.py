"""Environment variables that configure identity providers. Incomplete settings are rejected."""

from __future__ import annotations

import pytest

from routing_admin.core.identity import IdentityRules, package_settings, read_identity_rules

OIDC_SETTINGS = {"OIDC_URL": "https://id.example.com/", "OIDC_CLIENT_ID": "routing", "OIDC_CLIENT_SECRET": "s"}


def rules(**variables: str) -> IdentityRules:
    return read_identity_rules({f"ROUTING_ADMIN_{name}": value for name, value in variables.items()})


def test_identity_providers_and_newcomers_are_disabled_by_default():
    assert rules() == IdentityRules((), "none", ())


def test_configured_identity_providers_are_offered():
    """Each configured provider is shown with its name, and OpenID Connect uses PKCE."""
    rules_read = rules(**OIDC_SETTINGS, OIDC_NAME="Acme", FEISHU_CLIENT_ID="cli_1", FEISHU_CLIENT_SECRET="s")
    assert [(provider.id, provider.name) for provider in rules_read.providers] == [
        ("oidc", "Acme"),
        ("feishu", "Feishu"),
    ]
    app = package_settings(rules_read)["openid_connect"]["APPS"][0]
    assert app["settings"] == {"server_url": "https://id.example.com", "oauth_pkce_enabled": True}
    assert package_settings(rules_read)["feishu"]["APPS"][0]["client_id"] == "cli_1"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"OIDC_CLIENT_ID": "x"}, "ROUTING_ADMIN_OIDC_CLIENT_SECRET is not"),
        ({**OIDC_SETTINGS, "OIDC_URL": "id.example.com"}, "ROUTING_ADMIN_OIDC_URL has to be the provider's address"),
        ({"NEWCOMERS": "administrator"}, "none of none, viewer, editor"),
        ({"NEWCOMER_DOMAINS": "@example.com"}, "'@example.com' is no domain"),
    ],
)
def test_incomplete_settings_are_refused_with_a_one_line_error(variables, message):
    """The error names the missing or wrong variable. No setting lets a sign-in create an administrator."""
    with pytest.raises(ValueError) as refusal:
        rules(**variables)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_callback_of_a_provider_that_is_not_configured_returns_404(anonymous):
    assert anonymous.get("/sign-in/feishu/callback/?code=1&state=2").status_code == 404
