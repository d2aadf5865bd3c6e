"""Which links to an agent's own page are there, and whose page does one open?"""

from __future__ import annotations

from django.utils import timezone

from capabilities.access import makers_of
from capabilities.core.services.link_texts import LINK_KIND, public_part_in, secret_in
from capabilities.models import Agent, AgentLink
from capabilities.signing import is_signed


def list_links(agent: Agent) -> list[AgentLink]:
    """The links to the agent's page: those that were not revoked first, the newest of them before the others."""
    return sorted(agent.links.all(), key=lambda row: row.revoked_at is not None)


def find_link(agent_id: str, public_id: str) -> AgentLink | None:
    """A link by its agent and its public part, with or without the `rap_` before it; None for none."""
    public = public_id.removeprefix(f"{LINK_KIND}_")
    return AgentLink.objects.select_related("agent").filter(agent__agent_id=agent_id, public_id=public).first()


def find_link_by_public_id(public_id: str) -> AgentLink | None:
    """The link with that public part, whoever's page it opens; None for none."""
    return AgentLink.objects.select_related("agent").filter(public_id=public_id).first()


def open_link(text: str) -> AgentLink | None:
    """The link of that text, with its agent; None for one that is unknown, revoked or over. One query.

    It is over with its own time, with its agent's, and with that of who made the agent at run time.
    """
    public, now = public_part_in(text), timezone.now()
    rows = AgentLink.objects.select_related("agent__service", "agent__owner")
    row = rows.filter(public_id=public).first() if public else None
    if not is_signed(secret_in(text).encode(), row.digest if row else "") or row is None or row.revoked_at is not None:
        return None
    ends = (row.expires_at, row.agent.expires_at, *(maker.expires_at for maker in makers_of(row.agent)))
    return None if any(end is not None and end <= now for end in ends) else row
