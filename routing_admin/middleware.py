"""What every page answer gets: an id, htmx manners, a login in front, and the headers nobody else sets."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.messages import get_messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from capabilities.templatetags.toasts import toast_of

HEADERS = {
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Security headers beyond Django's and the content security policy's."""

MACHINES = re.compile(r"^/(api|v1|mcp|healthz|readyz|metrics|static|badge)(/|$|\.)")
"""Paths of programs: a session means nothing there, and their own planes authenticate (CONTRACT §3)."""

OPEN_PAGES = frozenset({"login", "logout", "set_language", "set_theme"})
"""URL names that anybody may open."""


def new_request_id() -> str:
    """A fresh `req_…`: 80 random bits, enough to find one answer in the log."""
    return "req_" + secrets.token_hex(10)


class RequestIdMiddleware(MiddlewareMixin):
    """Gives every request `request_id`, every answer `x-request-id` and the headers of HEADERS."""

    def process_request(self, request: HttpRequest) -> None:
        """Names the request before anything can fail."""
        request.request_id = new_request_id()  # type: ignore[attr-defined]

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Returns the answer with its id; a header that a view has set stands."""
        response.headers.setdefault("x-request-id", getattr(request, "request_id", ""))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


class HtmxPagesMiddleware(MiddlewareMixin):
    """Fragments beside pages: caches keep them apart, a lost session leads to sign-in, messages become toasts."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Returns the answer fit for htmx; answers of programs pass untouched."""
        if MACHINES.match(request.path):
            return response
        patch_vary_headers(response, ("HX-Request",))
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Cache-Control", "no-store, private")
        if request.headers.get("HX-Request") != "true":
            return response
        if _leads_to_login(response):
            return _to_login(request)
        if response.status_code < 300 or response.status_code >= 400:
            _send_toasts(request, response)
        return response


class PagesNeedLoginMiddleware(LoginRequiredMiddleware):
    """Every page needs a session, except the open ones; programs' paths have their own keys."""

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., Any],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        """Returns the redirect to the login page, or None where the view may answer."""
        match = request.resolver_match
        if MACHINES.match(request.path) or (match is not None and match.url_name in OPEN_PAGES):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)


def _leads_to_login(response: HttpResponseBase) -> bool:
    location = response.headers.get("Location", "")
    return response.status_code in (301, 302, 303) and urlsplit(location).path == resolve_url(settings.LOGIN_URL)


def _to_login(request: HttpRequest) -> HttpResponse:
    """A 302 would be swapped into a table cell; 204 with HX-Redirect moves the page, and back after signing in."""
    current = urlsplit(request.headers.get("HX-Current-URL", ""))
    query = QueryDict(mutable=True)
    if current.path:
        query["next"] = current.path + (f"?{current.query}" if current.query else "")
    answer = HttpResponse(status=204)
    answer.headers["HX-Redirect"] = f"{resolve_url(settings.LOGIN_URL)}?{query.urlencode(safe='/')}".rstrip("?")
    patch_vary_headers(answer, ("HX-Request",))
    return answer


def _send_toasts(request: HttpRequest, response: HttpResponseBase) -> None:
    """Moves waiting messages into the HX-Trigger header; ASCII, since JSON escapes the rest."""
    items = [toast_of(message) for message in get_messages(request)]
    if items:
        events = _events(response.headers.get("HX-Trigger", ""))
        response.headers["HX-Trigger"] = json.dumps(events | {"toast": {"items": items}})


def _events(header: str) -> dict[str, Any]:
    if header.startswith("{"):
        events: dict[str, Any] = json.loads(header)
        return events
    return {name.strip(): None for name in header.split(",") if name.strip()}
