"""Who comes in, and under which request id: the first and the last middleware before a view."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponseBase

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
MACHINES = frozenset({"agents-api", "gateway", "probes"})
"""URL namespaces that machines call with their own keys; a browser session means nothing there."""


def request_id_of(request: HttpRequest) -> str:
    """The id of this request: the caller's `x-request-id` when it is a plain word, else one of our own."""
    known: str | None = getattr(request, "request_id", None)
    if known:
        return known
    given = request.headers.get("x-request-id", "")
    made = given if REQUEST_ID.fullmatch(given) else "req_" + secrets.token_hex(12)
    request.request_id = made  # type: ignore[attr-defined]
    return made


class RequestIdMiddleware:
    """Gives each request its id and sends it back."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The view's response with `x-request-id`."""
        made = request_id_of(request)
        response = self.get_response(request)
        response.headers.setdefault("x-request-id", made)
        return response


class PagesNeedLoginMiddleware(LoginRequiredMiddleware):
    """Every page asks for a signed-in person; what machines call checks keys by itself."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> Any:
        """None when the view may run, else the way to the login page."""
        match = request.resolver_match
        if match and MACHINES.intersection(match.namespaces):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)
