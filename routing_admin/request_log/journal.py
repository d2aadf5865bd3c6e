"""The request log: written behind the answers, in batches, by a thread of its own; it never fails or delays a request.

Entries are values without content (unless recording is on): names, ids, times, outcomes. `record` only queues; the
writer is started with the server (routing_admin/asgi.py). Whoever wants to read what was just recorded flushes first.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connections, transaction

from capabilities.core.delivery.receiver import Prepared
from capabilities.core.providers.redaction import brief
from capabilities.core.wire import Usage
from capabilities.core.worded import data_of
from routing_admin.core.fallback.chain import CANCELLED, OK, Attempt
from routing_admin.databases.router import LOGS
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.server.repeating_thread import RepeatingThread

log = logging.getLogger("routing_admin.request_log.journal")

QUEUE = 10_000
"""Entries that may wait; further ones are dropped and counted."""
BATCH = 200
PAUSE_SECONDS = 0.1
ERROR_BYTES = 2048
"""The most that is kept of why something failed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One request as it is kept: the columns of its row, and those of its attempts in order."""

    request: Mapping[str, Any]
    attempts: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class Journal:
    """Entries that wait, and who writes them."""

    waiting: deque[Entry] = field(default_factory=deque)
    dropped: int = 0
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is written before `start` or `flush`."""
        self._thread = RepeatingThread("journal", PAUSE_SECONDS, self.flush, lambda: connections[LOGS].close())

    def record(self, entry: Entry) -> None:
        """Queues an entry; never waits and never raises."""
        if len(self.waiting) >= QUEUE:
            self.dropped += 1
            return
        self.waiting.append(entry)

    def flush(self) -> None:
        """Writes everything that waits, here and now; what cannot be written is told in the log and dropped."""
        with self._writing:
            while self.waiting:
                batch = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
                self._write(batch)

    def start(self) -> None:
        """Starts the writer; once per process."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the writer; what waits is written first."""
        self._thread.stop()
        self.flush()

    def _write(self, batch: Sequence[Entry]) -> None:
        try:
            write(batch)
        except Exception:  # whatever the database trips over, one entry must not take the others along
            for entry in batch:
                self._write_one(entry)

    def _write_one(self, entry: Entry) -> None:
        try:
            write((entry,))
        except Exception as error:  # the journal never fails a request; the server's log says what is missing
            self.dropped += 1
            log.error("request %s could not be logged: %s", entry.request.get("id"), type(error).__name__)


journal = Journal()
"""This process's journal."""


def write(entries: Iterable[Entry]) -> None:
    """Writes entries in one transaction; an id that is taken gets a mark of its own, so that nothing is overwritten."""
    entries = list(entries)
    with transaction.atomic(using=LOGS):
        ids = [entry.request["id"] for entry in entries]
        taken = set(RequestLog.objects.using(LOGS).filter(pk__in=ids).values_list("pk", flat=True))
        requests, attempts = [], []
        for entry in entries:
            key = entry.request["id"]
            if key in taken:
                key = f"{key[:55]}~{secrets.token_hex(4)}"
            taken.add(key)
            requests.append(RequestLog(**{**entry.request, "id": key}))
            attempts += [AttemptLog(request_id=key, **attempt) for attempt in entry.attempts]
        RequestLog.objects.using(LOGS).bulk_create(requests)
        AttemptLog.objects.using(LOGS).bulk_create(attempts)


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What is known of a request besides its walk; times in milliseconds, `began` by the wall's clock."""

    id: str
    began: datetime
    surface: str
    agent: str = ""
    key: str = ""
    asked_model: str = ""
    task_type: str = ""
    matched: bool = True
    language: str = ""
    stream: bool = False
    revision: int | None = None
    outcome: str = OK
    status: int | None = 200
    error: str = ""
    duration_ms: float = 0.0
    first_content_ms: float | None = None
    usage: Usage = field(default_factory=Usage)
    body: Mapping[str, Any] | None = None


def entry_of(
    seen: RequestFacts, attempts: Sequence[Attempt] = (), prepared: Mapping[int, Prepared] | None = None
) -> Entry:
    """The rows of a request; `prepared` says by place in the chain what each candidate was sent."""
    sent = prepared or {}
    last = attempts[-1] if attempts and attempts[-1].outcome != CANCELLED else None
    answered = last if last is not None and (seen.outcome == OK or seen.first_content_ms is not None) else None
    request = {
        "id": seen.id[:64],
        "started_at": seen.began,
        "agent": seen.agent[:120],
        "key": seen.key[:16],
        "surface": seen.surface,
        "asked_model": seen.asked_model[:300],
        "task_type": seen.task_type[:200],
        "matched": seen.matched,
        "language": seen.language[:35],
        "stream": seen.stream,
        "outcome": seen.outcome[:40],
        "status": seen.status,
        "sentence": _error_column(seen.error),
        "provider": answered.provider[:120] if answered else "",
        "model": answered.model[:200] if answered else "",
        "chain": [chip_of(attempt) for attempt in attempts],
        "fell_back": answered is not None and len(attempts) > 1,
        "duration_ms": seen.duration_ms,
        "first_content_ms": seen.first_content_ms,
        "prompt_tokens": seen.usage.prompt_tokens,
        "completion_tokens": seen.usage.completion_tokens,
        "adaptation": answered.adaptation[:200] if answered else "",
        "revision": seen.revision,
        "body": seen.body,
    }
    rows = tuple(_attempt(seen, at, attempt, sent.get(at)) for at, attempt in enumerate(attempts))
    if answered is not None and rows and seen.first_content_ms is not None:
        rows = (*rows[:-1], {**rows[-1], "first_content_ms": seen.first_content_ms - attempts[-1].started_ms})
    return Entry(request, rows)


def _attempt(seen: RequestFacts, at: int, attempt: Attempt, prepared: Prepared | None) -> dict[str, Any]:
    return {
        "position": at,
        "provider": attempt.provider[:120],
        "model": attempt.model[:200],
        "outcome": attempt.outcome[:40],
        "status": 200 if attempt.outcome == OK else attempt.status_code,
        "sentence": _error_column(attempt.error),
        "retry_attempts": attempt.retry_attempts,
        "started_ms": attempt.started_ms,
        "duration_ms": attempt.duration_ms,
        "tries": [
            {
                "startedMs": one.started_ms,
                "durationMs": one.duration_ms,
                "outcome": one.outcome,
                "status": one.status_code,
            }
            for one in attempt.tries
        ],
        "deliveries": deliveries_of(prepared) if prepared else [],
        "dropped_params": list(attempt.dropped_params),
        "at": seen.began + timedelta(milliseconds=attempt.started_ms),
    }


def _error_column(text: str | None) -> Any:
    """Why something failed, as its column keeps it; None where it did not."""
    return data_of(brief(text, limit=ERROR_BYTES)) if text else None


def deliveries_of(prepared: Prepared) -> list[dict[str, Any]]:
    """How each file of a request went to one candidate: which file, as what, and why; nothing of its content."""
    return [
        {
            "message": each.message,
            "part": each.part,
            "kind": each.file.kind.value,
            "filename": each.file.filename,
            "artifactId": each.file.artifact_id,
            "mimeType": each.file.mime_type,
            "size": each.file.size,
            "outcome": each.delivery.outcome.value,
            "shown": each.delivery.shown.value,
            "reason": each.delivery.reason.code.value,
            "sentence": data_of(each.delivery.reason.sentence()),
        }
        for each in prepared.deliveries
    ]


def chip_of(attempt: Attempt) -> dict[str, str]:
    """An attempt as the chain of a list shows it: the candidate, `429` or a word, and the colour of it."""
    name = f"{attempt.provider}/{attempt.model}" if attempt.model else attempt.provider
    if attempt.outcome == OK:
        return {"name": name, "code": "200", "tone": "ok"}
    code = str(attempt.status_code) if attempt.status_code and attempt.status_code != 200 else attempt.outcome
    quiet = attempt.outcome.startswith("skipped_") or attempt.outcome == CANCELLED
    return {"name": name, "code": code, "tone": "" if quiet else ("warn" if code == "429" else "bad")}
