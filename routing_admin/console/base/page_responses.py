"""Responses of pages: htmx fragments, toasts, form errors from actions, and security headers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.messages import get_messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from capabilities.core.permissions import MACHINE_NAMESPACES
from capabilities.errors import ActionError, ConflictError, InvalidError
from capabilities.sentences import translate_refusal, translate_sentence
from routing_admin.console.base.lists import SIZE, find_size
from routing_admin.console.base.tags.toasts import build_toast
from routing_admin.platform.auth.permissions import SAFE_METHODS

HEADERS = {
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Security headers that Django does not set. The content security policy is set elsewhere."""
KEY_HEADERS = ("Authorization", "x-api-key", "api-key", "x-goog-api-key", "x-agent-id")
"""Request headers that responses to API clients depend on, for the Vary header."""


class HtmxPagesMiddleware(MiddlewareMixin):
    """Sets cache and security headers, redirects htmx requests of anonymous users, and sends messages as toasts.

    It must follow the session and message middleware and precede the middleware that requires a login.
    """

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if request.method in SAFE_METHODS or not isinstance(exception, ActionError) or _is_for_machines(request):
            return None
        # An exception that no view handles, for example after a race, becomes a toast on the page that sent the
        # request.
        messages.error(request, translate_refusal(exception))
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(status=204, headers={"HX-Refresh": "true"})
        came_from = request.headers.get("Referer", "")
        # The Referer header cannot be trusted, so it must not redirect to another site.
        is_local = url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure())
        return HttpResponseRedirect(came_from if is_local else "/")

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if _is_for_machines(request):
            # Responses to API clients only need headers that prevent shared caching.
            response.headers.setdefault("Cache-Control", "private, no-store")
            patch_vary_headers(response, KEY_HEADERS)
            return response
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        patch_vary_headers(response, ("HX-Request",))
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Cache-Control", "no-store, private")
        remember_size(request, response)
        return _adapt_to_htmx(request, response) if request.headers.get("HX-Request") == "true" else response


def remember_size(request: HttpRequest, response: HttpResponseBase) -> None:
    """If the query string sets the number of rows per page, store it in a cookie."""
    if size := find_size(request.GET):
        secure = settings.SESSION_COOKIE_SECURE
        response.set_cookie(SIZE, str(size), max_age=365 * 86400, samesite="Lax", secure=secure, httponly=True)


def _is_for_machines(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and bool(MACHINE_NAMESPACES.intersection(match.namespaces))


def _adapt_to_htmx(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if _leads_to_login(response):
        return _redirect_to_login(request)
    if not 300 <= response.status_code < 400 and "HX-Refresh" not in response.headers:
        _send_toasts(request, response)
    return response


def _leads_to_login(response: HttpResponseBase) -> bool:
    location = response.headers.get("Location", "")
    return response.status_code in (301, 302, 303) and urlsplit(location).path == resolve_url(settings.LOGIN_URL)


def _redirect_to_login(request: HttpRequest) -> HttpResponse:
    current = urlsplit(request.headers.get("HX-Current-URL", ""))
    query = QueryDict(mutable=True)
    if current.path:
        query["next"] = current.path + (f"?{current.query}" if current.query else "")
    # After a redirect with status 302, htmx would insert the sign-in page into the current page. Status 204 with
    # HX-Redirect opens the sign-in page, and its `next` parameter leads back here.
    answer = HttpResponse(status=204)
    answer.headers["HX-Redirect"] = f"{resolve_url(settings.LOGIN_URL)}?{query.urlencode(safe='/')}".rstrip("?")
    patch_vary_headers(answer, ("HX-Request",))
    return answer


def _send_toasts(request: HttpRequest, response: HttpResponseBase) -> None:
    stored: Any = get_messages(request)
    # A POST sends only the messages that it added itself. Stored messages may be those of a concurrent POST, for
    # example of saving a route during a simulation, and belong to the page to which that one redirects.
    items = [build_toast(message) for message in (stored.take_new() if request.method == "POST" else stored)]
    if items:
        events = _events(response.headers.get("HX-Trigger", ""))
        # HTTP headers must be ASCII; `json.dumps` escapes all other characters.
        response.headers["HX-Trigger"] = json.dumps(events | {"toast": {"items": items}})


def _events(header: str) -> dict[str, Any]:
    if header.startswith("{"):
        events: dict[str, Any] = json.loads(header)
        return events
    return {name.strip(): None for name in header.split(",") if name.strip()}


@dataclass(frozen=True, slots=True)
class BulkChange:
    """The number of changed rows, and the number of the new revision, or None if nothing changed."""

    count: int
    revision: int | None = None


UNPROCESSABLE = 422
R = TypeVar("R")


def require_found(row: R | None) -> R:
    """Return the row, or raise `Http404` if it is None."""
    if row is None:
        raise Http404
    return row


def wants_fragment(request: HttpRequest) -> bool:
    """Return whether htmx requests a fragment. For a boosted link, htmx requests the whole page."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.boosted


def add_toast(request: HttpRequest, text: str, revision: int | None = None, *, can_redo: bool = False) -> None:
    """Add a toast, with an Undo button if there is a revision. With `can_redo`, the button says Redo."""
    tags = ["redo"] * can_redo + [f"undo:{revision}"] if revision else []
    messages.success(request, text, extra_tags=" ".join(tags))


def add_refusal_toast(request: HttpRequest, refusal: ActionError) -> None:
    messages.error(request, translate_refusal(refusal))


def add_refusal(form: forms.BaseForm, refusal: ActionError, places: Mapping[str, str] | None = None) -> int:
    """Add an error's problems to the fields that they concern, or to the whole form. Return the HTTP status."""
    if isinstance(refusal, InvalidError):
        for problem in refusal.problems:
            name = (places or {}).get(problem.field, problem.field)
            form.add_error(name if name in form.fields else None, translate_sentence(problem.message))
        return UNPROCESSABLE
    # A conflict is not shown as an error, because the page shows both versions.
    if not isinstance(refusal, ConflictError):
        form.add_error(None, translate_refusal(refusal))
    return refusal.status


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that another user has changed: its label, the stored value, and the value in this user's form."""

    label: str
    theirs: str
    mine: str


def find_differences(form: forms.BaseForm, current: Model) -> list[Difference]:
    found = []
    for name in form.fields:
        if not hasattr(current, name) or name == "version":
            continue
        theirs, mine = getattr(current, name), form.cleaned_data.get(name)
        if str(theirs or "") != str(mine or ""):
            found.append(Difference(str(form.fields[name].label), render_value(theirs), render_value(mine)))
    return found


def render_value(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return str(value) if value not in (None, "") else _("nothing")


def renew_version(form: forms.BaseForm, version: int) -> None:
    """Set the version in the form to the current one, so that saving again overwrites that version."""
    data = QueryDict("", mutable=True)
    data.update(form.data)
    data["version"] = str(version)
    form.data = data
