"""Going back: restoring a revision whole, and undoing one change."""

from __future__ import annotations

from django.utils.translation import gettext as _

from artifacts.actions import restore_artifacts
from capabilities.acts import Act, Actor
from capabilities.errors import ConflictError, NotFoundError
from routing_admin.configuration import rows
from routing_admin.configuration.revisions import ledger
from routing_admin.core.configuration.as_json import from_json
from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.models import AuditEvent, Installation, Revision


def configuration_at(number: int) -> Configuration:
    """The configuration of a revision; 0 is the empty one before the first. Raises `NotFoundError`."""
    if number == 0:
        return EMPTY
    revision = Revision.objects.filter(number=number).first()
    if revision is None:
        raise NotFoundError(_("There is no revision %(number)s.") % {"number": number})
    return from_json(revision.snapshot)


def restore(actor: Actor, number: int, *, message: str = "") -> Act:
    """Makes the configuration what it was in that revision, as a new revision; none when it was so."""
    value = configuration_at(number)
    act = Act("configuration.restore", "revision", str(number), {"restores": number}, message=message)
    with ledger.change(actor, act):
        rows.write(value)
    return act


def undo(actor: Actor, number: int) -> Act:
    """Takes the newest revision back. Raises `ConflictError` when others came after it: restore one in History then."""
    act = Act("configuration.undo", "revision", str(number))
    with ledger.change(actor, act):
        newest = Revision.objects.values_list("number", flat=True).first()
        if newest != number:
            raise ConflictError(_("Something else changed since. Look in History for the version to restore."))
        before = Revision.objects.filter(number__lt=number).values_list("number", flat=True).first() or 0
        restore(actor, before)
        bring_back(actor, number)
    return act


def bring_back(actor: Actor, number: int) -> None:
    """What a change took away beside the configuration, as its audit event tells: the demo's sample files."""
    event = AuditEvent.objects.filter(revision=number, action="demo.remove").first()
    if event is not None:
        restore_artifacts(actor, event.details.get("artifacts", ()))
        Installation.objects.update(has_demo=True)
