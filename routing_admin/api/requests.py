"""Endpoints for agents to list their own requests and to read a single request with its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from artifacts.core.artifact import REF_PREFIX
from capabilities.access import request_principal
from capabilities.core.prices import exact_amount
from capabilities.core.storable import is_storable
from capabilities.core.translatable import decode_text
from routing_admin.api.calls import CallError, answer
from routing_admin.api.schemas import (
    CostOut,
    ListedRequestOut,
    LoggedAttemptOut,
    MoneyOut,
    RequestFileOut,
    RequestOut,
    RequestsOut,
)
from routing_admin.api.usage import read_moment
from routing_admin.configuration.agents.queries import find_agent
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.request_log.journal import journal
from routing_admin.request_log.search import LoggedRequest, find, find_logged_request, list_request_files, read_cursor
from routing_admin.request_log.search_words import STATUSES, Search, is_status
from routing_admin.request_log.sentences import logged_text

if TYPE_CHECKING:
    from routing_admin.models import AttemptLog, RequestLog

router = Router()
PAGE, MAX_PAGE = 50, 100
FIELDS = {"task": "route"}
"""Maps search fields to their query parameters if the names differ."""
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE)]


@router.get("/requests", tags=["llm"], response=RequestsOut)
def own_requests(
    request: HttpRequest,
    cursor: str = "",
    limit: PageSize = PAGE,
    since: str = "",
    until: str = "",
    status: str = "",
    route: str = "",
    model: str = "",
) -> HttpResponse:
    """List the calling agent's requests, newest first.

    `nextCursor` is the `cursor` for the next page, null on the last page. `since` and `until` are days or times (ISO
    8601). `status` is `ok`, `failed`, `refused`, `cancelled`, `error` (all but `ok`), `fallback`, a number such as 429
    or a code such as `all_providers_failed`. `route` is a task type, `model` the model of a candidate that was called.
    An invalid value is refused with a 400.
    """
    agent = request_principal(request).agent
    filters = {"since": since, "until": until, "status": status, "task": route, "model": model, "agent": agent}
    return answer(read_page(filters, cursor, limit, created_at=_created_at(agent)))


def read_page(search: Mapping[str, str], cursor: str, limit: int, created_at: datetime | None = None) -> RequestsOut:
    """Return a page of the requests that match a search, excluding those that began before `created_at`.

    Raise `CallError` 400 for an invalid value.
    """
    values = {name: value for name, value in search.items() if value}
    for name, value in values.items():
        if not is_storable(value):
            raise CallError(400, "invalid_request", f"{FIELDS.get(name, name)} contains a NUL, which no value has.")
    moments = {name: read_moment(values[name], name) for name in ("since", "until") if name in values}
    if created_at is not None:
        moments["since"] = max(created_at, moments.get("since", created_at))
    if "status" in values and not is_status(values["status"]):
        statuses = ", ".join(STATUSES)
        raise CallError(400, "invalid_request", f"status must be {statuses}, a number such as 429, or a code.")
    if cursor and read_cursor(cursor) is None:
        raise CallError(400, "invalid_request", "This cursor is not valid. Start without one.")
    # Write the log entries of finished requests first, so that they are found.
    journal().flush()
    values |= {name: moment.isoformat() for name, moment in moments.items()}
    page = find(Search(tuple(values.items())), before=cursor, size=limit)
    files = list_request_files(page.rows)
    requests = [_brief(row, files.get(row.id, [])) for row in page.rows]
    return RequestsOut(requests=requests, nextCursor=page.older or None)


def _created_at(agent: str) -> datetime | None:
    # Requests from before the agent's creation belong to a deleted agent with the same id.
    row = find_agent(agent)
    return row.created_at if row else None


def _brief(row: RequestLog, files: list[dict[str, Any]]) -> ListedRequestOut:
    return ListedRequestOut(
        **_head(row),
        attempts=len(row.chain),
        usage={"promptTokens": row.prompt_tokens, "completionTokens": row.completion_tokens},
        files=[
            RequestFileOut(
                kind=file["kind"],
                filename=file["filename"],
                mimeType=file["mimeType"],
                size=file["size"],
                ref=f"{REF_PREFIX}{file['artifactId']}" if file["artifactId"] else None,
                outcome=file["outcome"],
            )
            for file in files
        ],
    )


def _head(row: RequestLog) -> dict[str, Any]:
    return {
        "id": row.id,
        "agent": row.agent,
        "startedAt": row.started_at.isoformat(),
        "surface": row.surface,
        "model": row.asked_model,
        "taskType": row.task_type,
        "stream": row.stream,
        "outcome": row.outcome,
        "status": row.status,
        "answeredBy": {"provider": row.provider, "model": row.model} if row.provider else None,
        "durationMs": round(row.duration_ms, 1),
        "firstContentMs": row.first_content_ms,
        "cost": _cost(row.cost_nanos, row.saved_nanos, row.currency),
    }


NOT_YET = "The request log cannot be written at the moment; entries are waiting. Try again in a few seconds."


@router.get("/requests/{request_id}", tags=["llm"], response=RequestOut)
def one_request(request: HttpRequest, request_id: str) -> HttpResponse:
    """Return one of the agent's own requests with its attempts, by its `x-request-id`.

    The status is 404 for another agent's request, and 503 if its log entry may not have been written yet.
    """
    # Write the log entries of finished requests first, so that they are found.
    journal().flush()
    logged = find_logged_request(request_id)
    # The request's log entry may not have been written yet, so the status is 503 instead of 404.
    if logged is None and journal().behind_since is not None:
        raise CallError(503, UNAVAILABLE, NOT_YET)
    agent = request_principal(request).agent
    if (
        logged is None
        or logged.row.agent != agent
        or logged.row.started_at < (_created_at(agent) or logged.row.started_at)
    ):
        raise CallError(404, "request_not_found", "You have no request with this id, or its record has expired.")
    return answer(timeline(logged))


def timeline(logged: LoggedRequest) -> RequestOut:
    """Return a logged request with its attempts; times are in milliseconds from the request's start."""
    row = logged.row
    return RequestOut(
        **_head(row),
        matched=row.matched,
        language=row.language,
        error=logged_text(row) or None,
        usage={
            "promptTokens": row.prompt_tokens,
            "completionTokens": row.completion_tokens,
            **(row.token_details or {}),
        },
        answer=row.answer,
        adaptation=row.adaptation,
        revision=row.revision,
        attempts=[_attempt(attempt) for attempt in logged.attempts],
    )


def _cost(nanos: int | None, saving: int | None, currency: str) -> CostOut | None:
    # `saved` is the amount saved by the provider's prompt cache.
    if nanos is None:
        return None
    return CostOut(amount=exact_amount(nanos), currency=currency, saved=exact_amount(saving or 0))


def _attempt(row: AttemptLog) -> LoggedAttemptOut:
    return LoggedAttemptOut(
        provider=row.provider,
        model=row.model,
        outcome=row.outcome,
        statusCode=row.status,
        error=logged_text(row) or None,
        retryAttempts=row.retry_attempts,
        startedMs=round(row.started_ms, 1),
        durationMs=round(row.duration_ms, 1),
        firstContentMs=row.first_content_ms,
        tries=row.tries,
        deliveries=[{**delivery, "sentence": decode_text(delivery.get("sentence", ""))} for delivery in row.deliveries],
        droppedParams=row.dropped_params,
        usage={"promptTokens": row.prompt_tokens, "completionTokens": row.completion_tokens},
        cost=None if row.cost_nanos is None else MoneyOut(amount=exact_amount(row.cost_nanos), currency=row.currency),
    )
