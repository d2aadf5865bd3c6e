"""Having providers tried again at once that are left alone after failures, in every process. Audited."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.errors import NotFoundError
from capabilities.sentences import join_words
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import FRESH_START, ledger
from routing_admin.dispatch.cooldown_resets import forget_failures
from routing_admin.dispatch.send import process_run_context


def try_again(actor: Actor, names: Sequence[str] = ()) -> list[str]:
    """Ends the cooldowns of these providers and of their keys, or of all; which. Other processes follow in a second.

    Raises `NotFoundError` for a name that no provider has.
    """
    known = [each.name for each in snapshot.current().configuration.providers]
    missing = [name for name in names if name not in known]
    if missing:
        text = _("There is no provider %(name)s. There are: %(names)s.")
        raise NotFoundError(text % {"name": missing[0], "names": join_words(known)})
    wanted = [name for name in known if not names or name in names]
    with ledger.audit(
        actor, AuditedAction(FRESH_START, "provider", wanted[0] if len(wanted) == 1 else "", {"providers": wanted})
    ):
        pass
    forget_failures(process_run_context(), wanted)
    return wanted
