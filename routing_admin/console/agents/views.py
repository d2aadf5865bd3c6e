"""Pages for an agent, its keys, and the links to its own page."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from capabilities.access import request_actor, role_for
from capabilities.core.permissions import can_change
from capabilities.core.services.limit_holders import agent_holder_id
from capabilities.errors import ActionError, ConflictError
from capabilities.labels import content_label
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import (
    change_key,
    check_can_delete_agent,
    delete_agent,
    issue_key,
    revoke_key,
    roll_key,
    save_agent,
)
from routing_admin.configuration.agents.queries import (
    find_agent,
    find_guarantee,
    find_key,
    find_profile,
    find_unused_key,
    list_keys,
    list_readings,
)
from routing_admin.console.agents.actions import make_link, revoke_link
from routing_admin.console.agents.forms import AgentForm, AgentLinkForm, KeyForm, KeyTermsForm
from routing_admin.console.agents.queries import find_key_uses, find_link, list_key_lines, list_links, name_uses
from routing_admin.console.agents.snippets import describe_use
from routing_admin.console.base.consequences import find_deletion_consequences, find_obstacle
from routing_admin.console.base.page_responses import (
    UNPROCESSABLE,
    add_refusal,
    add_refusal_toast,
    add_toast,
    find_differences,
    renew_version,
    require_found,
)
from routing_admin.console.base.saving import describe_saving, is_asking_for_changes, render_changes

if TYPE_CHECKING:
    from capabilities.models import Agent

# Maps field names in an `InvalidError` to form fields.
FORM_FIELDS = {"serviceId": "service", "taskType": "task_type"}


def agent_new(request: HttpRequest) -> HttpResponse:
    form = AgentForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = UNPROCESSABLE
        if form.is_valid():
            try:
                row = form.save(commit=False)
                change = save_agent(request_actor(request), row)
            except ActionError as refusal:
                status = add_refusal(form, refusal, FORM_FIELDS)
            else:
                add_toast(request, _("%(name)s added") % {"name": row.agent_id}, change.revision)
                return redirect("agent", agent_id=row.agent_id)
    return render(request, "capabilities/agent_new.html", {"form": form}, status=status)


def agent(request: HttpRequest, agent_id: str) -> HttpResponseBase:
    row = require_found(find_agent(agent_id))
    if request.method != "POST":
        return agent_page(request, row)
    return save(request, row)


def save(request: HttpRequest, row: Agent) -> HttpResponse:
    """Save the form. If this fails, return 422 with the form's errors, or 409 with both versions of the agent."""
    form = AgentForm(request.POST, instance=row)
    if is_asking_for_changes(request):
        return render_changes(request, describe_saving(form))
    if not form.is_valid():
        return agent_page(request, require_found(find_agent(row.agent_id)), form=form, status=UNPROCESSABLE)
    try:
        saved = form.save(commit=False)
        change = save_agent(request_actor(request), saved, expected=form.cleaned_data["version"])
    except ActionError as refusal:
        current = require_found(find_agent(row.agent_id))
        status = add_refusal(form, refusal, FORM_FIELDS)
        conflict = find_differences(form, current) if isinstance(refusal, ConflictError) else None
        # The form gets the current version number, so that saving again overwrites the other user's change.
        renew_version(form, current.version)
        return agent_page(request, current, form=form, status=status, refusal=refusal, conflict=conflict)
    add_toast(request, _("%(name)s saved") % {"name": saved.agent_id}, change.revision)
    return redirect("agent", agent_id=saved.agent_id)


def agent_page(
    request: HttpRequest, row: Agent, *, form: AgentForm | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    directory = snapshot.current().directory
    profile, form = find_profile(row, directory), form or AgentForm(instance=row)
    readings, keys = list_readings(profile, directory), list_keys(row)
    uses = find_key_uses(row, keys)
    context = {
        "row": row,
        "form": form,
        **describe_saving(form),
        "key_form": KeyForm(),
        "link_form": AgentLinkForm(prefix="link"),
        "links": list_links(row) if can_change(role_for(request.user), "agent_link_make") else [],
        "profile": profile,
        "readings": readings,
        "handed": [
            ngettext("%(kind)s to %(count)s agent", "%(kind)s to %(count)s agents", len(reading.others))
            % {"kind": content_label(reading.name), "count": len(reading.others)}
            for reading in readings
            if not reading.itself and reading.others
        ],
        "unread": [reading.name for reading in readings if not reading.itself and not reading.others],
        "guarantee": find_guarantee(row.task_type) if row.task_type else None,
        "keys": list_key_lines(keys, uses, more.get("terms_form")),
        "now": timezone.now(),
        "uses": name_uses(uses[agent_holder_id(row.agent_id)]),
        "waiting_key": more.get("issued_key") or find_unused_key(keys),
        **describe_use(row, more.get("issued", "")),
        "obstacle": find_obstacle(check_can_delete_agent, row, row.agent_id),
        "losses": find_deletion_consequences("agent", [row.agent_id]),
        # `more` may contain `issued` and `link`, a new key and a new link, whose secrets only this response shows.
        **more,
    }
    return render(request, "capabilities/agent.html", context, status=status)


@require_POST
def agent_delete(request: HttpRequest, agent_id: str) -> HttpResponse:
    row = require_found(find_agent(agent_id))
    try:
        change = delete_agent(request_actor(request), row)
    except ActionError as refusal:
        add_refusal_toast(request, refusal)
        return redirect("agent", agent_id=agent_id)
    add_toast(request, _("%(name)s deleted, its keys no longer work") % {"name": agent_id}, change.revision)
    return redirect("agents")


OVERLAPS = {"0": timedelta(0), "1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
"""Choices for how long the old key remains valid after a rotation."""


@require_POST
def key_issue(request: HttpRequest, agent_id: str) -> HttpResponse:
    row = require_found(find_agent(agent_id))
    form = KeyForm(request.POST)
    if not form.is_valid():
        return agent_page(request, row, status=UNPROCESSABLE, key_form=form)
    data = form.cleaned_data
    try:
        issued, key = issue_key(
            request_actor(request),
            row,
            scopes=data["scopes"],
            label=data["label"],
            expires_at=form.expires_at,
            terms=form.terms,
        )
    except ActionError as refusal:
        return agent_page(request, row, status=add_refusal(form, refusal), key_form=form)
    # Do not redirect: the whole key is shown only in this response.
    return agent_page(request, row, issued=issued, issued_key=key)


@require_POST
def key_change(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    key = require_found(find_key(agent_id, public_id))
    form = KeyTermsForm(request.POST, prefix=public_id, terms=key.terms)
    if not form.is_valid():
        return agent_page(request, require_found(find_agent(agent_id)), status=UNPROCESSABLE, terms_form=form)
    try:
        change = change_key(request_actor(request), key, label=form.cleaned_data["label"], terms=form.terms)
    except ActionError as refusal:
        status = add_refusal(form, refusal)
        return agent_page(request, require_found(find_agent(agent_id)), status=status, terms_form=form)
    add_toast(request, _("ra_%(key)s… changed") % {"key": public_id}, change.revision)
    return redirect("agent", agent_id=agent_id)


@require_POST
def key_roll(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    """Issue a new key with the same scopes. The old key remains valid for the chosen overlap period."""
    rolled = require_found(find_key(agent_id, public_id))
    overlap = OVERLAPS.get(request.POST.get("overlap", ""), OVERLAPS["24h"])
    issued, key = roll_key(request_actor(request), rolled, overlap=overlap)
    return agent_page(request, require_found(find_agent(agent_id)), issued=issued, issued_key=key, rolled=rolled)


@require_POST
def key_revoke(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    key = require_found(find_key(agent_id, public_id))
    if key.revoked_at is None:
        revoke_key(request_actor(request), key)
    add_toast(request, _("ra_%(key)s… is revoked and no longer works") % {"key": key.public_id})
    return redirect("agent", agent_id=agent_id)


@require_POST
def agent_link_make(request: HttpRequest, agent_id: str) -> HttpResponse:
    row = require_found(find_agent(agent_id))
    form = AgentLinkForm(request.POST, prefix="link")
    if not form.is_valid():
        return agent_page(request, row, status=UNPROCESSABLE, link_form=form)
    data = form.cleaned_data
    text, link_row = make_link(
        request_actor(request), row, name=data["name"], expires_at=form.expires_at, with_bodies=data["with_bodies"]
    )
    address = settings.PUBLIC_URL + reverse("own_page", args=[text])
    # Do not redirect: the whole link is shown only in this response.
    return agent_page(request, row, link=address, link_row=link_row)


@require_POST
def agent_link_revoke(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    row = require_found(find_link(agent_id, public_id))
    revoke_link(request_actor(request), row)
    add_toast(request, _("The link for %(name)s is revoked and no longer works") % {"name": row.name})
    return redirect("agent", agent_id=agent_id)
