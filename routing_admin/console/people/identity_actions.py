"""Actions on external accounts: admit them at sign-in, link them to users, and unlink them.

All actions are audited, and none creates a configuration revision.
"""

from __future__ import annotations

from itertools import count

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.errors import ConflictError, NotFoundError
from routing_admin.configuration import revisions
from routing_admin.configuration.revisions import ledger
from routing_admin.console.people import actions as people
from routing_admin.core.identity import ADMITTED, Admission, Identity, Owner, decide_admission, suggest_username
from routing_admin.models import LinkedIdentity


def admit(
    actor: Actor, identity: Identity, claimant: User | None, newcomers: str, domains: tuple[str, ...]
) -> tuple[Admission, User | None]:
    """Decide whether an external identity may sign in, and create or link its user. The decision is audited.

    `claimant` is the user whose invitation link was opened or who links the identity. `newcomers` is the role of users
    who were not invited, or "none" if these are rejected. The returned user is None if the identity is not admitted.
    """
    with transaction.atomic():
        linked = _find_linked(identity)
        owner = Owner(linked.user.pk, linked.user.is_active) if linked else None
        admission = decide_admission(
            identity, owner, claimant.pk if claimant else None, newcomers=newcomers != "none", domains=domains
        )
        if admission not in ADMITTED:
            _write_event(actor, "user.sign_in_refused", linked.user if linked else None, identity, admission)
            return admission, None
        user = linked.user if linked else claimant or _create(actor, identity, newcomers)
        if linked is None:
            _link(actor, user, identity)
        return admission, user


def record_admission(actor: Actor, user: User, identity: Identity) -> None:
    _write_event(actor, "user.sign_in", user, identity, Admission.SIGN_IN)


def record_failure(actor: Actor, provider: str) -> None:
    revisions.write_event(actor, AuditedAction("user.sign_in_failed", "user", "", {"provider": provider}))


def unlink(actor: Actor, user_id: int, identity_id: int) -> str:
    """Unlink an external account from a user and return the account's name.

    Raise `ConflictError` if the user would have no other way to sign in, and `NotFoundError` if the account is not
    linked to this user.
    """
    with transaction.atomic():
        user = people.lock_user(user_id)
        linked = user.linked_identities.filter(pk=identity_id).first()
        if linked is None:
            raise NotFoundError(_("This account is no longer linked."))
        if not user.has_usable_password() and user.linked_identities.count() == 1:
            # A user without a password would be locked out.
            raise ConflictError(
                _("%(name)s has no password, so this is the only way to sign in. Create a password link first.")
                % {"name": user.get_username()}
            )
        with ledger.audit(
            actor,
            AuditedAction("user.unlink", "user", user.get_username(), _event_details(linked.provider, linked.name)),
        ):
            linked.delete()
    return linked.name


def _find_linked(identity: Identity) -> LinkedIdentity | None:
    rows = LinkedIdentity.objects.select_related("user")
    return rows.filter(provider=identity.provider, subject=identity.subject).first()


def _create(actor: Actor, identity: Identity, role: str) -> User:
    name = _free_name(suggest_username(identity))
    user, _token = people.invite(actor, name, role)
    return user


def _free_name(name: str) -> str:
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(candidate for candidate in names if not User.objects.filter(username__iexact=candidate).exists())


def _link(actor: Actor, user: User, identity: Identity) -> None:
    action = "user.join" if people.is_invited(user) else "user.link_identity"
    with ledger.audit(
        actor, AuditedAction(action, "user", user.get_username(), _event_details(identity.provider, identity.title))
    ):
        LinkedIdentity.objects.create(
            user=user, provider=identity.provider, subject=identity.subject, name=identity.title[:255]
        )


def _write_event(actor: Actor, action: str, user: User | None, identity: Identity, admission: Admission) -> None:
    name = user.get_username() if user else ""
    facts = _event_details(identity.provider, identity.title) | {"outcome": admission.value}
    revisions.write_event(
        Actor(actor.kind, name, actor.address, actor.request_id), AuditedAction(action, "user", name, facts)
    )


def _event_details(provider: str, name: str) -> dict[str, str]:
    return {"provider": provider, "account": name}
