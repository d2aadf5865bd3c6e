"""The validity of keys, tokens and links, which can expire and be revoked."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

WARN_BEFORE = timedelta(days=7)


class Validity(StrEnum):
    """The states of a key, token or link, from best to worst. It is valid in the first three."""

    WORKING = "working"
    UNUSED = "unused"
    ENDING = "ending"
    EXPIRED = "expired"
    REVOKED = "revoked"

    @property
    def works(self) -> bool:
        return self not in (Validity.EXPIRED, Validity.REVOKED)


def judge_validity(
    *, revoked_at: datetime | None, expires_at: datetime | None, used_at: datetime | None, now: datetime
) -> Validity:
    if revoked_at is not None:
        return Validity.REVOKED
    if expires_at is not None and expires_at <= now + WARN_BEFORE:
        return Validity.EXPIRED if expires_at <= now else Validity.ENDING
    return Validity.UNUSED if used_at is None else Validity.WORKING
