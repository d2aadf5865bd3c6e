"""The requests of all agents, or of one: a page of them, and one with its attempts; never recorded words."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from routing_admin.api.calls import answer
from routing_admin.api.requests import PAGE, PageSize, page_of, timeline
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
    """Requests, newest first, as `GET /api/v1/requests` gives an agent its own: of all agents, or of `agent`."""
    said = {"since": since, "until": until, "status": status, "task": route, "model": model, "agent": agent}
    return answer(page_of(said, cursor, limit))


@router.get("/requests/{request_id}", response=RequestOut)
def admin_get_request(request: HttpRequest, request_id: str) -> HttpResponse:
    """The attempt timeline of any request, by its `x-request-id`."""
    journal().flush()
    found = require(find_logged_request(request_id), "request", request_id)
    return answer(timeline(found))
