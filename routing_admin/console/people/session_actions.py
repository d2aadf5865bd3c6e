"""Ending sessions: some of a person's, or all but one; audited. Whoever is signed out so has to sign in again."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from capabilities.acts import Actor, AuditedAction
from routing_admin.configuration.revisions import ledger
from routing_admin.models import SessionSighting
from routing_admin.platform.auth.session_activity import digest_of_session, sessions_of


def end_sessions(actor: Actor, user: User, digests: Collection[str] | None = None, *, staying: str = "") -> int:
    """Ends the person's sessions of those digests, or all, but the one with the key `staying`; how many ended."""
    act = AuditedAction("session.end", "user", user.get_username())
    with ledger.audit(actor, act):
        act.details["sessions"] = count = delete_sessions(user, digests, staying=staying)
    return count


def delete_sessions(user: User, digests: Collection[str] | None = None, *, staying: str = "") -> int:
    """The same as a part of another act, which says so itself."""
    own = digest_of_session(staying) if staying else ""
    ending = {
        digest: session.session_key
        for digest, session in sessions_of(user.pk)
        if digest != own and (digests is None or digest in digests)
    }
    Session.objects.filter(session_key__in=list(ending.values())).delete()
    SessionSighting.objects.filter(digest__in=list(ending)).delete()
    return len(ending)
