"""Going back: restoring a revision whole, and undoing one change."""

from __future__ import annotations

from django.utils.translation import gettext as _

from artifacts.actions import restore_artifacts
from capabilities.acts import Act, Actor
from capabilities.errors import ConflictError
from routing_admin.configuration import rows
from routing_admin.configuration.history import configuration_at, newest_number, number_before
from routing_admin.configuration.revisions import ledger
from routing_admin.models import AuditEvent, Installation


def restore(actor: Actor, number: int, *, message: str = "") -> Act:
    """Makes the configuration what it was in that revision, as a new revision; none when it was so.

    Raises `NotFoundError` for a number that no revision has.
    """
    value = configuration_at(number)
    act = Act("configuration.restore", "revision", str(number), {"restores": number}, message=message)
    with ledger.change(actor, act):
        rows.write(value)
    return act


def undo(actor: Actor, number: int) -> Act:
    """Takes the newest revision back. Raises `ConflictError` when others came after it: restore one in History then."""
    act = Act("configuration.undo", "revision", str(number))
    with ledger.change(actor, act):
        if newest_number() != number:
            raise ConflictError(_("Something else changed since. Look in History for the version to restore."))
        restore(actor, number_before(number))
        bring_back(actor, number)
    return act


def bring_back(actor: Actor, number: int) -> None:
    """What a change took away beside the configuration, as its audit event tells: the demo's sample files."""
    event = AuditEvent.objects.filter(revision=number, action="demo.remove").first()
    if event is not None:
        restore_artifacts(actor, event.details.get("artifacts", ()))
        Installation.objects.update(has_demo=True)
