"""Queries for users, their links, languages, sessions and tokens for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.db.models import F
from django.utils import timezone
from django.utils.encoding import force_str
from django.utils.http import urlsafe_base64_decode

from capabilities.signing import newest_secret, secret_name
from routing_admin.models import AdminToken, LinkedIdentity, Person, SessionSighting
from routing_admin.platform.auth.admin_tokens import token_name
from routing_admin.platform.auth.session_activity import (
    digest_session,
    find_sessions,
    program_and_system,
    session_activity,
)


def list_users() -> list[User]:
    """Return all users: active users first, then by role (administrators, editors, viewers), then by name."""
    editors = F("person__is_editor").desc(nulls_last=True)
    users = User.objects.select_related("person").prefetch_related("linked_identities")
    return list(users.order_by("-is_active", "-is_staff", editors, "username"))


def list_user_names() -> list[str]:
    return list(User.objects.order_by("username").values_list("username", flat=True))


def find_user(pk: int | None) -> User | None:
    """Return the user with this primary key, or None. An anonymous user's `pk` is None."""
    return None if pk is None else User.objects.select_related("person").filter(pk=pk).first()


def find_user_named(username: str) -> User | None:
    return User.objects.select_related("person").filter(username=username).first()


def find_user_by_link(uid: str, token: str) -> User | None:
    """Return the active user for whom an invitation or password link was created.

    Return None if the link is wrong, used, expired or withdrawn.
    """
    try:
        user = User.objects.filter(pk=int(force_str(urlsafe_base64_decode(uid))), is_active=True).first()
    except (ValueError, OverflowError):
        return None
    return user if user and default_token_generator.check_token(user, token) else None


def find_language(user: User) -> str:
    return Person.objects.filter(user=user).values_list("language", flat=True).first() or ""


def list_identities(user: User) -> list[LinkedIdentity]:
    return list(user.linked_identities.order_by("linked_at"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """A session as the user's page shows it. `first_seen` and `last_seen` are None if it was never used."""

    digest: str
    is_current: bool
    program: str
    system: str
    address: str
    first_seen: datetime | None
    last_seen: datetime | None
    ends_at: datetime


def list_sessions(user_id: int, own_key: str | None) -> list[SessionLine]:
    """Return a user's unexpired sessions: the one with `own_key` first, then the others by last use.

    This takes two queries.
    """
    sessions = dict(find_sessions(user_id))
    rows = {row.digest: row for row in SessionSighting.objects.filter(digest__in=list(sessions))}
    # The times at which sessions were last used are written in batches, so the newest are still in memory.
    unsaved, own_digest = session_activity().waiting(), digest_session(own_key) if own_key else ""
    lines = []
    for digest, session in sessions.items():
        row, sighting = rows.get(digest), unsaved.get(digest)
        newest = sighting or row
        program, system = program_and_system(newest.user_agent if newest else "")
        lines.append(
            SessionLine(
                digest=digest,
                is_current=digest == own_digest,
                program=program,
                system=system,
                address=newest.address if newest else "",
                first_seen=row.first_seen if row else sighting.at if sighting else None,
                last_seen=sighting.at if sighting else row.last_seen if row else None,
                ends_at=session.expire_date,
            )
        )
    return sorted(lines, key=lambda line: (not line.is_current, -(line.last_seen or line.ends_at).timestamp()))


def list_tokens() -> list[AdminToken]:
    """Return all tokens for scripts with their owners, revoked tokens last."""
    rows = AdminToken.objects.select_related("owner")
    return sorted(rows, key=lambda row: row.revoked_at is not None)


def find_token(public_id: str) -> AdminToken | None:
    return AdminToken.objects.select_related("owner").filter(public_id=public_id).first()


def list_outdated_tokens() -> list[str]:
    """Return the names of valid tokens that are still signed with an older secret.

    These tokens have not been used since the secret was rotated.
    """
    valid = AdminToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now()).select_related("owner")
    outdated = valid.exclude(signed_with=secret_name(newest_secret()))
    return sorted(token_name(row.owner.get_username(), row.name) for row in outdated)
