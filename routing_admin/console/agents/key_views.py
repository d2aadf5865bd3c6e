"""Agents' keys: issued and shown once, rolled with overlap, revoked at once."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from capabilities.errors import ActionError
from routing_admin.configuration.agents.actions import change_key, issue_key, revoke_key, roll_key
from routing_admin.configuration.agents.queries import find_agent, find_key
from routing_admin.console.agents.key_forms import KeyForm, KeyTermsForm
from routing_admin.console.agents.views import agent_page
from routing_admin.console.base.answers import UNPROCESSABLE, add_toast, require_found
from routing_admin.console.base.refused_forms import add_refusal

OVERLAPS = {"0": timedelta(0), "1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
"""How long an old key goes on after it was rolled."""


@require_POST
def key_issue(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Issues a key. The answer itself shows it, so that no later page and no store ever holds it."""
    row = require_found(find_agent(agent_id))
    form = KeyForm(request.POST)
    if not form.is_valid():
        return agent_page(request, row, status=UNPROCESSABLE, key_form=form)
    data = form.cleaned_data
    try:
        issued, key = issue_key(
            actor_of(request),
            row,
            scopes=data["scopes"],
            label=data["label"],
            expires_at=form.expires_at,
            terms=form.terms,
        )
    except ActionError as refusal:
        return agent_page(request, row, status=add_refusal(form, refusal), key_form=form)
    return agent_page(request, row, issued=issued, issued_key=key)


@require_POST
def key_change(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    """Gives a key another name and other terms, which hold at once."""
    key = require_found(find_key(agent_id, public_id))
    form = KeyTermsForm(request.POST, prefix=public_id, terms=key.terms)
    if not form.is_valid():
        return agent_page(request, require_found(find_agent(agent_id)), status=UNPROCESSABLE, terms_form=form)
    try:
        made = change_key(actor_of(request), key, label=form.cleaned_data["label"], terms=form.terms)
    except ActionError as refusal:
        status = add_refusal(form, refusal)
        return agent_page(request, require_found(find_agent(agent_id)), status=status, terms_form=form)
    add_toast(request, _("ra_%(key)s… changed") % {"key": public_id}, made.revision)
    return redirect("agent", agent_id=agent_id)


@require_POST
def key_roll(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    """Issues a successor with the same scopes; the old key goes on for the overlap."""
    old = require_found(find_key(agent_id, public_id))
    overlap = OVERLAPS.get(request.POST.get("overlap", ""), OVERLAPS["24h"])
    issued, key = roll_key(actor_of(request), old, overlap=overlap)
    return agent_page(request, require_found(find_agent(agent_id)), issued=issued, issued_key=key, rolled=old)


@require_POST
def key_revoke(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    """Ends a key at once, for good."""
    key = require_found(find_key(agent_id, public_id))
    if key.revoked_at is None:
        revoke_key(actor_of(request), key)
    add_toast(request, _("ra_%(key)s… is revoked and no longer works") % {"key": key.public_id})
    return redirect("agent", agent_id=agent_id)
