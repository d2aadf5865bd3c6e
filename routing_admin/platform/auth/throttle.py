"""Limit failed sign-ins per user name and address, and per address; they are counted in the database.

No account is ever locked for all addresses, so an attacker cannot lock out an administrator. An attempt is counted
before the password is checked, and the count is removed if the password was correct, so parallel attempts in any number
of processes cannot exceed the limit. Invalid links to agents' own pages are counted separately in the same way, by the
link's public part.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.crypto import salted_hmac

from routing_admin.models import SignInAttempt
from routing_admin.platform.auth.addresses import client_network
from routing_admin.platform.databases.router import one_at_a_time


@dataclass(frozen=True, slots=True)
class Limit:
    """Number of failed attempts allowed within a time window.

    Further attempts must wait until the oldest failure is outside the window.
    """

    failures: int
    window: timedelta


NAME_AND_ADDRESS = Limit(5, timedelta(minutes=15))
ADDRESS = Limit(50, timedelta(hours=1))
LOCK = 0x7369676E
"""Key of the PostgreSQL advisory lock that serialises attempts."""


def seconds_to_wait(failed: Iterable[datetime], limit: Limit, now: datetime) -> int:
    """Return the seconds until another attempt is allowed, rounded up; the times in `failed` may be in any order."""
    recent = sorted((moment for moment in failed if moment > now - limit.window), reverse=True)
    if len(recent) < limit.failures:
        return 0
    return math.ceil((recent[limit.failures - 1] + limit.window - now).total_seconds())


def enter(name: str, address: str, now: datetime | None = None, *, kind: str = "") -> int:
    """Count a sign-in attempt and return 0; if it is not allowed yet, only return the seconds to wait.

    Attempts of another `kind` are counted separately.
    """
    now = now or timezone.now()
    digest, counted_address = digest_name(name), _count_under(address, kind)
    # Check and count in one locked transaction, so that parallel attempts cannot exceed the limit.
    with one_at_a_time(LOCK):
        SignInAttempt.objects.filter(at__lt=now - ADDRESS.window).delete()
        wait = _find_wait(digest, counted_address, now)
        if not wait:
            SignInAttempt.objects.create(at=now, name=digest, address=counted_address)
    return wait


def find_wait(name: str, address: str, *, kind: str = "") -> int:
    """Return the seconds until `name` may sign in from `address`, with one query and without counting an attempt."""
    return _find_wait(digest_name(name), _count_under(address, kind), timezone.now())


def _find_wait(digest: str, counted_address: str, now: datetime) -> int:
    tries = list(SignInAttempt.objects.filter(address=counted_address).values_list("name", "at"))
    own = [at for name, at in tries if name == digest]
    return max(seconds_to_wait(own, NAME_AND_ADDRESS, now), seconds_to_wait((at for _, at in tries), ADDRESS, now))


def _count_under(address: str, kind: str) -> str:
    return f"{kind} {client_network(address)}"[:64] if kind else client_network(address)


def leave(name: str, address: str) -> None:
    """Delete a user's failed attempts from an address after a correct password."""
    SignInAttempt.objects.filter(name=digest_name(name), address=client_network(address)).delete()


def digest_name(name: str) -> str:
    """Return an irreversible digest of a user name that ignores case and Unicode form."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return salted_hmac("routing_admin.platform.auth.throttle", folded, algorithm="sha256").hexdigest()
