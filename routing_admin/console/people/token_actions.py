"""Administrators' tokens for scripts: made, shown once, revoked, ended with the owner's role. Audited."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.access import digest_of, make_key
from capabilities.acts import Actor, AuditedAction
from capabilities.core.permissions import ADMIN_SCOPES
from capabilities.core.problems import Problem
from capabilities.errors import InvalidError
from capabilities.signing import name_of_secret, newest_secret
from routing_admin.configuration import revisions
from routing_admin.configuration.guards import check_one_line
from routing_admin.configuration.revisions import ledger
from routing_admin.models import AdminToken
from routing_admin.platform.auth.admin_tokens import KIND, AdminCaller

DAYS, MAX_DAYS = 90, 365
"""How long a token lives where nobody says otherwise, and at most."""
EVERY = timedelta(minutes=1)
"""How often a token's last use is written at most."""
A_DAY = timedelta(days=1)


def issue_token(
    actor: Actor, owner: User, name: str, scopes: Iterable[str], *, days: int = DAYS
) -> tuple[str, AdminToken]:
    """A new token: (the whole token, told this once, and its row).

    Raises `InvalidError` for a name that another living token of the owner has, a scope there is not, or no scope.
    """
    wanted = [scope for scope in ADMIN_SCOPES if scope in set(scopes)]
    if not wanted:
        raise InvalidError([Problem("scopes", _("Choose what the token may do."), "required")])
    check_one_line("name", name)
    now = timezone.now()
    if AdminToken.objects.filter(owner=owner, name=name, revoked_at=None, expires_at__gt=now).exists():
        message = _("You already have a token named %(name)s. Revoke it first, or choose another name.") % {
            "name": name
        }
        raise InvalidError([Problem("name", message, "duplicate")])
    token, public, digest = make_key(KIND)
    ends = now + timedelta(days=min(days, MAX_DAYS))
    details = {"token": f"{KIND}_{public}", "scopes": wanted, "expires": ends.isoformat(timespec="seconds")}
    with ledger.audit(actor, AuditedAction("token.issue", "token", name, details)):
        row = AdminToken.objects.create(
            owner=owner,
            name=name,
            public_id=public,
            digest=digest,
            signed_with=name_of_secret(newest_secret()),
            scopes=wanted,
            expires_at=ends,
        )
    return token, row


def revoke_token(actor: Actor, row: AdminToken) -> None:
    """Ends a token at once, for good; asking twice is no fault."""
    if row.revoked_at is None:
        with ledger.audit(
            actor, AuditedAction("token.revoke", "token", row.name, {"token": f"{KIND}_{row.public_id}"})
        ):
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])


def end_tokens(owner: User) -> int:
    """Ends all tokens of somebody who is no administrator any more, as a part of that act; how many."""
    return AdminToken.objects.filter(owner=owner, revoked_at=None).update(revoked_at=timezone.now())


def note_use(caller: AdminCaller, address: str, request_id: str) -> None:
    """Notes that a token was used, at most once a minute; the first use of a day is in the audit, too.

    After a rotation it is signed with the newest secret then, so that the older one can go.

    Where the database takes no write now, nothing is noted: that is no reason to refuse the call.
    """
    now, last = timezone.now(), caller.row.last_used_at
    if last is not None and now - last <= EVERY:
        return
    try:
        signature = {"digest": digest_of(caller.secret), "signed_with": name_of_secret(newest_secret())}
        AdminToken.objects.filter(pk=caller.row.pk).update(last_used_at=now, **signature)
        if last is None or now - last > A_DAY:
            actor = Actor("token", caller.name, address, request_id)
            act = AuditedAction("token.use", "token", caller.row.name, {"token": f"{KIND}_{caller.row.public_id}"})
            revisions.write_event(actor, act)
    except (DatabaseError, InterfaceError):
        return
