"""Ending sessions: one's own from one's page, those of others as an administrator."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from routing_admin.console.people.session_actions import end_sessions
from routing_admin.console.people.users import user_or_404


@require_POST
def session_end(request: HttpRequest) -> HttpResponse:
    """Ends a session of one's own, or all others; this one is ended by signing out."""
    return end(request, user_or_404(request.user.pk))


@require_POST
def user_session_end(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends a session of a person, or all of them. Raises `Http404` without that user."""
    return end(request, user_or_404(pk))


def end(request: HttpRequest, user: User) -> HttpResponse:
    """Ends the session that the form names, or without a name all, but never the one that asks."""
    chosen = request.POST.getlist("session") or None
    count = end_sessions(actor_of(request), user, chosen, staying=request.session.session_key or "")
    if count:
        messages.success(
            request, ngettext("%(count)s session ended", "%(count)s sessions ended", count) % {"count": count}
        )
    else:
        messages.info(request, _("This session has already ended"))
    return redirect("user", user.pk)
