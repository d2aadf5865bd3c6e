"""Writing one provider, service or route whole, as a script does: one revision, and the act that a page would make."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from capabilities.acts import Act, Actor
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InvalidError
from routing_admin.actions.importing import fingerprint, key_context, with_keys
from routing_admin.configuration import rows
from routing_admin.configuration.history import newest_number
from routing_admin.configuration.revisions import ledger
from routing_admin.core.configuration.checks import check
from routing_admin.core.configuration.diff import Change, diff
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.problem_sentences import errors
from routing_admin.core.files.entries import EntryKind, merge_entry, write_entry
from routing_admin.core.files.importing import Imported


@dataclass(frozen=True, slots=True)
class EntryChange:
    """What writing an entry did: whether it is new, what differs, what is to be known, and the revision it made."""

    is_new: bool
    changes: tuple[Change, ...]
    warnings: tuple[Problem, ...]
    revision: int | None


def put_entry(actor: Actor, kind: EntryKind, name: str, value: object, *, expected: int | None = None) -> EntryChange:
    """Makes the entry of that name this value; the same value again does nothing.

    Raises `InvalidError` with every problem, `ConflictError` where `expected` is not the newest revision.
    """
    check_revision(expected)
    before, merged = _merge(kind, name, value)
    changes = diff(before, merged.configuration)
    is_new = write_entry(before, kind, name) is None
    if not changes and not merged.keys:
        return EntryChange(is_new, (), merged.problems, None)
    act = Act(f"{kind}.{'add' if is_new else 'change'}", kind.value, name)
    with ledger.change(actor, act):
        check_revision(expected)
        before, merged = _merge(kind, name, value)
        rows.write(with_keys(merged.configuration, merged.keys, merged.further_keys))
    return EntryChange(is_new, diff(before, merged.configuration), merged.problems, act.revision)


def _merge(kind: EntryKind, name: str, value: object) -> tuple[Configuration, Imported]:
    before = rows.read()
    merged = merge_entry(before, kind, name, value, key_context(), fingerprint)
    found = errors(merged.problems) or errors(check(merged.configuration))
    if found:
        raise InvalidError(found)
    return before, merged


def check_revision(expected: int | None) -> None:
    """Raises `ConflictError` where that is not the newest revision; None expects nothing."""
    if expected is not None and expected != (newest_number() or 0):
        raise ConflictError(_("The configuration was changed meanwhile. Look at the new version, then send it again."))
