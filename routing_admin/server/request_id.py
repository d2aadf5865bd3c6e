"""Under which id a request comes in: the first middleware."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from routing_admin.server import logs
from routing_admin.server.ids import new_id

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id_of(request: HttpRequest) -> str:
    """The id of this request: the caller's `x-request-id` when it is a plain word, else one of our own."""
    known: str | None = getattr(request, "request_id", None)
    if known:
        return known
    made = make_request_id(request.headers.get("x-request-id", ""))
    request.request_id = made  # type: ignore[attr-defined]
    return made


def make_request_id(word: str) -> str:
    """The id that a caller gave when it is a plain word, else one of our own."""
    return word if REQUEST_ID.fullmatch(word) else new_id("req_")


class RequestIdMiddleware:
    """Gives each request its id and sends it back."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The view's response with `x-request-id`."""
        made = request_id_of(request)
        logs.request_id.set(made)
        response = self.get_response(request)
        response.headers.setdefault("x-request-id", made)
        return response
