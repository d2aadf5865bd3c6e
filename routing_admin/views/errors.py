"""The pages for what is no fault of the visitor's: they say the request id, never what went wrong inside."""

from __future__ import annotations

import sys

from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from routing_admin.configuration import snapshot

AGAIN_SECONDS = 2


def server_error(request: HttpRequest) -> HttpResponse:
    """The error page: 503 where the database does not answer, with since when, else 500."""
    if not isinstance(sys.exc_info()[1], DatabaseError | InterfaceError):
        return render(request, "500.html", status=500)
    snapshot.look()
    request.user = AnonymousUser()  # who is signed in stands in the database, too
    response = render(request, "503.html", {"unread_since": snapshot.unread_since()}, status=503)
    response.headers["Retry-After"] = str(AGAIN_SECONDS)
    return response
