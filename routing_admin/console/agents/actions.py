"""Links to an agent's own page: made and told once, revoked at once. Audited; they make no revision."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.utils import timezone

from capabilities.access import digest_of, make_key
from capabilities.acts import Actor, AuditedAction
from capabilities.core.services.agents import LINK_KIND, secret_in
from capabilities.models import Agent, AgentLink
from capabilities.signing import name_of_secret, newest_secret
from routing_admin.configuration.guards import check_one_line
from routing_admin.configuration.revisions import ledger

EVERY = timedelta(minutes=1)
"""How often it is written that somebody looked, at most."""


def make_link(
    actor: Actor, agent: Agent, *, name: str, expires_at: datetime | None, with_bodies: bool = False
) -> tuple[str, AgentLink]:
    """A new link: (its text, told this once, and its row). `with_bodies` shows its reader recorded words, too.

    Raises `InvalidError` for a name of several lines.
    """
    check_one_line("name", name)
    text, public, digest = make_key(LINK_KIND)
    facts = {"link": f"{LINK_KIND}_{public}", "name": name, "bodies": with_bodies}
    ends = expires_at.isoformat(timespec="seconds") if expires_at else None
    with ledger.audit(actor, AuditedAction("link.make", "agent", agent.agent_id, {**facts, "expires": ends})):
        row = AgentLink.objects.create(
            agent=agent,
            name=name,
            public_id=public,
            digest=digest,
            signed_with=name_of_secret(newest_secret()),
            with_bodies=with_bodies,
            expires_at=expires_at,
        )
    return text, row


def revoke_link(actor: Actor, row: AgentLink) -> None:
    """Ends a link at once, for good; asking twice is no fault."""
    if row.revoked_at is None:
        facts = {"link": f"{LINK_KIND}_{row.public_id}", "name": row.name}
        with ledger.audit(actor, AuditedAction("link.revoke", "agent", row.agent.agent_id, facts)):
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])


def note_visit(row: AgentLink, text: str) -> None:
    """Notes that a link was opened, at most once a minute, and signs it with the newest secret then.

    Where the database takes no write now, nothing is noted: that is no reason to show no page.
    """
    now, name = timezone.now(), name_of_secret(newest_secret())
    is_told = row.last_seen_at is not None and now - row.last_seen_at <= EVERY
    if is_told and row.signed_with == name:
        return
    with suppress(DatabaseError):
        rows = AgentLink.objects.filter(pk=row.pk, digest=row.digest)
        rows.update(last_seen_at=now, digest=digest_of(secret_in(text)), signed_with=name)
