"""Prune old requests, expired artifacts and ended sessions according to the retention settings.

Rows are deleted in small transactions, so that requests do not have to wait. The next run completes an interrupted one.
The audit log and the history are never pruned.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connections, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from artifacts.models import Artifact, UploadLink
from artifacts.storage.content import byte_store
from artifacts.storage.uploads import sweep_bytes, sweep_thumbnails
from capabilities.actors import Actor, AuditedAction
from capabilities.models import Agent
from routing_admin.configuration.audit import find_head, record_head
from routing_admin.configuration.installation import read_retention_settings
from routing_admin.configuration.revisions import ledger
from routing_admin.console.alerts.actions import end_kind, prune_alerts
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.dispatch.descriptions.store import forget_content, prune_descriptions
from routing_admin.models import AttemptLog, IdempotencyRecord, KeptAnswer, RequestLog, SessionSighting, SignInAttempt
from routing_admin.models.usage import UsageRollup, UsageSum
from routing_admin.platform.auth.throttle import ADDRESS
from routing_admin.platform.databases.postgresql.partitions import drop_days
from routing_admin.platform.databases.progress import show_progress
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.platform.databases.sqlite.base import with_large_cache
from routing_admin.request_log.usage_sums import HOUR_RETENTION

BATCH, MANY = 500, 1000
"""Maximum number of rows to delete per transaction: in general, and from the request log.

Neighbouring rows of the request log share index pages, so deleting `MANY` of them takes only about 25 ms.
"""
INTERVAL_SECONDS = 0.01
"""Pause in seconds after each transaction, so that other writers can get SQLite's lock."""
USAGE_RETENTION = timedelta(days=396)
UNDO_WINDOW = timedelta(days=1)
"""How long a deleted artifact's bytes are kept, so that Undo can restore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How much pruning removed: numbers of rows, files and bytes.

    `bytes` is the size of the removed artifacts, and `forgotten` is the number of stored files that never had a row.
    """

    requests: int = 0
    artifacts: int = 0
    bytes: int = 0
    agents: int = 0
    sessions: int = 0
    leftovers: int = 0
    forgotten: int = 0
    thumbnails: int = 0


def prune(actor: Actor, now: datetime, *, request_days: float | None = None, undo: timedelta = UNDO_WINDOW) -> Pruned:
    """Remove everything whose retention period has ended, and record in the audit log how much was removed.

    `request_days` overrides the setting. A deleted artifact is removed once it has been deleted for at least `undo`.
    """
    # Remove files without a row first. On a full disk, this frees the space needed for deleting rows.
    leftovers, thumbnails = byte_store().sweep(), sweep_thumbnails()
    SignInAttempt.objects.filter(at__lt=now - ADDRESS.window).delete()
    prune_outcomes(now)
    prune_usage(now)
    prune_alerts(now)
    UploadLink.objects.filter(expires_at__lte=now).delete()
    days = read_retention_settings().request_days if request_days is None else request_days
    prune_descriptions(now - timedelta(days=days))
    requests = prune_requests(now - timedelta(days=days))
    artifacts, size = prune_artifacts(now, undo)
    agents = Agent.objects.filter(origin=Agent.Origin.RUNTIME, expires_at__lte=now - UNDO_WINDOW)
    agent_count = agents.count()
    sessions = prune_sessions(now)
    forgotten, freed = sweep_bytes(now.timestamp())
    # Remove thumbnails again: those of the artifacts that were just removed.
    thumbnails += sweep_thumbnails()
    pruned = Pruned(
        requests=requests,
        artifacts=artifacts,
        bytes=size + freed,
        agents=agent_count,
        sessions=sessions,
        leftovers=leftovers,
        forgotten=forgotten,
        thumbnails=thumbnails,
    )
    # A run is audited even if nothing was removed.
    with ledger.audit(actor, AuditedAction("installation.prune", "installation", details=asdict(pruned))):
        agents.delete()
    end_kind(AlertKind.PRUNE_OVERDUE, timezone.now())
    # The audit log's last entry is also recorded outside the database, so that entries missing at the log's end are
    # noticed.
    if (head := find_head()) is not None:
        record_head(head)
    return pruned


def prune_requests(before: datetime) -> int:
    """Remove requests that began before this time, with attempts and bodies. Return the number of requests."""
    if connections[LOGS].vendor == POSTGRESQL:
        # PostgreSQL has a partition for each day, which is dropped as a whole. Requests are therefore removed up to a
        # day late.
        return drop_days(before)
    expired = RequestLog.objects.using(LOGS).filter(started_at__lt=before)
    total = 0
    with show_progress("Requests removed", expired.count()) as counter, with_large_cache(connections[LOGS]):
        for ids in batches(expired.order_by("started_at"), MANY):
            with transaction.atomic(using=LOGS):
                for rows in (AttemptLog.objects.filter(request_id__in=ids), RequestLog.objects.filter(pk__in=ids)):
                    # Django's delete would first read all rows to find related rows, but these are already known here.
                    rows.using(LOGS)._raw_delete(LOGS)
            total += len(ids)
            counter.advance(len(ids))
            time.sleep(INTERVAL_SECONDS)
    return total


def prune_usage(now: datetime) -> None:
    """Remove usage totals that pages no longer read: hourly totals after a week, daily totals after 13 months."""
    for span, retention in ((UsageSum.HOUR, HOUR_RETENTION), (UsageSum.DAY, USAGE_RETENTION)):
        for table in (UsageRollup, UsageSum):
            table._base_manager.filter(span=span, start__lt=now - retention).delete()


def prune_outcomes(now: datetime) -> None:
    for model in (IdempotencyRecord, KeptAnswer):
        model.objects.filter(expires_at__lte=now).delete()


def prune_artifacts(now: datetime, undo: timedelta = UNDO_WINDOW) -> tuple[int, int]:
    """Remove artifacts that have expired, or were deleted at least `undo` ago. Return their number and bytes."""
    total, size = 0, 0
    past = Artifact.objects.filter(Q(expires_at__lte=now) | Q(deleted_at__lte=now - undo)).order_by("created_at")
    for ids in batches(past):
        with transaction.atomic():
            sizes = dict(Artifact.objects.filter(pk__in=ids).values_list("sha256", "size"))
            Artifact.objects.filter(pk__in=ids).delete()
        total += len(ids)
        size += sum(delete_unused_bytes(sha256, sizes[sha256]) for sha256 in sizes)
    return total, size


def delete_unused_bytes(sha256: str, size: int) -> int:
    """Delete stored bytes unless an artifact still needs them. Return the number of bytes deleted."""
    # Rows are deleted before bytes, because a row must never lack its bytes. No transaction is open here: the store may
    # be slow, and a lock would not prevent identical bytes from being stored in the meantime.
    if Artifact.objects.filter(sha256=sha256).exists():
        return 0
    forget_content(sha256)
    return size if byte_store().delete(sha256) else 0


def prune_sessions(now: datetime) -> int:
    SessionSighting.objects.filter(last_seen__lt=now - timedelta(seconds=settings.SESSION_COOKIE_AGE)).delete()
    return Session.objects.filter(expire_date__lt=now).delete()[0]


def batches(rows: QuerySet[RequestLog] | QuerySet[Artifact], limit: int = BATCH) -> Iterator[list[str]]:
    """Yield the keys of rows in batches until no rows are left. The caller must delete each batch before the next."""
    while ids := list(rows.values_list("pk", flat=True)[:limit]):
        yield ids
