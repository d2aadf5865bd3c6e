"""Which identity providers may people sign in with? None, until one is configured.

The words on the wire are those of OpenID Connect Core 1.0, and of the vendors' own pages where they differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from capabilities.core.translatable import translatable

PREFIX = "ROUTING_ADMIN_"
DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
NEWCOMERS = ("none", "viewer", "editor")
"""What somebody may become who signs in so for the first time and was not invited."""
OIDC = "oidc"

KINDS: Mapping[str, tuple[str, str]] = {
    OIDC: ("openid_connect", translatable("single sign-on")),
    "feishu": ("feishu", translatable("Feishu")),
    "dingtalk": ("dingtalk", translatable("DingTalk")),
    "weixin": ("weixin", translatable("Weixin")),
}
"""Each provider's word in addresses and variables: how the package calls its protocol, and the name on its button."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """One that is configured: its word, its name on the button, and how it knows this installation."""

    id: str
    kind: str
    name: str
    client_id: str
    secret: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """Who is let in: every configured provider, what newcomers become, and the domains that their e-mail must have."""

    providers: tuple[IdentityProvider, ...] = ()
    newcomers: str = "none"
    domains: tuple[str, ...] = ()

    def find(self, provider_id: str) -> IdentityProvider | None:
        """The configured provider of that word."""
        return next((each for each in self.providers if each.id == provider_id), None)


def read_identity_rules(variables: Mapping[str, str]) -> IdentityRules:
    """What the environment says. Raises `ValueError` with one line for what is half said."""
    providers = tuple(each for word in KINDS if (each := _read_provider(variables, word)) is not None)
    newcomers = variables.get(PREFIX + "NEWCOMERS") or "none"
    if newcomers not in NEWCOMERS:
        raise ValueError(f"{PREFIX}NEWCOMERS: {newcomers!r} is none of {', '.join(NEWCOMERS)}.")
    words = (each.strip().lower() for each in variables.get(PREFIX + "NEWCOMER_DOMAINS", "").split(","))
    domains = tuple(word for word in words if word)
    for domain in domains:
        if not DOMAIN.fullmatch(domain):
            raise ValueError(f"{PREFIX}NEWCOMER_DOMAINS: {domain!r} is no domain. Write it as in example.com.")
    return IdentityRules(providers, newcomers, domains)


def package_settings(rules: IdentityRules) -> dict[str, Any]:
    """What the package is told of the providers; PKCE goes along where the provider speaks OpenID Connect."""
    found: dict[str, Any] = {}
    for each in rules.providers:
        app: dict[str, Any] = {"client_id": each.client_id, "secret": each.secret, "name": each.name}
        if each.id == OIDC:
            app |= {"provider_id": each.id, "settings": {"server_url": each.url, "oauth_pkce_enabled": True}}
        found[each.kind] = {"APPS": [app]}
    return found


def _read_provider(variables: Mapping[str, str], word: str) -> IdentityProvider | None:
    client_id, secret = (variables.get(_variable(word, what), "") for what in ("CLIENT_ID", "CLIENT_SECRET"))
    if not client_id:
        return None
    if not secret:
        raise ValueError(f"{_variable(word, 'CLIENT_ID')} is set, {_variable(word, 'CLIENT_SECRET')} is not. Set both.")
    kind, name = KINDS[word]
    if word != OIDC:
        return IdentityProvider(id=word, kind=kind, name=name, client_id=client_id, secret=secret)
    url = variables.get(_variable(word, "URL"), "").rstrip("/")
    if urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).hostname:
        raise ValueError(f"{_variable(word, 'URL')} has to be the provider's address, as in https://id.example.com.")
    return IdentityProvider(
        id=word,
        kind=kind,
        name=variables.get(_variable(word, "NAME")) or name,
        client_id=client_id,
        secret=secret,
        url=url,
    )


def _variable(word: str, what: str) -> str:
    return f"{PREFIX}{word.upper()}_{what}"
