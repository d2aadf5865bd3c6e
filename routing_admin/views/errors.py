"""The page for a fault of ours: says the request id, never what went wrong inside."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def server_error(request: HttpRequest) -> HttpResponse:
    """The error page with status 500."""
    return render(request, "500.html", status=500)
