"""Links to an agent's own page: made and shown once, revoked at once."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from capabilities.access import actor_of
from routing_admin.configuration.agents.queries import find_agent
from routing_admin.console.agents.link_actions import make_link, revoke_link
from routing_admin.console.agents.link_forms import AgentLinkForm
from routing_admin.console.agents.link_queries import find_link
from routing_admin.console.agents.views import agent_page
from routing_admin.console.base.answers import UNPROCESSABLE, add_toast, require_found


@require_POST
def agent_link_make(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Makes a link. The answer itself shows it, so that no later page and no store ever holds it."""
    row = require_found(find_agent(agent_id))
    form = AgentLinkForm(request.POST, prefix="link")
    if not form.is_valid():
        return agent_page(request, row, status=UNPROCESSABLE, link_form=form)
    data = form.cleaned_data
    text, made = make_link(
        actor_of(request), row, name=data["name"], expires_at=form.expires_at, with_bodies=data["with_bodies"]
    )
    address = settings.PUBLIC_URL + reverse("own_page", args=[text])
    return agent_page(request, row, link=address, link_row=made)


@require_POST
def agent_link_revoke(request: HttpRequest, agent_id: str, public_id: str) -> HttpResponse:
    """Ends a link at once, for good."""
    row = require_found(find_link(agent_id, public_id))
    revoke_link(actor_of(request), row)
    add_toast(request, _("The link for %(name)s is revoked and no longer works") % {"name": row.name})
    return redirect("agent", agent_id=agent_id)
