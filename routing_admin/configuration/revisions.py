"""The ledger: every change is one transaction with one revision and its audit event, or nothing at all.

`change` may be nested; the outermost reads the whole configuration back from the rows, checks it, and compares it with
the revision before. After the commit the new snapshot is taken up and published.
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

from capabilities.acts import Actor, AuditedAction
from capabilities.core.storable import settle
from capabilities.errors import ConflictError, InvalidError, TakenError
from routing_admin.configuration import publishing, rows, snapshot
from routing_admin.configuration.audit import was_noted
from routing_admin.configuration.audit import write_event as write_event  # the name that actions use
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

MAKING = (".add", ".put")
"""How acts end that make something with a name of its own."""
UNIQUE, UNIQUE_STATE = "UNIQUE constraint failed", "23505"
"""How SQLite and PostgreSQL say that a name is taken."""
GONE, FOREIGN, FOREIGN_STATE = "did not affect any rows", "FOREIGN KEY constraint failed", "23503"
"""How Django, SQLite and PostgreSQL say that a row, or what it refers to, was deleted."""
READING = timedelta(minutes=10)
"""How long one line stands for every look that a person takes at a thing."""
IN_SNAPSHOT = frozenset({"agent", "installation"})
"""Kinds of things that the snapshot holds although not all are in the configuration: run-time agents, recording."""

FRESH_START = "provider.try_again"
"""The act after which every process tries providers again that it left alone; they stand in its details."""
DRILL_START, DRILL_STOP, DRILL_END = "provider.drill", "provider.drill_stop", "provider.drill_end"
"""A fire drill is begun, ended by somebody before its time, and over."""
KEY_ORIGIN = "provider.key_origin"
"""The key in a variable may be sent to another origin."""
IS_NEWS = frozenset({FRESH_START, DRILL_START, DRILL_STOP, DRILL_END, KEY_ORIGIN})
"""Acts that other processes have to hear of although the configuration stays as it is."""

_open: ContextVar[list[AuditedAction] | None] = ContextVar("open_change", default=None)
_after_commit: ContextVar[list[Callable[[], object]] | None] = ContextVar("after_commit", default=None)


@contextmanager
def _refuse_taken_names(act: AuditedAction) -> Iterator[None]:
    """Raise `TakenError` for a name that another process took between our look and our writing."""
    try:
        yield
    except IntegrityError as error:
        if not (_is_violation(error, UNIQUE, UNIQUE_STATE) and act.action.endswith(MAKING)):
            raise
        message = _("Someone else just added %(name)s. Reload the page, or choose another name.")
        raise TakenError(message % {"name": act.object_name}) from error


@contextmanager
def _refuse_gone_rows() -> Iterator[None]:
    """Raise `ConflictError` where a row that was read before the transaction, or what it refers to, was deleted."""
    try:
        yield
    except DatabaseError as error:
        if GONE not in str(error) and not _is_violation(error, FOREIGN, FOREIGN_STATE):
            raise
        message = _("Someone else changed this in the meantime. Check the new version, then save again.")
        raise ConflictError(message) from error


def _is_violation(error: DatabaseError, words: str, state: str) -> bool:
    return words in str(error) or getattr(error.__cause__, "sqlstate", "") == state


class RevisionRecorder:
    """Record changes of the configuration and acts that leave it as it is."""

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """One transaction that no other change overlaps: what is read in it still holds when it writes.

        Changes in it are announced to this process, the others and the published files after its commit.
        """
        if _after_commit.get() is not None:
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
        """Record one revision and the audit event for everything done inside; join a change that is open already.

        Raises `InvalidError` and rolls back when the configuration would be invalid.
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
        """An act that leaves the configuration as it is, e.g. issuing a key."""
        with self.exclusive(), _refuse_taken_names(act):
            yield act
            if act.object_kind in IN_SNAPSHOT or act.action in IS_NEWS:
                Installation.objects.update(version=F("version") + 1)
                _announce(snapshot.refresh, notify_change)
            write_event(actor, act)

    def note_reading(self, actor: Actor, act: AuditedAction) -> None:
        """Write to the audit log that someone looked at something, at most once in ten minutes."""
        if not was_noted(actor, act, READING):
            write_event(actor, act)


ledger = RevisionRecorder()
"""This installation's."""


def _finish(step: Callable[[], object]) -> None:
    """What follows a commit: its failure is logged, for the change holds, and the next reader reads the rows."""
    try:
        step()
    except Exception as error:
        problem = explain_failure(error) or f"{type(error).__name__}: {error}"
        log.error("a change was committed, but %s failed afterwards: %s", step.__qualname__, problem)


def _announce(*steps: Callable[[], object]) -> None:
    """Have these done once the transaction is committed."""
    pending = _after_commit.get()
    if pending is None:
        raise LookupError("no change is open")
    pending.extend(steps)


def record(actor: Actor, act: AuditedAction, inner: Sequence[AuditedAction] = ()) -> int | None:
    """Writes the revision of the rows as they are now; None when nothing changed. Raises `InvalidError`."""
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
    value = settle(to_json(configuration))  # as every database gives it back, so that its digest holds there, too
    revision = Revision.objects.create(
        number=(newest_number() or 0) + 1,  # not a sequence's, which leaves a gap for every change that was refused
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
    """SHA-256 of a JSON value in its one canonical form."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
