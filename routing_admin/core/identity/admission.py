"""Decide whether an external account may sign in, and as which user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MAX_NAME = 150
NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
"""Characters that Django does not allow in user names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An account at an identity provider; `subject` is its permanent id at that provider.

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
    """The user linked to an identity, by primary key."""

    id: int
    is_active: bool


class Admission(StrEnum):
    """Result of signing in with an identity."""

    SIGN_IN = "sign_in"
    LINK = "link"
    CREATE = "create"
    DEACTIVATED = "deactivated"
    OF_ANOTHER = "of_another"
    NOT_INVITED = "not_invited"
    OTHER_DOMAIN = "other_domain"


LET_IN = frozenset({Admission.SIGN_IN, Admission.LINK, Admission.CREATE})


def decide_admission(
    identity: Identity, owner: Owner | None, claimant: int | None, *, newcomers: bool, domains: tuple[str, ...] = ()
) -> Admission:
    """Return what a sign-in leads to.

    `claimant` is the user whose invitation was opened, or who is signed in and links the identity.
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
    """Return a valid user name for a new user; it may already be taken."""
    candidates = (identity.username, identity.email.partition("@")[0], identity.name, identity.provider)
    # Five characters are left for a number that makes the name unique.
    names = (NOT_IN_NAMES.sub("-", candidate).strip("-")[: MAX_NAME - 5] for candidate in candidates)
    return next(name for name in names if name)
