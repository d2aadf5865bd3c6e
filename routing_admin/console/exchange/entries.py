"""Write a provider, service or route as a whole, as one revision and with the same audit event as from a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.errors import ConflictError, InvalidError
from routing_admin.configuration import rows
from routing_admin.configuration.revisions import ledger
from routing_admin.console.exchange.actions import fingerprint, key_context, with_keys
from routing_admin.core.configuration.checks import check
from routing_admin.core.configuration.diff import Change, diff
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.problem_sentences import errors
from routing_admin.core.files.entries import NO_EXPECTATION, EntryKind, Expectation, merge_entry, write_entry
from routing_admin.core.files.importing import Imported


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """A written entry: whether it is new, its changes, warnings, the revision, and its current content."""

    is_new: bool
    changes: tuple[Change, ...]
    warnings: tuple[Problem, ...]
    revision: int | None
    entry: Mapping[str, Any]


def put_entry(
    actor: Actor, kind: EntryKind, name: str, value: object, *, expected: Expectation = NO_EXPECTATION
) -> EntryChange:
    """Set the entry with this name to `value`. Nothing is written if the entry already has this value.

    Raise `InvalidError` with all problems, and `ConflictError` if the entry is not as expected.
    """
    with ledger.exclusive():
        before = rows.read()
        entry = write_entry(before, kind, name)
        check_expectation(expected, entry)
        merged = _merge(before, kind, name, value)
        changes, is_new = diff(before, merged.configuration), entry is None
        # Keys in the value have to be stored even if nothing else changes.
        if not changes and not merged.keys:
            return EntryChange(is_new=is_new, changes=(), warnings=merged.problems, revision=None, entry=entry or {})
        act = AuditedAction(f"{kind}.{'add' if is_new else 'change'}", kind.value, name)
        with ledger.change(actor, act):
            rows.write(with_keys(merged.configuration, merged.keys, merged.further_keys))
        entry = write_entry(rows.read(), kind, name) or {}
    return EntryChange(is_new=is_new, changes=changes, warnings=merged.problems, revision=act.revision, entry=entry)


def check_entry(kind: EntryKind, name: str, expected: Expectation) -> None:
    """Raise `ConflictError` if the entry with this name is not as expected."""
    if expected.tags is not None:
        check_expectation(expected, write_entry(rows.read(), kind, name))


def check_expectation(expected: Expectation, entry: Mapping[str, Any] | None) -> None:
    """Raise `ConflictError` if the entry is not as expected. A missing entry is None."""
    if not expected.allows(entry):
        raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))


def _merge(before: Configuration, kind: EntryKind, name: str, value: object) -> Imported:
    merged = merge_entry(before, kind, name, value, key_context(), fingerprint)
    problems = errors(merged.problems) or errors(check(merged.configuration, before))
    if problems:
        raise InvalidError(problems)
    return merged
