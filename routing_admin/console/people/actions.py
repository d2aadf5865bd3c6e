"""Actions on users: invitations, roles, deactivation, passwords, sessions and tokens.

All actions are audited, and none creates a configuration revision. The last administrator who can sign in cannot lose
the role; this is checked within the transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX, make_password
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.sessions.models import Session
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from capabilities.access import hash_secret, make_key, role_for
from capabilities.actors import Actor, AuditedAction
from capabilities.core.permissions import ADMIN_SCOPES, UserRole
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InUseError, InvalidError, NotFoundError
from capabilities.signing import newest_secret, secret_name
from routing_admin.configuration import revisions
from routing_admin.configuration.guards import check_one_line
from routing_admin.configuration.revisions import ledger
from routing_admin.models import AdminToken, Person, SessionSighting
from routing_admin.platform.auth.admin_tokens import KIND, AdminCaller
from routing_admin.platform.auth.session_activity import digest_session, find_sessions

DAYS, MAX_DAYS = 90, 365
"""Default and maximum validity of a token, in days."""
USE_INTERVAL = timedelta(minutes=1)
"""Minimum interval between two updates of the time at which a token was last used."""


def issue_token(
    actor: Actor, owner: User, name: str, scopes: Iterable[str], *, days: int = DAYS
) -> tuple[str, AdminToken]:
    """Create a token for scripts. Return its text, which is not stored, and its row.

    Raise `InvalidError` if the owner already has a valid token with this name, if a scope is unknown, or if there are
    no scopes.
    """
    granted = [scope for scope in ADMIN_SCOPES if scope in set(scopes)]
    if not granted:
        raise InvalidError([Problem("scopes", _("Choose what the token may do."), "required")])
    check_one_line("name", name)
    now = timezone.now()
    if AdminToken.objects.filter(owner=owner, name=name, revoked_at=None, expires_at__gt=now).exists():
        message = _("You already have a token named %(name)s. Revoke it first, or choose another name.") % {
            "name": name
        }
        raise InvalidError([Problem("name", message, "duplicate")])
    token, public, digest = make_key(KIND)
    expires_at = now + timedelta(days=min(days, MAX_DAYS))
    details = {"token": f"{KIND}_{public}", "scopes": granted, "expires": expires_at.isoformat(timespec="seconds")}
    with ledger.audit(actor, AuditedAction("token.issue", "token", name, details)):
        row = AdminToken.objects.create(
            owner=owner,
            name=name,
            public_id=public,
            digest=digest,
            signed_with=secret_name(newest_secret()),
            scopes=granted,
            expires_at=expires_at,
        )
    return token, row


def revoke_token(actor: Actor, row: AdminToken) -> None:
    """Revoke a token immediately. Revoking it again is not an error."""
    if row.revoked_at is None:
        with ledger.audit(
            actor, AuditedAction("token.revoke", "token", row.name, {"token": f"{KIND}_{row.public_id}"})
        ):
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])


def revoke_tokens(owner: User) -> int:
    return AdminToken.objects.filter(owner=owner, revoked_at=None).update(revoked_at=timezone.now())


def record_use(caller: AdminCaller, address: str, request_id: str) -> None:
    """Record that a token was used, at most once a minute. The first use on a day is audited."""
    now, last = timezone.now(), caller.row.last_used_at
    if last is not None and now - last <= USE_INTERVAL:
        return
    try:
        # Sign the token again with the newest secret, so that older secrets can be removed after a rotation.
        signature = {"digest": hash_secret(caller.secret), "signed_with": secret_name(newest_secret())}
        AdminToken.objects.filter(pk=caller.row.pk).update(last_used_at=now, **signature)
        if last is None or timezone.localdate(last) < timezone.localdate(now):
            actor = Actor("token", caller.name, address, request_id)
            act = AuditedAction("token.use", "token", caller.row.name, {"token": f"{KIND}_{caller.row.public_id}"})
            revisions.write_event(actor, act)
    except (DatabaseError, InterfaceError):
        # The request must be served even if the database does not accept writes.
        return


def end_sessions(actor: Actor, user: User, digests: Collection[str] | None = None, *, staying: str = "") -> int:
    """End the user's sessions with these digests, or all sessions, except the one with the key `staying`.

    Return the number of ended sessions.
    """
    act = AuditedAction("session.end", "user", user.get_username())
    with ledger.audit(actor, act):
        act.details["sessions"] = count = delete_sessions(user, digests, staying=staying)
    return count


def delete_sessions(user: User, digests: Collection[str] | None = None, *, staying: str = "") -> int:
    """Delete sessions as `end_sessions` does, but as part of another audited action."""
    own_digest = digest_session(staying) if staying else ""
    keys_by_digest = {
        digest: session.session_key
        for digest, session in find_sessions(user.pk)
        if digest != own_digest and (digests is None or digest in digests)
    }
    Session.objects.filter(session_key__in=list(keys_by_digest.values())).delete()
    SessionSighting.objects.filter(digest__in=list(keys_by_digest)).delete()
    return len(keys_by_digest)


RANKS = tuple(role.value for role in UserRole)
"""Roles from the least to the most privileged."""


CAN_SIGN_IN = ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX) | Q(linked_identities__isnull=False)
"""Condition for users who have accepted their invitation: the opposite of `is_invited`."""


def is_invited(user: User) -> bool:
    """Return whether the user was invited but has neither chosen a password nor linked an account."""
    return not user.has_usable_password() and not user.linked_identities.all()


def check_can_step_down(user: User) -> None:
    """Raise `InUseError` if the user is the only administrator who can sign in."""
    if not can_administrate(user):
        return
    others = User.objects.filter(CAN_SIGN_IN, is_staff=True, is_active=True).exclude(pk=user.pk)
    if not others.exists():
        raise InUseError(
            _("%(name)s is the last administrator. Make someone else an administrator first.")
            % {"name": user.get_username()}
        )


def can_administrate(user: User) -> bool:
    """Return whether the user is an administrator who can sign in: active, and not merely invited."""
    return user.is_staff and user.is_active and not is_invited(user)


def create_first_administrator(username: str, password: str) -> bool:
    """Create an administrator if there is none, as on the first start. Return whether one was created."""
    if User.objects.filter(is_staff=True).exists():
        return False
    User.objects.create_superuser(username, password=password)
    return True


def invite(actor: Actor, username: str, role: str) -> tuple[User, str]:
    """Create a user without a password. Return the user and the path of a link for choosing a password.

    Raise `InvalidError` if the name is taken, ignoring case.
    """
    with ledger.audit(actor, AuditedAction("user.invite", "user", username, {"role": role})):
        if User.objects.filter(username__iexact=username).exists():
            message = _("The user %(name)s already exists.") % {"name": username}
            raise InvalidError([Problem("username", message, "duplicate")])
        user = User(username=username)
        user.set_unusable_password()
        write_role(user, role)
    return user, make_link_token(user)


def new_link(actor: Actor, user: User) -> str:
    with ledger.audit(actor, AuditedAction("user.link", "user", user.get_username())):
        user = lock_user(user.pk)
        check_is_active(user)
        if is_invited(user):
            # The signature of a link covers the stored password, so a new unusable password invalidates earlier links.
            user.set_unusable_password()
            user.save(update_fields=["password"])
    return make_link_token(user)


def check_is_active(user: User) -> None:
    if not user.is_active:
        raise ConflictError(_("%(name)s is deactivated. Reactivate the user first.") % {"name": user.get_username()})


def set_role(actor: Actor, user_id: int, role: str, *, expected: str) -> User:
    """Set a user's role. Raise `ConflictError` if the current role is not `expected`, the role that the page showed."""
    with transaction.atomic():
        user = lock_among_administrators(user_id)
        if role_for(user) != expected:
            raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))
        if role == role_for(user):
            return user
        act = AuditedAction("user.role", "user", user.get_username(), {"from": expected, "to": role})
        with ledger.audit(actor, act):
            if role != UserRole.ADMINISTRATOR:
                check_can_step_down(user)
            write_role(user, role)
            # Sessions and tokens must not keep rights that the user no longer has.
            if RANKS.index(role) < RANKS.index(expected):
                act.details |= {"sessions": delete_sessions(user), "tokens": revoke_tokens(user)}
    return user


def write_role(user: User, role: str) -> None:
    user.is_staff = role == UserRole.ADMINISTRATOR
    # A superuser passes every permission check, so only administrators may be superusers.
    user.is_superuser = user.is_superuser and user.is_staff
    user.save()
    Person.objects.update_or_create(user=user, defaults={"is_editor": role == UserRole.EDITOR})


def set_active(actor: Actor, user_id: int, *, active: bool) -> User:
    """Activate or deactivate a user.

    Deactivation ends all sessions and tokens immediately. It is not an error if nothing changes.
    """
    with transaction.atomic():
        user = lock_among_administrators(user_id)
        if user.is_active == active:
            return user
        action = "user.reactivate" if active else "user.deactivate"
        act = AuditedAction(action, "user", user.get_username())
        with ledger.audit(actor, act):
            if not active:
                check_can_step_down(user)
                act.details |= {"sessions": delete_sessions(user), "tokens": revoke_tokens(user)}
            user.is_active = active
            user.save(update_fields=["is_active"])
    return user


def withdraw_invitation(actor: Actor, user_id: int) -> str:
    """Delete an invited user and return the user's name. Raise `ConflictError` if the invitation was accepted."""
    with transaction.atomic():
        user = lock_user(user_id)
        if not is_invited(user):
            raise ConflictError(
                _("%(name)s has accepted the invitation. Deactivate the user instead.") % {"name": user.get_username()}
            )
        with ledger.audit(actor, AuditedAction("user.withdraw", "user", user.get_username())):
            user.delete()
    return user.get_username()


def lock_among_administrators(user_id: int) -> User:
    """Lock the rows of the user and of all administrators until the transaction ends.

    Return the user, or raise `NotFoundError`.
    """
    # All rows are locked in the same order. If two administrators step down at the same time, the second transaction
    # therefore sees the result of the first.
    rows = {
        row.pk: row for row in User.objects.select_for_update().filter(Q(pk=user_id) | Q(is_staff=True)).order_by("pk")
    }
    if user_id not in rows:
        raise NotFoundError(_("This user no longer exists."))
    return rows[user_id]


def lock_user(user_id: int) -> User:
    """Lock and return the user's row until the transaction ends. Raise `NotFoundError` if there is none."""
    row = User.objects.select_for_update().filter(pk=user_id).first()
    if row is None:
        raise NotFoundError(_("This user no longer exists."))
    return row


def make_link_token(user: User) -> str:
    """Return the path of an invitation or password link, which contains the user's id and a signature.

    The signature becomes invalid when it expires or the password changes.
    """
    return f"{urlsafe_base64_encode(force_bytes(user.pk))}/{default_token_generator.make_token(user)}"


def choose_password(actor: Actor, user: User, password: str, *, language: str = "", staying: str = "") -> None:
    """Store a validated password and the pages' language. End the user's sessions, except the session `staying`.

    Raise `ConflictError` if the password has changed since `user` was read, so that a link works only once. Raise
    `OverloadedError` if too many passwords are being hashed.
    """
    action = "user.join" if is_invited(user) else "user.password"
    # Hash before the transaction, because waiting for a free hashing slot within it would make other writers wait too.
    hashed = make_password(password)
    with ledger.audit(actor, AuditedAction(action, "user", user.get_username())):
        if lock_user(user.pk).password != user.password:
            raise ConflictError(_("The password was changed in the meantime. Sign in with the new one."))
        user.password = hashed
        user.save(update_fields=["password"])
        delete_sessions(user, staying=staying)
        if language:
            choose_language(user, language)


def choose_language(user: User, language: str) -> None:
    if language in dict(settings.LANGUAGES):
        Person.objects.update_or_create(user=user, defaults={"language": language})


def record_sign_in(actor: Actor, action: str, names: Iterable[str]) -> None:
    """Record `user.sign_in`, `user.sign_in_failed` or `user.sign_out` in the audit log."""
    # Record only names of existing users, because an unknown name may be a password that was typed into the wrong
    # field.
    username = User.objects.filter(username__in=list(names)).values_list("username", flat=True).first() or ""
    revisions.write_event(
        Actor(actor.kind, username, actor.address, actor.request_id), AuditedAction(action, "user", username)
    )
