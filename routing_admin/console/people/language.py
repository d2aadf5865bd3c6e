"""The language of the pages, which is stored in a cookie and in the user's row."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.i18n import set_language as in_this_browser

from routing_admin.console.people import actions as people

YEAR = 365 * 86_400


def set_language(request: HttpRequest) -> HttpResponseBase:
    """Set the language of the pages and return to the previous page.

    For a signed-in user, it is also stored in the user's row, so that the user's other browsers use it too.
    """
    response = in_this_browser(request)
    if request.method == "POST" and isinstance(request.user, User):
        people.choose_language(request.user, request.POST.get("language", ""))
    return response


def remember_language(response: HttpResponse, language: str) -> None:
    """Set the language cookie, unless `language` is empty."""
    if language:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=YEAR,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
            samesite="Lax",
        )
