"""Views for signing in and out. They are throttled and audited, and they set the user's language."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse

from capabilities.access import request_actor
from capabilities.actors import Actor
from routing_admin.console.people import actions as people
from routing_admin.console.people.forms import PasswordCheck, SignInForm
from routing_admin.console.people.language import remember_language
from routing_admin.console.people.queries import find_language
from routing_admin.platform.auth import throttle
from routing_admin.platform.auth.addresses import client_address
from routing_admin.platform.server.request_id import read_request_id


class SignIn(LoginView):
    """The sign-in page. It returns 429 after too many failed attempts from an IP address, and 503 on overload.

    Both responses have a Retry-After header.
    """

    authentication_form = SignInForm
    redirect_authenticated_user = True
    extra_context = {"providers": settings.IDENTITY.providers}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        assert isinstance(user, User)  # noqa: S101 - the form's own promise, for the type checker
        throttle.leave(form.cleaned_data["username"], visitor_address(self.request))
        people.record_sign_in(build_visitor(self.request), "user.sign_in", [user.get_username()])
        response = super().form_valid(form)
        remember_language(response, find_language(user))
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        assert isinstance(form, SignInForm)  # noqa: S101 - this view's own form, for the type checker
        if form.wait:
            refuse_throttled(response, form)
        # An incomplete form does not count as a failed attempt.
        elif form.cleaned_data.get("username") and form.cleaned_data.get("password"):
            people.record_sign_in(build_visitor(self.request), "user.sign_in_failed", [form.cleaned_data["username"]])
        return response


class SignOut(LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Remember the user, because after signing out the request has none.
        actor = request_actor(request)
        response = super().post(request, *args, **kwargs)
        people.record_sign_in(actor, "user.sign_out", [actor.name])
        return response


def refuse_throttled(response: HttpResponse, form: PasswordCheck) -> None:
    response.status_code = form.status
    response.headers["Retry-After"] = str(form.wait)


def build_visitor(request: HttpRequest) -> Actor:
    """Return the actor for a request without a signed-in user."""
    return Actor("person", "", visitor_address(request), read_request_id(request))


def visitor_address(request: HttpRequest) -> str:
    return client_address(request.META, settings.TRUSTED_PROXIES)
