"""From a request's course to its entry in the journal, whoever sent it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.utils import timezone

from capabilities.core.redact import redact
from routing_admin.core.chain import Attempt
from routing_admin.dispatch import Dispatch
from routing_admin.job import Job
from routing_admin.journal import Journal, Seen, entry_of
from routing_admin.journal import journal as this_process

LEFT = "client_cancelled"
LEFT_STATUS = 499
"""What the log says of a caller that went away before its answer; nobody receives this status."""


class Telling:
    """One request as it will stand in the log; `end` tells it, once."""

    def __init__(self, request_id: str, surface: str, journal: Journal = this_process) -> None:
        self._seen = Seen(request_id, timezone.now(), surface)
        self._began = time.monotonic()
        self._journal = journal
        self._told = False

    def knows(self, **facts: Any) -> None:
        """Further facts, by the names of `Seen`."""
        self._seen = replace(self._seen, **facts)

    def job(self, job: Job, task_type: str) -> None:
        """What was decided about it."""
        self.knows(
            task_type=task_type,
            matched=job.plan.matched,
            language=job.plan.language,
            stream=job.stream,
            revision=job.state.revision,
        )

    def first_content(self) -> None:
        """The first content is there, now."""
        self.knows(first_content_ms=self.elapsed_ms())

    def elapsed_ms(self) -> float:
        """Milliseconds since the request came in."""
        return (time.monotonic() - self._began) * 1000

    def end(self, attempts: Sequence[Attempt] = (), dispatch: Dispatch | None = None, **facts: Any) -> None:
        """Queues the entry; the first end is the one that counts."""
        if self._told:
            return
        self._told = True
        facts = {**facts, "error": redact(facts.get("error", ""))}
        self.knows(duration_ms=self.elapsed_ms(), **facts)
        self._journal.record(entry_of(self._seen, attempts, dispatch.prepared if dispatch else None))
