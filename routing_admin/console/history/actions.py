"""Restore a whole revision, or undo the newest change."""

from __future__ import annotations

from django.utils.translation import gettext as _

from artifacts.library import restore_artifacts
from capabilities.actors import Actor, AuditedAction
from capabilities.errors import ConflictError, ForbiddenError
from capabilities.models import Agent
from routing_admin.configuration import rows
from routing_admin.configuration.agents.actions import check_can_delete_agent
from routing_admin.configuration.history import configuration_at, newest_configuration, newest_number, number_before
from routing_admin.configuration.revisions import ledger
from routing_admin.console.demo.day import load_day
from routing_admin.core.configuration.diff import diff, required_right
from routing_admin.core.configuration.removals import keep_agents
from routing_admin.core.configuration.specs import Configuration
from routing_admin.models import AuditEvent, Installation

EntryKinds = frozenset[str]
"""Kinds of configuration entries that the actor may change. Where None is allowed, it means all kinds."""


def restore(actor: Actor, number: int, *, message: str = "", kinds: EntryKinds | None = None) -> AuditedAction:
    """Write an earlier revision's configuration as a new revision, unless nothing would change.

    Agents that were created after the earlier revision are kept, with their keys. Raise `NotFoundError` for an unknown
    revision, and `ForbiddenError` if entries outside `kinds` would change.
    """
    restored = configuration_at(number)
    with ledger.exclusive():
        return _restore_value(actor, number, keep_agents(restored, rows.read()), message, kinds)


def _restore_value(
    actor: Actor, number: int, value: Configuration, message: str, kinds: EntryKinds | None
) -> AuditedAction:
    act = AuditedAction("configuration.restore", "revision", str(number), {"restores": number}, message=message)
    with ledger.change(actor, act):
        check_kinds(value, number, kinds)
        rows.write(value)
    return act


def check_kinds(value: Configuration, number: int, kinds: EntryKinds | None) -> None:
    """Raise `ForbiddenError` if `value` differs from the newest configuration in entries outside `kinds`."""
    changes = diff(newest_configuration(), value) if kinds is not None else ()
    if any(required_right(change.kind, change.field) not in (kinds or ()) for change in changes):
        message = _(
            "Revision %(number)s also changes providers, languages or settings. Only an administrator can restore it."
        )
        raise ForbiddenError(message % {"number": number})


def undo(actor: Actor, number: int, *, kinds: EntryKinds | None = None) -> AuditedAction:
    """Undo the newest revision.

    Raise `ConflictError` if `number` is no longer the newest; `restore` can still be used then. Raise `ForbiddenError`
    as `restore` does, and `InUseError` if this would remove an agent that created other agents.
    """
    act = AuditedAction("configuration.undo", "revision", str(number))
    with ledger.change(actor, act):
        if newest_number() != number:
            raise ConflictError(_("It has changed since. Choose the version to restore in History."))
        previous = number_before(number)
        value = configuration_at(previous)
        check_owners_remain(value)
        _restore_value(actor, previous, value, "", kinds)
        has_day = restore_demo(actor, number)
    if has_day:
        # Load the demo requests only now: they are planned with the active configuration, which has just been restored.
        load_day()
    return act


def check_owners_remain(value: Configuration) -> None:
    """Raise `InUseError` if `value` lacks an agent that created other agents at run time."""
    # Undoing the creation of an agent must make the same check as deleting it.
    agent_ids = [agent.id for agent in value.agents]
    for row in Agent.objects.filter(origin=Agent.Origin.ADMINISTRATOR).exclude(agent_id__in=agent_ids):
        check_can_delete_agent(row)


def restore_demo(actor: Actor, number: int) -> bool:
    """Restore the demo's files if this revision removed the demo. Return whether the removal also deleted requests."""
    # Revisions do not contain files, but the audit event of the removal lists them.
    event = AuditEvent.objects.filter(revision=number, action="demo.remove").first()
    if event is not None:
        restore_artifacts(actor, event.details.get("artifacts", ()))
        Installation.objects.update(has_demo=True)
    return event is not None and bool(event.details.get("requests"))
