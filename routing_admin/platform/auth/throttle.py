"""How often one may fail to sign in: by (user name, address) and by address, counted in the database.

No account is ever locked for everybody, so nobody can shut out an administrator from elsewhere. A try takes its place
before the password is looked at and gives it back when it was right: many tries at once, in any number of processes,
are no way round the limit (security reference §2.1). Links to agents' own pages are counted apart from sign-in, in the
same way, by their public part: only those that open nothing take a place.
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
from routing_admin.platform.auth.addresses import place_of
from routing_admin.platform.databases.router import one_at_a_time


@dataclass(frozen=True, slots=True)
class Limit:
    """So many failures within a window; the next one waits until the oldest of them has left it."""

    failures: int
    window: timedelta


NAME_AND_ADDRESS = Limit(5, timedelta(minutes=15))
ADDRESS = Limit(50, timedelta(hours=1))
LOCK = 0x7369676E
"""The number of the lock that tries queue for, where the database's transactions do not queue by themselves."""


def seconds_to_wait(failed: Iterable[datetime], limit: Limit, now: datetime) -> int:
    """Whole seconds until one more try is allowed, 0 when it is allowed now; `failed` are moments in any order."""
    recent = sorted((moment for moment in failed if moment > now - limit.window), reverse=True)
    if len(recent) < limit.failures:
        return 0
    return math.ceil((recent[limit.failures - 1] + limit.window - now).total_seconds())


def enter(name: str, address: str, now: datetime | None = None, *, kind: str = "") -> int:
    """Takes a place for one try to sign in; 0 when it may go on, else the seconds to wait, and no place is taken.

    Tries of another `kind` are counted apart.
    """
    now = now or timezone.now()
    digest, place = digest_of(name), _count_under(address, kind)
    with one_at_a_time(LOCK):
        SignInAttempt.objects.filter(at__lt=now - ADDRESS.window).delete()
        wait = _find_wait(digest, place, now)
        if not wait:
            SignInAttempt.objects.create(at=now, name=digest, address=place)
    return wait


def find_wait(name: str, address: str, *, kind: str = "") -> int:
    """Whole seconds until that name may be tried again from there, 0 for now; takes no place. One query."""
    return _find_wait(digest_of(name), _count_under(address, kind), timezone.now())


def _find_wait(digest: str, place: str, now: datetime) -> int:
    tries = list(SignInAttempt.objects.filter(address=place).values_list("name", "at"))
    own = [at for tried, at in tries if tried == digest]
    return max(seconds_to_wait(own, NAME_AND_ADDRESS, now), seconds_to_wait((at for _, at in tries), ADDRESS, now))


def _count_under(address: str, kind: str) -> str:
    return f"{kind} {place_of(address)}"[:64] if kind else place_of(address)


def leave(name: str, address: str) -> None:
    """The password was right: this name's failures from this address are forgotten."""
    SignInAttempt.objects.filter(name=digest_of(name), address=place_of(address)).delete()


def digest_of(name: str) -> str:
    """A user name as it is kept: the same for every way of writing it, and nothing that can be read back."""
    return salted_hmac(__name__, unicodedata.normalize("NFKC", name).casefold(), algorithm="sha256").hexdigest()
