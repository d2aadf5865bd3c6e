"""Collect facts about a request until the request ends, and then pass one log entry to the journal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from artifacts.core.errors import StoreUnavailableError
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.core.message import ChatRequest
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer
from routing_admin.core.fallback.chain import Attempt, Plan
from routing_admin.core.fallback.endings import BROKEN, UNAVAILABLE
from routing_admin.platform.databases.unavailable import explain, is_unavailable
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.journal import Journal
from routing_admin.request_log.journal import journal as this_process
from routing_admin.request_log.recorded_bodies import record_body

TRACE_HEADERS = ("traceparent", "tracestate")
ABANDONED_STATUS = 499
"""Status that is logged, but never sent, if the caller disconnects before the answer."""


class RequestRecorder:
    """Collects the facts about one request; `end` writes the log entry exactly once."""

    __slots__ = ("_began", "_chat", "_ended", "_facts", "_journal", "_words")

    def __init__(self, request_id: str, surface: str, journal: Journal | None = None) -> None:
        self._facts = RequestFacts(request_id, datetime.now(UTC), surface)
        self._began = time.monotonic()
        self._journal = journal or this_process()
        self._ended = False
        self._words: ChatRequest | None = None
        self._chat: ChatRequest | None = None

    def beside(self, request_id: str, surface: str) -> RequestRecorder:
        """Return a recorder for another request on behalf of this one, with the same agent, key and labels."""
        recorder = RequestRecorder(request_id, surface, self._journal)
        recorder.add_facts(agent=self._facts.agent, key=self._facts.key, labels=self._facts.labels)
        return recorder

    def add_facts(self, **facts: Any) -> None:
        # Once the request has ended, the facts belong to the queued log entry and must not change.
        if not self._ended:
            self._set(facts)

    def add_plan(
        self,
        plan: Plan,
        *,
        task_type: str,
        stream: bool,
        revision: int | None,
        words: ChatRequest | None,
        chat: ChatRequest | None = None,
    ) -> None:
        """Add the request's plan.

        `words` is the request if its text is recorded, `chat` the request if digests of the conversation are recorded.
        """
        self._words, self._chat = words, chat
        self.add_facts(
            task_type=task_type, matched=plan.matched, language=plan.language, stream=stream, revision=revision
        )

    def add_trace(self, path: str, headers: Mapping[str, str]) -> None:
        """Add the path and the caller's trace headers, which exported traces contain."""
        trace = {name: headers[name] for name in TRACE_HEADERS if name in headers}
        self.add_facts(path=path, trace=trace)

    def mark_first_content(self) -> None:
        self.add_facts(first_content_ms=self.elapsed_ms())

    def mark_early_begin(self) -> None:
        """Record that the response has started before any content, so that its status is 200 whatever follows."""
        self.add_facts(begun_ms=self.elapsed_ms())

    def elapsed_ms(self) -> float:
        return (time.monotonic() - self._began) * 1000

    def end(
        self,
        attempts: Sequence[Attempt] = (),
        prepared: Mapping[int, Prepared] | None = None,
        answer: Answer | None = None,
        **facts: Any,
    ) -> None:
        """Queue the log entry; only the first call has an effect.

        `prepared` maps each candidate's position to what was sent to it.
        """
        if self._ended:
            return
        self._ended = True
        if self._words is not None:
            facts["body"] = record_body(self._words, answer)
        self._facts.duration_ms = self.elapsed_ms()
        self._set(facts)
        # If the response has started, its status has already been sent.
        if self._facts.begun_ms is not None and self._facts.status != ABANDONED_STATUS:
            self._facts.status = 200
        self._journal.record(build_entry(self._facts, attempts, prepared, self._chat))

    def _set(self, facts: Mapping[str, Any]) -> None:
        for name, value in facts.items():
            setattr(self._facts, name, value)


def failure_facts(error: Exception) -> dict[str, Any]:
    """Return the facts about a request that ended with an internal error.

    The status is 503 if the database or the artifact store is unavailable, and 500 otherwise.
    """
    if is_unavailable(error):
        return {"outcome": UNAVAILABLE, "status": 503, "error": explain(error)}
    if isinstance(error, StoreUnavailableError):
        return {"outcome": UNAVAILABLE, "status": 503, "error": str(error)}
    sentence = translatable(
        "Something went wrong on our side (%(kind)s). The server log has the details under this request id.",
        kind=type(error).__name__,
    )
    return {"outcome": BROKEN, "status": 500, "error": sentence}
