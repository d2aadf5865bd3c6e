"""Tokens for scripts: made and shown once, revoked at once."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from capabilities.access import actor_of
from capabilities.errors import InvalidError
from routing_admin.console.base.answers import UNPROCESSABLE, add_toast, require_found
from routing_admin.console.people.token_actions import issue_token, revoke_token
from routing_admin.console.people.token_forms import TokenForm
from routing_admin.console.people.token_queries import find_token, list_tokens
from routing_admin.console.people.users import user_or_404


@require_safe
def tokens(request: HttpRequest) -> HttpResponse:
    """Every administrator's tokens, and a form for a new one of one's own."""
    return show_tokens(request, TokenForm())


@require_POST
def token_new(request: HttpRequest) -> HttpResponse:
    """Makes a token. The answer itself shows it, so that no later page and no store ever holds it."""
    form = TokenForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        owner = user_or_404(request.user.pk)
        try:
            token, row = issue_token(actor_of(request), owner, data["name"], data["scopes"], days=data["days"])
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field, problem.message)
        else:
            return show_tokens(request, TokenForm(), token=token, new_row=row)
    return show_tokens(request, form, status=UNPROCESSABLE)


@require_POST
def token_revoke(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ends a token at once, for good."""
    row = require_found(find_token(public_id))
    revoke_token(actor_of(request), row)
    add_toast(request, _("The token %(name)s is revoked and no longer works") % {"name": row.name})
    return redirect("tokens")


def show_tokens(request: HttpRequest, form: TokenForm, status: int = 200, **more: Any) -> HttpResponse:
    """The page of tokens; `token` in `more` is the one shown this once."""
    page = {"rows": list_tokens(), "form": form, "now": timezone.now(), **more}
    return render(request, "users/tokens.html", page, status=status)
