"""Record each change as one transaction with one revision and its audit events. Changes may be nested.

The outermost change reads the whole configuration back from the rows, validates it, and compares it with the previous
revision. After the commit, the new snapshot is loaded and published.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.storable import make_storable
from capabilities.errors import ConflictError, InvalidError, TakenError
from routing_admin.configuration import publishing, rows, snapshot
from routing_admin.configuration.audit import was_recorded
from routing_admin.configuration.audit import write_event as write_event  # Re-exported for the action modules.
from routing_admin.configuration.history import newest_configuration, newest_number
from routing_admin.configuration.keys import bind_first_uses
from routing_admin.configuration.publishing import notify_change
from routing_admin.core.configuration.as_json import to_json
from routing_admin.core.configuration.checks import check, check_describers
from routing_admin.core.configuration.diff import diff
from routing_admin.models import Installation, Revision
from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.router import one_writer

log = logging.getLogger(__name__)

CREATING_SUFFIXES = (".add", ".put")
"""Name suffixes of the actions that create a named object."""
UNIQUE, UNIQUE_STATE = "UNIQUE constraint failed", "23505"
"""How SQLite and PostgreSQL report that a name is already used."""
GONE, FOREIGN, FOREIGN_STATE = "did not affect any rows", "FOREIGN KEY constraint failed", "23503"
"""How Django, SQLite and PostgreSQL report that a row to be written, or a row that it references, no longer exists."""
READING = timedelta(minutes=10)
"""If a user views an object several times within this period, the audit log gets only one entry."""
IN_SNAPSHOT = frozenset({"agent", "installation"})
"""Kinds of objects whose changes always require a new snapshot, even if they change nothing in the configuration.
Examples are run-time agents and the setting for recording bodies.
"""

FRESH_START = "provider.try_again"
"""Action that resets cooldowns in every process; the audit entry's details list the providers."""
DRILL_START, DRILL_STOP, DRILL_END = "provider.drill", "provider.drill_stop", "provider.drill_end"
"""Actions that record the start of a fire drill, its early stop, and its end."""
KEY_ORIGIN = "provider.key_origin"
"""Action that allows the key in an environment variable to be sent to another origin."""
ANNOUNCED_ACTIONS = frozenset({FRESH_START, DRILL_START, DRILL_STOP, DRILL_END, KEY_ORIGIN})
"""Actions that leave the configuration unchanged but must be noticed by other processes."""

_open: ContextVar[list[AuditedAction] | None] = ContextVar("open_change", default=None)
_after_commit: ContextVar[list[Callable[[], object]] | None] = ContextVar("after_commit", default=None)


@contextmanager
def _refuse_taken_names(act: AuditedAction) -> Iterator[None]:
    try:
        yield
    # Another process took the name after this process had checked that it was free.
    except IntegrityError as error:
        if not (_is_violation(error, UNIQUE, UNIQUE_STATE) and act.action.endswith(CREATING_SUFFIXES)):
            raise
        message = _("Someone else just added %(name)s. Reload the page, or choose another name.")
        raise TakenError(message % {"name": act.object_name}) from error


@contextmanager
def _refuse_gone_rows() -> Iterator[None]:
    try:
        yield
    # A row that was read before the transaction, or a row that it references, has been deleted.
    except DatabaseError as error:
        if GONE not in str(error) and not _is_violation(error, FOREIGN, FOREIGN_STATE):
            raise
        message = _("Someone else changed this in the meantime. Check the new version, then save again.")
        raise ConflictError(message) from error


def _is_violation(error: DatabaseError, text: str, state: str) -> bool:
    return text in str(error) or getattr(error.__cause__, "sqlstate", "") == state


class RevisionRecorder:
    """Records configuration changes, and actions that leave the configuration unchanged."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Run a transaction that no other change overlaps, so that the data it has read stays valid until it commits.

        After the commit, the change is announced to this process and to other processes, and the files are published.
        """
        if _after_commit.get() is not None:
            # This transaction is nested; the outermost one commits and announces the change.
            with transaction.atomic():
                yield
            return
        steps: list[Callable[[], object]] = []
        token = _after_commit.set(steps)
        try:
            with _refuse_gone_rows(), one_writer():
                yield
        finally:
            _after_commit.reset(token)
        for step in dict.fromkeys(steps):
            _finish(step)

    @contextmanager
    def change(self, actor: Actor, act: AuditedAction) -> Iterator[AuditedAction]:
        """Record one revision and one audit event for all changes in the block; nested blocks join the outer block.

        Raise `InvalidError` and roll back if the configuration would be invalid.
        """
        acts = _open.get()
        if acts is not None:
            yield act
            acts.append(act)
            return
        token = _open.set([])
        try:
            with self.exclusive(), _refuse_taken_names(act):
                yield act
                inner = _open.get() or []
                number = record(actor, act, inner)
                for item in (act, *inner):
                    item.revision = number
                    write_event(actor, item)
                _announce(snapshot.refresh, notify_change, publishing.publish)
        finally:
            _open.reset(token)

    @contextmanager
    def audit(self, actor: Actor, act: AuditedAction) -> Iterator[AuditedAction]:
        """Record an action that leaves the configuration unchanged, such as issuing an agent key."""
        with self.exclusive(), _refuse_taken_names(act):
            yield act
            if act.object_kind in IN_SNAPSHOT or act.action in ANNOUNCED_ACTIONS:
                Installation.objects.update(version=F("version") + 1)
                _announce(snapshot.refresh, notify_change)
            write_event(actor, act)

    def note_reading(self, actor: Actor, act: AuditedAction) -> None:
        if not was_recorded(actor, act, READING):
            write_event(actor, act)


ledger = RevisionRecorder()


def _finish(step: Callable[[], object]) -> None:
    try:
        step()
    except Exception as error:
        # The change is already committed, so a failure to load the snapshot is only logged. The next use reads the rows
        # again.
        problem = explain_failure(error) or f"{type(error).__name__}: {error}"
        log.error("a change was committed, but %s failed afterwards: %s", step.__qualname__, problem)


def _announce(*steps: Callable[[], object]) -> None:
    pending = _after_commit.get()
    if pending is None:
        raise LookupError("no change is open")
    pending.extend(steps)


def record(actor: Actor, act: AuditedAction, inner: Sequence[AuditedAction] = ()) -> int | None:
    """Save the configuration that the rows hold as a new revision. Return its number, or None if nothing changed.

    Raise `InvalidError` if the configuration is not valid.
    """
    configuration = rows.read()
    before = newest_configuration()
    found = [*check(configuration, before), *check_describers(before, configuration)]
    problems = [problem for problem in found if problem.severity == "error"]
    if problems:
        raise InvalidError(problems)
    Installation.objects.update_or_create(id=1, defaults={})
    Installation.objects.update(version=F("version") + 1)
    changes = diff(before, configuration)
    if not changes:
        return None
    bind_first_uses(actor, before, configuration)
    # Normalise the document to the form in which every database returns it, because the digest covers it.
    value = make_storable(to_json(configuration))
    revision = Revision.objects.create(
        # Do not take the number from a database sequence, which would leave a gap after each change that is rolled
        # back.
        number=(newest_number() or 0) + 1,
        actor_kind=actor.kind,
        actor=actor.name,
        message=act.message or act.action,
        changes=[asdict(change) for change in changes],
        snapshot=value,
        sha256=digest(value),
        restores=next((item.details["restores"] for item in (act, *inner) if "restores" in item.details), None),
    )
    return revision.number


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
