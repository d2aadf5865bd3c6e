"""Links to agents' own pages: made, listed and revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Router

from routing_admin.api.calls import answer, gives, read_as, takes
from routing_admin.configuration.agents.queries import find_agent
from routing_admin.console.agents.link_actions import make_link, revoke_link
from routing_admin.console.agents.link_queries import find_link, list_links
from routing_admin.console.base.api import TAG, iso, require, script_actor
from routing_admin.console.base.schemas import LinkIn, LinksOut, MadeLinkOut

if TYPE_CHECKING:
    from capabilities.models import AgentLink

router = Router(tags=[TAG])


def link_json(row: AgentLink) -> dict[str, Any]:
    """A link without its secret."""
    is_over = row.expires_at is not None and row.expires_at <= timezone.now()
    return {
        "id": row.public_id,
        "name": row.name,
        "withBodies": row.with_bodies,
        "state": "revoked" if row.revoked_at else "expired" if is_over else "active",
        "createdAt": iso(row.created_at),
        "expiresAt": iso(row.expires_at),
        "lastSeenAt": iso(row.last_seen_at),
    }


@router.get("/agents/{path:agent_id}/links", openapi_extra=gives(LinksOut))
def admin_list_links(request: HttpRequest, agent_id: str) -> HttpResponse:
    """The links to an agent's own page, without their secrets."""
    row = require(find_agent(agent_id), "agent", agent_id)
    return answer({"links": [link_json(each) for each in list_links(row)]})


@router.post("/agents/{path:agent_id}/links", response={201: MadeLinkOut}, openapi_extra=takes(LinkIn))
def admin_make_link(request: HttpRequest, agent_id: str) -> HttpResponse:
    """A new link; its address is shown only in this answer."""
    body = read_as(request, LinkIn)
    row = require(find_agent(agent_id), "agent", agent_id)
    ends = timezone.now() + timedelta(days=body.days) if body.days else None
    text, made = make_link(script_actor(request), row, name=body.name, expires_at=ends, with_bodies=body.withBodies)
    address = settings.PUBLIC_URL + reverse("own_page", args=[text])
    return answer({"link": address, "details": link_json(made)}, 201)


@router.delete("/agents/{path:agent_id}/links/{link_id}", response={204: None})
def admin_revoke_link(request: HttpRequest, agent_id: str, link_id: str) -> HttpResponse:
    """Revokes a link immediately and permanently; one that has ended is no error."""
    revoke_link(script_actor(request), require(find_link(agent_id, link_id), "link", link_id))
    return HttpResponse(status=204)
