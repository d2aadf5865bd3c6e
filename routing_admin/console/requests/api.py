"""Administrators' API for logged requests of all agents: a paged list, and single requests with their attempts.

Recorded bodies are never included.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from routing_admin.api.calls import answer
from routing_admin.api.requests import PAGE, PageSize, read_page, timeline
from routing_admin.api.schemas import RequestOut, RequestsOut
from routing_admin.console.base.api import TAG, require
from routing_admin.request_log.journal import journal
from routing_admin.request_log.search import find_logged_request

router = Router(tags=[TAG])


@router.get("/requests", response=RequestsOut)
def admin_list_requests(
    request: HttpRequest,
    cursor: str = "",
    limit: PageSize = PAGE,
    agent: str = "",
    since: str = "",
    until: str = "",
    status: str = "",
    route: str = "",
    model: str = "",
) -> HttpResponse:
    """List requests of all agents, or of `agent`, newest first.

    The filters are the same as for `GET /api/v1/requests`.
    """
    filters = {"since": since, "until": until, "status": status, "task": route, "model": model, "agent": agent}
    return answer(read_page(filters, cursor, limit))


@router.get("/requests/{request_id}", response=RequestOut)
def admin_get_request(request: HttpRequest, request_id: str) -> HttpResponse:
    """Return the request with this `x-request-id`, and the timeline of its attempts."""
    # A request that has just ended may not be in the log yet.
    journal().flush()
    logged = require(find_logged_request(request_id), "request", request_id)
    return answer(timeline(logged))
