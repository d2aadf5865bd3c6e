"""From a request's course to its entry in the journal, whoever sent it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from capabilities.core.providers.redaction import redact
from capabilities.core.wire import Answer
from routing_admin.core.fallback.chain import Attempt, Done
from routing_admin.core.fallback.errors import RouterError
from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.dispatch.send import Dispatch
from routing_admin.request_log.journal import Journal, RequestFacts, entry_of
from routing_admin.request_log.journal import journal as this_process
from routing_admin.request_log.recorded_bodies import body_of
from routing_admin.server.draining import DrainingError, draining
from routing_admin.upstream import Stream, run_sync

T = TypeVar("T")

BROKEN = "internal_error"
UNAVAILABLE = "unavailable"
"""What a call is told that needs a database which does not answer."""
LEFT = "client_cancelled"
LEFT_STATUS = 499
"""What the log says of a caller that went away before its answer; nobody receives this status."""


class RequestRecorder:
    """One request as it will stand in the log; `end` tells it, once."""

    def __init__(self, request_id: str, surface: str, journal: Journal = this_process) -> None:
        self._seen = RequestFacts(request_id, timezone.now(), surface)
        self._began = time.monotonic()
        self._journal = journal
        self._told = False
        self._job: PlannedRequest | None = None

    def knows(self, **facts: Any) -> None:
        """Further facts, by the names of `RequestFacts`."""
        self._seen = replace(self._seen, **facts)

    def job(self, job: PlannedRequest, task_type: str) -> None:
        """What was decided about it."""
        self._job = job
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

    def end(
        self,
        attempts: Sequence[Attempt] = (),
        dispatch: Dispatch | None = None,
        answer: Answer | None = None,
        **facts: Any,
    ) -> None:
        """Queues the entry; the first end is the one that counts. The words go in only where they are recorded."""
        if self._told:
            return
        self._told = True
        facts = {**facts, "error": redact(facts.get("error", ""))}
        if self._job is not None and self._job.state.record_bodies:
            facts["body"] = body_of(self._job.chat, answer)
        self.knows(duration_ms=self.elapsed_ms(), **facts)
        self._journal.record(entry_of(self._seen, attempts, dispatch.prepared if dispatch else None))


async def record_answer(dispatch: Dispatch, recorder: RequestRecorder) -> Done[Answer]:
    """The whole answer, and the log knows how it was had. Raises `RouterError` with every attempt; told too."""
    done = await _recorded(dispatch.answer(), dispatch, recorder)
    recorder.end(done.attempts, dispatch, done.answer, usage=done.answer.usage)
    return done


async def record_stream(dispatch: Dispatch, recorder: RequestRecorder) -> Done[Stream]:
    """The stream at its first content; its end is the caller's to tell. Raises `RouterError`, which is told."""
    done = await _recorded(dispatch.open(), dispatch, recorder)
    recorder.first_content()
    return done


def record_answer_sync(dispatch: Dispatch, recorder: RequestRecorder) -> Done[Answer]:
    """`record_answer` for a thread without an event loop."""
    return run_sync(record_answer(dispatch, recorder))


async def _recorded(work: Awaitable[T], dispatch: Dispatch, recorder: RequestRecorder) -> T:
    """What a walk gives; when it gives nothing, the log says why: all failed, the caller left, or a fault of ours."""
    try:
        async with draining.limit():
            return await work
    except RouterError as error:
        recorder.end(error.attempts, dispatch, outcome=error.code, status=error.status, error=error.message)
        raise
    except DrainingError as error:
        recorder.end(dispatch.attempts, dispatch, outcome=error.code, status=error.status, error=error.message)
        raise
    except asyncio.CancelledError:
        recorder.end(dispatch.attempts, dispatch, outcome=LEFT, status=LEFT_STATUS)
        raise
    except Exception as error:
        recorder.end(dispatch.attempts, dispatch, **fault_of(error))
        raise


def fault_of(error: Exception) -> dict[str, Any]:
    """A fault of ours as the log tells it: 503 where the database does not answer, else 500."""
    away = isinstance(error, DatabaseError | InterfaceError)
    outcome, status = (UNAVAILABLE, 503) if away else (BROKEN, 500)
    return {"outcome": outcome, "status": status, "error": type(error).__name__}
