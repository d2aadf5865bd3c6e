"""Who somebody is who comes from an identity provider, and whether they are let in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MAX_NAME = 150
NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
"""What user names do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An account elsewhere: its provider's word, what the provider calls it for ever, and what it says of the person.

    `email` is one that the provider has verified; empty else.
    """

    provider: str
    subject: str
    username: str = ""
    name: str = ""
    email: str = ""

    @property
    def title(self) -> str:
        """What people know it by."""
        return self.email or self.name or self.username or self.subject


@dataclass(frozen=True, slots=True)
class Owner:
    """The user who signs in with an identity, by primary key."""

    id: int
    is_active: bool


class Admission(StrEnum):
    """What becomes of somebody who comes with an identity."""

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
    """What becomes of them; `claimant` is the user whose invitation was opened, or who is signed in and links it."""
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
    """A user name for a newcomer, of characters that user names have; somebody else may have it already."""
    words = (identity.username, identity.email.partition("@")[0], identity.name, identity.provider)
    names = (NOT_IN_NAMES.sub("-", word).strip("-")[: MAX_NAME - 5] for word in words)
    return next(name for name in names if name)
