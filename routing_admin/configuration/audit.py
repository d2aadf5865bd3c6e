"""Append to the audit log within an action's transaction, and verify the log's hash chain.

Each writer waits until the previous writer has committed, so entry numbers have no gaps and each entry contains the
hash of the one before it. SQLite always serialises writers. PostgreSQL needs an advisory lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from capabilities.actors import Actor, AuditedAction
from capabilities.core.storable import storable_text, write_json
from routing_admin.core.audit import START, AuditEntry, AuditHead, AuditVerdict, digest_entry, verify_chain
from routing_admin.models import AuditEvent
from routing_admin.platform.databases.append_only import missing_triggers
from routing_admin.platform.databases.router import one_moment

QUEUE = 0x617564
"""Key of the PostgreSQL advisory lock that a process holds while it appends an audit entry."""
NOTED = "audit_heads"
"""File in the data directory to which heads of the hash chain are written, one per line. It reveals whether entries
were removed from the end of the log.
"""


def write_event(actor: Actor, act: AuditedAction) -> None:
    with transaction.atomic(savepoint=False):
        last = _last_in_queue()
        now = timezone.now()
        row = AuditEvent(
            number=last.number + 1,
            previous=last.sha256,
            created_at=now,
            actor_kind=actor.kind,
            actor=storable_text(actor.name[:150]),
            address=actor.address[:64],
            request_id=storable_text(actor.request_id[:64]),
            action=act.action,
            object_kind=act.object_kind,
            object_name=storable_text(act.object_name[:300]),
            # The hash covers the details, so they are first normalised to the form in which every database returns
            # them.
            details=json.loads(write_json(act.details)),
            revision=act.revision,
        )
        row.sha256 = digest_entry(build_audit_entry(row))
        row.save(force_insert=True)


def _last_in_queue() -> AuditHead:
    if connection.vendor == "postgresql":
        # The lock is held until this transaction ends, so no other writer can append in the meantime.
        connection.cursor().execute("SELECT pg_advisory_xact_lock(%s)", [QUEUE])
    return find_head() or AuditHead(0, START)


def find_head() -> AuditHead | None:
    found = AuditEvent.objects.order_by("-number").values_list("number", "sha256").first()
    return AuditHead(*found) if found else None


RUNS = 20
"""Maximum number of audit entries that `list_runs` reads."""


def list_runs(action: str) -> list[datetime]:
    """Return the times at which an action was performed, newest first."""
    events = AuditEvent.objects.filter(action=action).order_by("-number")[:RUNS]
    # An entry whose details name a folder records the automatic copy before a migration, which is not a backup run.
    return [event.created_at for event in events if "folder" not in event.details]


def list_details_since(action: str, number: int) -> list[Mapping[str, Any]]:
    events = AuditEvent.objects.filter(action=action, number__gt=number).order_by("number")
    return list(events.values_list("details", flat=True))


def was_recorded(actor: Actor, act: AuditedAction, within: timedelta) -> bool:
    """Return whether, according to the log, the actor did the same thing to the same object less than `within` ago."""
    since = timezone.now() - within
    events = AuditEvent.objects.filter(created_at__gt=since, actor_kind=actor.kind, actor=actor.name)
    return events.filter(action=act.action, object_kind=act.object_kind, object_name=act.object_name).exists()


def build_audit_entry(row: AuditEvent) -> AuditEntry:
    return AuditEntry(
        number=row.number,
        at=row.created_at.astimezone(UTC).isoformat(timespec="microseconds"),
        actor_kind=row.actor_kind,
        actor=row.actor,
        address=row.address,
        request_id=row.request_id,
        action=row.action,
        object_kind=row.object_kind,
        object_name=row.object_name,
        details=row.details,
        revision=row.revision,
        previous=row.previous,
        sha256=row.sha256,
    )


def verify_audit(heads: Iterable[AuditHead] = ()) -> AuditVerdict:
    """Verify the audit log's hash chain, and that the triggers that forbid changes to the log exist.

    The chain must contain the given heads and the heads recorded in the data directory. A head is the number and hash
    of an entry that was once the newest.
    """
    with one_moment():
        rows = AuditEvent.objects.order_by("number").iterator(chunk_size=1000)
        verdict = verify_chain(map(build_audit_entry, rows), [*list_recorded_heads(), *heads])
    open_to = [f"The database no longer refuses changes: its trigger {name} is gone." for name in missing_triggers()]
    return AuditVerdict(verdict.count, verdict.head, (*verdict.problems, *open_to))


def list_recorded_heads() -> Iterator[AuditHead]:
    path = _noted_path()
    for line in path.read_text().splitlines() if path.exists() else ():
        if (head := read_head(line)) is not None:
            yield head


def read_head(text: str) -> AuditHead | None:
    """Parse `NUMBER:HASH`, or return None."""
    number, _, sha256 = text.strip().partition(":")
    if not number.isdecimal() or len(sha256) != len(START):
        return None
    return AuditHead(int(number), sha256)


def record_head(head: AuditHead) -> None:
    if head in set(list_recorded_heads()):
        return
    with open(os.open(_noted_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
        file.write(f"{head}\n")


def _noted_path() -> Path:
    return Path(settings.DATA_DIR) / NOTED
