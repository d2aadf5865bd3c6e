"""Error pages for 403, 500 and 503. They show the request id but no internals."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from artifacts.core.errors import StoreUnavailableError
from capabilities.core.permissions import Right, least_role
from capabilities.sentences import translate_sentence
from routing_admin.configuration import snapshot
from routing_admin.platform.auth.permissions import SAFE_METHODS
from routing_admin.platform.databases.unavailable import RETRY_SECONDS, DatabaseFault, classify_error, is_unavailable
from routing_admin.platform.server.fair_semaphore import OverloadedError
from routing_admin.platform.server.store_monitor import low_disk_space

log = logging.getLogger(__name__)

NOT_RESPONDING: tuple[Promise, Promise] = (
    gettext_lazy("The database is not responding."),
    gettext_lazy(
        "Another program has locked it, or its file cannot be read. Nothing was changed. Try again in a moment. The "
        "server log names the cause."
    ),
)
OUTAGES: Mapping[DatabaseFault | None, tuple[Promise, Promise]] = {
    DatabaseFault.READ_ONLY: (
        gettext_lazy("The database is read-only."),
        gettext_lazy(
            "Nothing was changed, and nothing can be until the server is connected to a database that takes writes. "
            "Calls that store nothing continue. The server log says what to do."
        ),
    ),
    DatabaseFault.FORBIDDEN: (
        gettext_lazy("The database denies the server a right."),
        gettext_lazy("Nothing was changed. The server log names the right that is missing."),
    ),
    DatabaseFault.OUTDATED: (
        gettext_lazy("The database is being upgraded."),
        gettext_lazy(
            "It lacks a table or column of this version. Nothing was changed. Try again in a few minutes; if this "
            "lasts, run: routing-admin bootstrap"
        ),
    ),
}
"""Maps database faults to a headline and an explanation. Any other fault uses `NOT_RESPONDING`."""


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the 403 page, which names the least privileged role that may open the page."""
    match = request.resolver_match
    right = Right.SEE if request.method in SAFE_METHODS else Right.TRY | Right.CHANGE
    needed = least_role(match.view_name if match else "", right)
    return render(request, "403.html", {"needed_role": needed}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """Render the 503 page if the database, the artifact store or an overload caused the error, else the 500 page."""
    error = sys.exc_info()[1]
    if isinstance(error, StoreUnavailableError):
        log.error("a page needs an artifact: %s", error.details)
        return _unavailable(request, {"store_details": translate_sentence(error.details)})
    if isinstance(error, OverloadedError):
        return _unavailable(request, {"overloaded": True})
    if not is_unavailable(error):
        return render(request, "500.html", BARE_FRAME, status=500)
    snapshot.look()
    request.user = AnonymousUser()  # Loading the user would query the database.
    headline, explanation = OUTAGES.get(classify_error(error), NOT_RESPONDING) if error else NOT_RESPONDING
    context = {
        "headline": headline,
        "explanation": explanation,
        "unread_since": snapshot.unread_since(),
        "disk_space": low_disk_space(),
    }
    return _unavailable(request, context)


BARE_FRAME = {"error_frame": "includes/gate.html"}
"""Context of the 500 and 503 pages. They omit the navigation, because rendering it could fail again."""


def _unavailable(request: HttpRequest, context: Mapping[str, object]) -> HttpResponse:
    response = render(request, "503.html", {**context, **BARE_FRAME}, status=503)
    response.headers["Retry-After"] = str(round(RETRY_SECONDS))
    return response
