"""Views that every page uses, to set the theme and to dismiss hints."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from routing_admin.console.base.context import THEME_COOKIE, THEMES
from routing_admin.console.base.tags.ui import CONCEPTS_COOKIE


def find_return_url(request: HttpRequest) -> str:
    """Return the form's `next` if it is a page of this site, else the dashboard's URL."""
    target = request.POST.get("next", "")
    # The form's `next` cannot be trusted, so it must not redirect to another site.
    is_local = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_local else "/"


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    # The theme is in a cookie, so that the server renders it and the page does not flash.
    response = redirect(find_return_url(request))
    remember_theme(response, request.POST.get("theme", "auto"))
    return response


def remember_theme(response: HttpResponse, theme: str) -> None:
    """Set the theme cookie. An unknown theme is ignored."""
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            theme,
            max_age=365 * 86400,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
        )


@require_POST
def concepts_dismiss(request: HttpRequest) -> HttpResponse:
    response = redirect("dashboard")
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(CONCEPTS_COOKIE, "read", max_age=365 * 86400, samesite="Lax", secure=secure, httponly=True)
    return response
