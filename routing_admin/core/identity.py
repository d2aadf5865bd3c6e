"""Single sign-on: read the identity providers from the environment, and decide which accounts may sign in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from capabilities.core.translatable import translatable

PREFIX = "ROUTING_ADMIN_"
DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
NEWCOMER_ROLES = ("none", "viewer", "editor")
"""Roles that a user can get by signing in for the first time without an invitation."""
OIDC = "oidc"

KINDS: Mapping[str, tuple[str, str]] = {
    OIDC: ("openid_connect", translatable("single sign-on")),
    "feishu": ("feishu", translatable("Feishu")),
    "dingtalk": ("dingtalk", translatable("DingTalk")),
    "weixin": ("weixin", translatable("Weixin")),
}
"""Maps each identity provider's id (used in URLs and variables) to its django-allauth provider and its button's label.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    id: str
    kind: str
    name: str
    client_id: str
    secret: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """The configured identity providers, the role of new users, and the e-mail domains that new users may have."""

    providers: tuple[IdentityProvider, ...] = ()
    newcomers: str = "none"
    domains: tuple[str, ...] = ()

    def find(self, provider_id: str) -> IdentityProvider | None:
        return next((provider for provider in self.providers if provider.id == provider_id), None)


def read_identity_rules(variables: Mapping[str, str]) -> IdentityRules:
    """Read the rules from environment variables; raise `ValueError` with a one-line message if they are incomplete."""
    providers = tuple(
        provider for provider_id in KINDS if (provider := _read_provider(variables, provider_id)) is not None
    )
    newcomers = variables.get(PREFIX + "NEWCOMERS") or "none"
    if newcomers not in NEWCOMER_ROLES:
        raise ValueError(f"{PREFIX}NEWCOMERS: {newcomers!r} is none of {', '.join(NEWCOMER_ROLES)}.")
    parts = (part.strip().lower() for part in variables.get(PREFIX + "NEWCOMER_DOMAINS", "").split(","))
    domains = tuple(part for part in parts if part)
    for domain in domains:
        if not DOMAIN.fullmatch(domain):
            raise ValueError(f"{PREFIX}NEWCOMER_DOMAINS: {domain!r} is no domain. Write it as in example.com.")
    return IdentityRules(providers, newcomers, domains)


def package_settings(rules: IdentityRules) -> dict[str, Any]:
    """Return the settings for django-allauth with these identity providers.

    OpenID Connect uses PKCE.
    """
    found: dict[str, Any] = {}
    for provider in rules.providers:
        app: dict[str, Any] = {"client_id": provider.client_id, "secret": provider.secret, "name": provider.name}
        if provider.id == OIDC:
            app |= {"provider_id": provider.id, "settings": {"server_url": provider.url, "oauth_pkce_enabled": True}}
        found[provider.kind] = {"APPS": [app]}
    return found


def _read_provider(variables: Mapping[str, str], provider_id: str) -> IdentityProvider | None:
    client_id, secret = (variables.get(_variable(provider_id, suffix), "") for suffix in ("CLIENT_ID", "CLIENT_SECRET"))
    if not client_id:
        return None
    if not secret:
        raise ValueError(
            f"{_variable(provider_id, 'CLIENT_ID')} is set, {_variable(provider_id, 'CLIENT_SECRET')} is not. Set both."
        )
    kind, name = KINDS[provider_id]
    if provider_id != OIDC:
        return IdentityProvider(id=provider_id, kind=kind, name=name, client_id=client_id, secret=secret)
    # Only OpenID Connect needs the identity provider's URL.
    url = variables.get(_variable(provider_id, "URL"), "").rstrip("/")
    if urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).hostname:
        raise ValueError(
            f"{_variable(provider_id, 'URL')} has to be the provider's address, as in https://id.example.com."
        )
    return IdentityProvider(
        id=provider_id,
        kind=kind,
        name=variables.get(_variable(provider_id, "NAME")) or name,
        client_id=client_id,
        secret=secret,
        url=url,
    )


def _variable(provider_id: str, suffix: str) -> str:
    return f"{PREFIX}{provider_id.upper()}_{suffix}"


MAX_NAME = 150
NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
"""Characters that Django does not allow in user names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user's account at an identity provider; `subject` is its permanent id there.

    `email` is empty unless the provider has verified it.
    """

    provider: str
    subject: str
    username: str = ""
    name: str = ""
    email: str = ""

    @property
    def title(self) -> str:
        return self.email or self.name or self.username or self.subject


@dataclass(frozen=True, slots=True)
class Owner:
    """The user to whom an account at an identity provider is linked; `id` is the user's primary key."""

    id: int
    is_active: bool


class Admission(StrEnum):
    """Result of an attempt to sign in with an account at an identity provider."""

    SIGN_IN = "sign_in"
    LINK = "link"
    CREATE = "create"
    DEACTIVATED = "deactivated"
    OF_ANOTHER = "of_another"
    NOT_INVITED = "not_invited"
    OTHER_DOMAIN = "other_domain"


ADMITTED = frozenset({Admission.SIGN_IN, Admission.LINK, Admission.CREATE})


def decide_admission(
    identity: Identity, owner: Owner | None, claimant: int | None, *, newcomers: bool, domains: tuple[str, ...] = ()
) -> Admission:
    """Decide the result of a sign-in with an account at an identity provider.

    `claimant` is the invited user if an invitation link was opened, or the signed-in user who wants to link the
    account.
    """
    if owner is not None:
        if claimant not in (None, owner.id):
            return Admission.OF_ANOTHER
        return Admission.SIGN_IN if owner.is_active else Admission.DEACTIVATED
    if claimant is not None:
        return Admission.LINK
    if not newcomers:
        return Admission.NOT_INVITED
    if domains and not identity.email.lower().endswith(tuple(f"@{domain}" for domain in domains)):
        return Admission.OTHER_DOMAIN
    return Admission.CREATE


def suggest_username(identity: Identity) -> str:
    """Return a valid user name for a new user; another user may already have it."""
    candidates = (identity.username, identity.email.partition("@")[0], identity.name, identity.provider)
    # Reserve five characters for a number that makes the name unique.
    names = (NOT_IN_NAMES.sub("-", candidate).strip("-")[: MAX_NAME - 5] for candidate in candidates)
    return next(name for name in names if name)
