"""Create and revoke links to an agent's own page. Both actions are audited but create no configuration revision."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.utils import timezone

from capabilities.access import hash_secret, make_key
from capabilities.actors import Actor, AuditedAction
from capabilities.core.services.agents import LINK_KIND, find_secret
from capabilities.models import Agent, AgentLink
from capabilities.signing import newest_secret, secret_name
from routing_admin.configuration.guards import check_one_line
from routing_admin.configuration.revisions import ledger

# Minimum interval between two writes of `last_seen_at`.
VISIT_INTERVAL = timedelta(minutes=1)


def make_link(
    actor: Actor, agent: Agent, *, name: str, expires_at: datetime | None, with_bodies: bool = False
) -> tuple[str, AgentLink]:
    """Create a link to an agent's own page. Return the link's secret text and its row.

    `with_bodies` lets the page show recorded message bodies. Only a digest of the secret text is stored, so it cannot
    be shown again. Raise `InvalidError` for a name with line breaks.
    """
    check_one_line("name", name)
    text, public, digest = make_key(LINK_KIND)
    facts = {"link": f"{LINK_KIND}_{public}", "name": name, "bodies": with_bodies}
    expires = expires_at.isoformat(timespec="seconds") if expires_at else None
    with ledger.audit(actor, AuditedAction("link.make", "agent", agent.agent_id, {**facts, "expires": expires})):
        row = AgentLink.objects.create(
            agent=agent,
            name=name,
            public_id=public,
            digest=digest,
            signed_with=secret_name(newest_secret()),
            with_bodies=with_bodies,
            expires_at=expires_at,
        )
    return text, row


def revoke_link(actor: Actor, row: AgentLink) -> None:
    if row.revoked_at is None:
        facts = {"link": f"{LINK_KIND}_{row.public_id}", "name": row.name}
        with ledger.audit(actor, AuditedAction("link.revoke", "agent", row.agent.agent_id, facts)):
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])


def record_visit(row: AgentLink, text: str) -> None:
    """Record a visit to the link, at most once a minute, and re-sign the link with the newest signing secret."""
    now, name = timezone.now(), secret_name(newest_secret())
    is_recent = row.last_seen_at is not None and now - row.last_seen_at <= VISIT_INTERVAL
    if is_recent and row.signed_with == name:
        return
    # An agent's page must be served even if the database is read-only or unavailable.
    with suppress(DatabaseError):
        # Filtering by the old digest avoids overwriting a link that another process has re-signed.
        rows = AgentLink.objects.filter(pk=row.pk, digest=row.digest)
        rows.update(last_seen_at=now, digest=hash_secret(find_secret(text)), signed_with=name)
