"""Sending for real from a page: one request along a stored or drafted route, logged like every other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capabilities.core.message import ChatRequest
from capabilities.core.receiver import Prepared
from capabilities.core.wire import Answer
from routing_admin.core.chain import Attempt
from routing_admin.core.configuration import RouteSpec
from routing_admin.core.errors import RouterError
from routing_admin.dispatch import Dispatch
from routing_admin.job import Job, job_for
from routing_admin.snapshot import Snapshot
from routing_admin.telling import Telling
from routing_admin.way import Outside, Way


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of it: an answer or an error, every attempt, and what each candidate was sent (by place)."""

    job: Job
    request_id: str
    attempts: tuple[Attempt, ...]
    prepared: Mapping[int, Prepared]
    answer: Answer | None = None
    error: RouterError | None = None


def send_for_real(
    state: Snapshot,
    route: RouteSpec,
    chat: ChatRequest,
    request_id: str,
    *,
    language: str | None = None,
    way: Way | None = None,
) -> Sent:
    """Sends a request that a person wrote; waits for the answer. The log has it under `request_id`."""
    telling = Telling(request_id, "page")
    telling.knows(asked_model=f"task:{route.task_type}")
    job = job_for(state, route, chat, language=language)
    telling.job(job, route.task_type)
    dispatch = Dispatch(job, way or Outside())
    try:
        done = dispatch.answer_sync()
    except RouterError as error:
        telling.end(error.attempts, dispatch, outcome=error.code, status=error.status, error=error.message)
        return Sent(job, request_id, error.attempts, dispatch.prepared, error=error)
    telling.end(done.attempts, dispatch, usage=done.answer.usage)
    return Sent(job, request_id, done.attempts, dispatch.prepared, answer=done.answer)
