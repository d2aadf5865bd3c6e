"""Middleware that enforces the permission table before every view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import ResolverMatch

from capabilities.access import role_for
from capabilities.core.permissions import (
    DJANGO_ADMIN,
    MACHINE_NAMESPACES,
    WITHOUT_A_KEY,
    Right,
    UserRole,
    call_methods,
    is_offered,
    right_on_page,
    route_path,
)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing (RFC 9110 §9.2.1); a page uses other methods only to submit a form."""
WRITING = Right.TRY | Right.CHANGE


class PermissionsMiddleware(LoginRequiredMiddleware):
    """Enforce the permission table centrally, so that no page can omit the check; API views check keys themselves."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        """Return None if the view may run, or else a redirect to the login page or a 405.

        Raise `PermissionDenied` if the user's role lacks the right, or if the table has no row for the view.
        """
        match = request.resolver_match
        if match is None:
            raise PermissionDenied
        if MACHINE_NAMESPACES.intersection(match.namespaces):
            _check_known_call(match)
            return None
        if DJANGO_ADMIN in match.namespaces:
            return _show_rows(request, match)
        required = Right.SEE if request.method in SAFE_METHODS else WRITING
        role = role_for(request.user)
        right = right_on_page(role, match.view_name)
        if right & required:
            return None
        if role is UserRole.ANONYMOUS and not right:
            return self.handle_no_permission(request, view_func)
        return _refuse(match.view_name, required)


def _check_known_call(match: ResolverMatch) -> None:
    if match.view_name not in WITHOUT_A_KEY and not call_methods(route_path(match.route)):
        raise PermissionDenied


def _show_rows(request: HttpRequest, match: ResolverMatch) -> HttpResponseBase | None:
    if not request.user.is_authenticated:
        # Redirect to our own login page instead of Django's, because ours limits failed sign-ins.
        return redirect_to_login(request.get_full_path())
    if not request.user.is_superuser:
        raise PermissionDenied
    # On Django's admin pages, a superuser may view rows and sign out, but nothing else.
    is_allowed = request.method in SAFE_METHODS or match.url_name == "logout"
    return None if is_allowed else HttpResponseNotAllowed(("GET", "HEAD"))


def _refuse(name: str, right: Right) -> HttpResponseNotAllowed:
    # If no role has this right, the page does not support the method at all, so respond with a 405.
    others = {Right.SEE: ("POST",), WRITING: ("GET", "HEAD")}
    if is_offered(name, right) or not is_offered(name, ~right):
        raise PermissionDenied
    return HttpResponseNotAllowed(others[right])
