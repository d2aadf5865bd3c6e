"""Change agents and issue their keys.

Some actions are audited but create no revision: issuing or revoking a key, and changing a run-time agent, which is an
agent that another agent created through the API.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from types import EllipsisType
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.access import filter_living, make_key
from capabilities.actors import Actor, AuditedAction
from capabilities.core.permissions import DEFAULT_SCOPES, SCOPES
from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import MODELS
from capabilities.core.services.agents import LIMITS
from capabilities.errors import ConflictError, ForbiddenError, InvalidError, TooManyError
from capabilities.models import Agent, AgentKey, Service
from capabilities.sentences import join_words
from capabilities.signing import newest_secret, secret_name
from routing_admin.configuration.guards import check_one_line, check_unused, save_row
from routing_admin.configuration.revisions import ledger
from routing_admin.models import TaskRoute


def save_agent(actor: Actor, row: Agent, *, expected: int | None = None) -> AuditedAction:
    """Save an administrator's agent; raise `InvalidError` if it refers to an object that does not exist."""
    new = row.pk is None
    with ledger.change(actor, AuditedAction("agent.add" if new else "agent.change", "agent", row.agent_id)) as act:
        check_uses_one_thing(row)
        check_allowed_names(row)
        save_row(row, expected)
    return act


def put_agent(
    actor: Actor,
    owner: str,
    agent_id: str,
    *,
    name: str = "",
    description: str = "",
    service_id: str | None = None,
    task_type: str | None = None,
    expires_in: float | None = None,
) -> Agent:
    """Create or replace a run-time agent that belongs to the agent `owner`. Repeating the call only renews the expiry.

    `expires_in` is in seconds. Raise `ConflictError` if `owner` did not create the agent with this id, `TooManyError`
    if `owner` may not create another one, and `InvalidError` if both a service and a route are given, or if the given
    one does not exist.
    """
    with ledger.audit(actor, AuditedAction("agent.put", "agent", agent_id)):
        owner_row = Agent.objects.get(agent_id=owner)
        row = Agent.objects.filter(agent_id=agent_id).first()
        if row is not None and (row.origin != Agent.Origin.RUNTIME or row.owner_id != owner_row.pk):
            raise ConflictError(_("This id belongs to an agent you did not create. Choose another id."))
        # Expired agents do not count towards the limit, so renewing one is checked like creating one.
        if row is None or (row.expires_at and row.expires_at <= timezone.now()):
            check_can_make_agent(owner_row)
        row = row or Agent(agent_id=agent_id, origin=Agent.Origin.RUNTIME, owner=owner_row)
        check_one_line("name", name)
        row.name, row.description, row.task_type = name, description, task_type or ""
        row.service = find_service(service_id)
        row.expires_at = timezone.now() + timedelta(seconds=expires_in) if expires_in else None
        check_uses_one_thing(row)
        row.save()
    return row


def check_can_make_agent(maker: Agent) -> None:
    """Raise `TooManyError` if the agent already has the maximum number of unexpired agents that it may create."""
    if filter_living(maker.made).count() >= settings.MAX_MADE_AGENTS:
        message = _(
            "%(maker)s has %(count)s agents, as many as one agent may create. Delete some of them, let them expire, "
            "or raise ROUTING_ADMIN_MAX_MADE_AGENTS."
        )
        raise TooManyError(message % {"maker": maker.agent_id, "count": settings.MAX_MADE_AGENTS})


def find_service(service_id: str | None) -> Service | None:
    """Return the service with this id, or None if the id is empty. Raise `InvalidError` if there is no such service."""
    if not service_id:
        return None
    row = Service.objects.filter(service_id=service_id).first()
    if row is None:
        raise InvalidError([Problem("serviceId", _("There is no service %(id)s.") % {"id": service_id}, "reference")])
    return row


def check_uses_one_thing(row: Agent) -> None:
    """Raise `InvalidError` if the agent uses both a service and a route, or a route that does not exist."""
    if row.service_id and row.task_type:
        raise InvalidError([Problem("serviceId", _("An agent uses a service or a task route, not both."), "range")])
    if row.task_type and not TaskRoute.objects.filter(task_type=row.task_type).exists():
        message = _("There is no task route %(task)s.") % {"task": row.task_type}
        raise InvalidError([Problem("taskType", message, "reference")])


def check_allowed_names(row: Agent) -> None:
    before = Agent.objects.filter(pk=row.pk).first()
    check_names_exist(row.limits.get(MODELS, ()), before.limits.get(MODELS, ()) if before else ())


def check_names_exist(names: Collection[str], before: Collection[str]) -> None:
    if not names:
        return
    # Names that were already in the list stay valid, even if their route or service no longer exists.
    known = {*Service.objects.values_list("service_id", flat=True), *before}
    missing = [name for name in names if name not in known and not _is_route(name)]
    if missing:
        message = _("There is no route or service %(name)s. Write a route as task:%(name)s, a service as its id.")
        raise InvalidError([Problem(MODELS, message % {"name": missing[0]}, "reference")])


def _is_route(name: str) -> bool:
    return name.startswith("task:") and TaskRoute.objects.filter(task_type=name.removeprefix("task:")).exists()


def check_key_terms(agent: Agent, terms: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Raise `InvalidError` if a key's terms allow a model that does not exist or that the agent may not use."""
    names = terms.get(LIMITS, {}).get(MODELS, ())
    check_names_exist(names, before.get(LIMITS, {}).get(MODELS, ()))
    allowed = agent.limits.get(MODELS)
    forbidden = [name for name in names if allowed and name not in allowed]
    if forbidden:
        message = _("The agent cannot use %(name)s, so its key cannot either.") % {"name": forbidden[0]}
        raise InvalidError([Problem(MODELS, message, "range")])


def check_can_delete_agent(row: Agent) -> None:
    made = [agent.agent_id for agent in filter_living(row.made.all())]
    check_unused("made", made, _("This agent created others that still exist: %(users)s. Delete them first."))


def delete_agent(actor: Actor, row: Agent) -> AuditedAction:
    """Delete an agent and its keys, but not its artifacts. If it is a run-time agent, no revision is created."""
    act = AuditedAction("agent.delete", "agent", row.agent_id)
    makes_revision = row.origin == Agent.Origin.ADMINISTRATOR
    with ledger.change(actor, act) if makes_revision else ledger.audit(actor, act):
        check_can_delete_agent(row)
        row.delete()
    return act


def delete_made_agent(actor: Actor, owner: str, agent_id: str) -> None:
    """Delete a run-time agent that belongs to the agent `owner`; a missing agent is not an error.

    Raise `ForbiddenError` for any other agent.
    """
    with ledger.exclusive():
        row = Agent.objects.select_related("owner").filter(agent_id=agent_id.replace("\0", "")).first()
        if row is None:
            return
        if row.origin != Agent.Origin.RUNTIME or row.owner is None or row.owner.agent_id != owner:
            raise ForbiddenError(_("You did not create this agent. An administrator can delete it."))
        delete_agent(actor, row)


def issue_key(
    actor: Actor,
    agent: Agent,
    *,
    scopes: Iterable[str] = DEFAULT_SCOPES,
    label: str = "",
    expires_at: datetime | None = None,
    terms: Mapping[str, Any] | None = None,
) -> tuple[str, AgentKey]:
    """Issue a key; return the full key, which cannot be read again later, and its row.

    `terms` are in the format that `parse_terms` in `capabilities/core/services/agents.py` reads. Raise `InvalidError`
    for unknown scopes or invalid terms.
    """
    requested = tuple(dict.fromkeys(scopes))
    unknown = [scope for scope in requested if scope not in SCOPES]
    if unknown:
        message = _("There is no scope %(scope)s. Scopes are: %(scopes)s.")
        text = message % {"scope": unknown[0], "scopes": join_words(SCOPES)}
        raise InvalidError([Problem("scope", text, "enum")])
    check_one_line("label", label)
    check_key_terms(agent, terms or {}, {})
    return _make_key(actor, agent, requested, label, expires_at, dict(terms or {}))


def _make_key(
    actor: Actor, agent: Agent, scopes: Iterable[str], label: str, expires_at: datetime | None, terms: dict[str, Any]
) -> tuple[str, AgentKey]:
    key, public, digest = make_key()
    facts = {"key": f"ra_{public}", "scopes": list(scopes), **({"terms": terms} if terms else {})}
    act = AuditedAction("key.issue", "agent", agent.agent_id, facts)
    with ledger.audit(actor, act):
        row = AgentKey.objects.create(
            agent=agent,
            public_id=public,
            digest=digest,
            signed_with=secret_name(newest_secret()),
            scopes=list(scopes),
            label=label,
            expires_at=expires_at,
            terms=terms,
            issued_terms=terms,
        )
    return key, row


def change_key(
    actor: Actor,
    row: AgentKey,
    *,
    label: str,
    terms: Mapping[str, Any],
    expires_at: datetime | EllipsisType | None = ...,
) -> AuditedAction:
    """Change a key's label and terms immediately. Undo restores the previous terms, but not the previous expiry.

    `expires_at` sets a new expiry, or removes the expiry if it is None. Raise `InvalidError` for terms that allow a
    model that does not exist or that the key's agent may not use.
    """
    # An unchanged label is not checked, so that a key whose label is no longer valid can still be changed.
    check_one_line("label", label if label != row.label else "")
    check_key_terms(row.agent, terms, row.terms)
    facts = {"key": f"ra_{row.public_id}", "before": row.terms, "after": dict(terms)}
    ends = row.expires_at if isinstance(expires_at, EllipsisType) else expires_at
    if ends != row.expires_at:
        facts |= {
            "end": [moment.isoformat(timespec="seconds") if moment else None for moment in (row.expires_at, ends)]
        }
    act = AuditedAction("key.change", "agent", row.agent.agent_id, facts)
    makes_revision = row.agent.origin == Agent.Origin.ADMINISTRATOR
    with ledger.change(actor, act) if makes_revision else ledger.audit(actor, act):
        row.label, row.terms, row.expires_at = label, dict(terms), ends
        row.save(update_fields=["label", "terms", "expires_at"])
    return act


def revoke_key(actor: Actor, row: AgentKey) -> None:
    with ledger.audit(actor, AuditedAction("key.revoke", "agent", row.agent.agent_id, {"key": f"ra_{row.public_id}"})):
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])


def roll_key(actor: Actor, row: AgentKey, *, overlap: timedelta) -> tuple[str, AgentKey]:
    """Replace a key with a new one that has the same scopes and terms.

    The old key expires after `overlap`, or at its own expiry if that is earlier. Raise `ConflictError` if the old key
    was revoked.
    """
    ends = timezone.now() + overlap
    with ledger.audit(actor, AuditedAction("key.roll", "agent", row.agent.agent_id, {"key": f"ra_{row.public_id}"})):
        # Read the row again inside the transaction, because the key may have been revoked in the meantime.
        row.refresh_from_db()
        if row.revoked_at is not None:
            raise ConflictError(_("The key %(key)s is revoked. Issue a new one.") % {"key": f"ra_{row.public_id}"})
        row.expires_at = min(row.expires_at or ends, ends)
        row.save(update_fields=["expires_at"])
        return _make_key(actor, row.agent, row.scopes, row.label, None, row.terms)
