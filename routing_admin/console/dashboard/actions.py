"""End providers' cooldowns immediately in every process, as an audited action."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.errors import NotFoundError
from capabilities.sentences import join_words
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import FRESH_START, ledger
from routing_admin.dispatch.cooldown_resets import forget_failures
from routing_admin.dispatch.send import process_run_context


def reset_cooldowns(actor: Actor, names: Sequence[str] = ()) -> list[str]:
    """End the cooldowns of the named providers and their keys, or of all providers. Return the providers' names.

    Other processes follow within a second. Raise `NotFoundError` for an unknown provider.
    """
    known = [provider.name for provider in snapshot.current().configuration.providers]
    missing = [name for name in names if name not in known]
    if missing:
        text = _("There is no provider %(name)s. There are: %(names)s.")
        raise NotFoundError(text % {"name": missing[0], "names": join_words(known)})
    chosen = [name for name in known if not names or name in names]
    # Other processes read this event in the audit log and then end the cooldowns in their own memory.
    with ledger.audit(
        actor, AuditedAction(FRESH_START, "provider", chosen[0] if len(chosen) == 1 else "", {"providers": chosen})
    ):
        pass
    forget_failures(process_run_context(), chosen)
    return chosen
