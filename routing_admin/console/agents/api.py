"""Administrators' API for agents, their keys, and links to agents' own pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Router

from capabilities.core.permissions import DEFAULT_SCOPES
from capabilities.core.problems import Problem
from capabilities.core.services.agents import LIMITS, LabelKind
from capabilities.errors import ConflictError, InvalidError
from routing_admin.api.calls import answer, read_as, takes
from routing_admin.configuration.agents.actions import (
    change_key,
    delete_agent,
    find_service,
    issue_key,
    revoke_key,
    roll_key,
    save_agent,
)
from routing_admin.configuration.agents.queries import find_agent, find_key, list_agents, list_keys
from routing_admin.configuration.revisions import ledger
from routing_admin.console.agents.actions import make_link, revoke_link
from routing_admin.console.agents.forms import AgentForm, KeyTermsForm
from routing_admin.console.agents.queries import find_link, list_links
from routing_admin.console.base.api import (
    TAG,
    answer_at_revision,
    answer_entry,
    check_grantable,
    form_problems,
    iso,
    limit_fields,
    read_expectation,
    require,
    script_actor,
)
from routing_admin.console.base.schemas import (
    AdminAgentIn,
    AdminAgentOut,
    AdminAgentsOut,
    AgentThing,
    ChangedOut,
    IssuedOut,
    KeyIn,
    KeyOut,
    KeysOut,
    KeyTermsIn,
    KeyThing,
    LinkIn,
    LinksOut,
    LinkThing,
    MadeLinkOut,
    RotateIn,
)
from routing_admin.console.exchange.actions import check_expectation

if TYPE_CHECKING:
    from capabilities.models import Agent, AgentKey, AgentLink

router = Router(tags=[TAG])
JSON_NAMES = {"service": "serviceId", "task_type": "taskType", "agent_id": "id"}
"""Maps form field names to the JSON names that the API uses."""


DEFAULT_OVERLAP = timedelta(hours=24)
"""How long the old key remains valid after a rotation, unless the request says otherwise."""
MAX_LIFETIME = timedelta(days=3650)


def key_out(row: AgentKey) -> KeyThing:
    return KeyThing(
        id=row.public_id,
        label=row.label,
        scopes=row.scopes,
        team=row.terms.get(LabelKind.TEAM, ""),
        project=row.terms.get(LabelKind.PROJECT, ""),
        limits=row.terms.get(LIMITS, {}),
        state=credential_state(row),
        createdAt=iso(row.created_at),
        expiresAt=iso(row.expires_at),
        lastUsedAt=iso(row.last_used_at),
    )


@router.get("/agents/{path:agent_id}/keys", response=KeysOut)
def admin_list_keys(request: HttpRequest, agent_id: str) -> HttpResponse:
    """List an agent's keys, without their secrets."""
    row = require(find_agent(agent_id), "agent", agent_id)
    return answer(KeysOut(keys=[key_out(key) for key in list_keys(row)]))


@router.post("/agents/{path:agent_id}/keys", response={201: IssuedOut}, openapi_extra=takes(KeyIn))
def admin_issue_key(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Issue a key, which is shown only in this response.

    The status is 403 if the key has a scope, such as `config:write`, that the token itself lacks.
    """
    body = read_as(request, KeyIn)
    check_grantable(request, body.scopes or (), "Such a key")
    row = require(find_agent(agent_id), "agent", agent_id)
    expires_at = timezone.now() + timedelta(days=body.days) if body.days else None
    scopes = DEFAULT_SCOPES if body.scopes is None else body.scopes
    form = terms_form(body)
    key, key_row = issue_key(
        script_actor(request), row, scopes=scopes, label=body.label or "", expires_at=expires_at, terms=form.terms
    )
    return answer_issued(key, key_row)


@router.put("/agents/{path:agent_id}/keys/{key_id}", response=KeyOut, openapi_extra=takes(KeyTermsIn))
def admin_change_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Change a key's name, labels, limits and, if `expiresAt` is sent, its expiry, effective immediately.

    The status is 409 if the key is revoked or expired.
    """
    body = read_as(request, KeyTermsIn)
    with ledger.exclusive():
        row = require(find_key(agent_id, key_id), "key", key_id)
        check_expectation(read_expectation(request), key_entry(row))
        if row.revoked_at is not None or is_over(row):
            raise ConflictError(f"The key {key_id} has ended. Issue a new one.")
        form, expires_at = terms_form(body), read_end(body) if "expiresAt" in body.model_fields_set else row.expires_at
        if (row.label, row.terms, row.expires_at) != (form.cleaned_data["label"], form.terms, expires_at):
            change_key(
                script_actor(request), row, label=form.cleaned_data["label"], terms=form.terms, expires_at=expires_at
            )
    return answer_key(row)


@router.get("/agents/{path:agent_id}/keys/{key_id}", response=KeyOut)
def admin_get_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Return an agent's key, without its secret."""
    row = require(find_key(agent_id, key_id), "key", key_id)
    return answer_key(row)


def terms_form(body: KeyTermsIn | KeyIn) -> KeyTermsForm:
    """Return the form for a key's labels and limits, filled in from the request body.

    Raise `InvalidError` if the values are invalid.
    """
    fields = {"label": body.label or "", "team": body.team or "", "project": body.project or ""}
    form = KeyTermsForm({**fields, **limit_fields(body.limits or {})})
    if not form.is_valid():
        raise InvalidError(form_problems(form, {}))
    return form


def read_end(body: KeyTermsIn) -> datetime | None:
    """Return the requested expiry, or None if the key never expires.

    Raise `InvalidError` if it is malformed, lacks a time zone, is past, or is too far in the future.
    """
    if body.expiresAt is None:
        return None
    try:
        moment = datetime.fromisoformat(body.expiresAt)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not timezone.now() < moment < timezone.now() + MAX_LIFETIME:
        message = "A moment to come is expected, with its time zone, such as 2027-01-31T12:00:00+00:00."
        raise InvalidError([Problem("expiresAt", message, "range")])
    return moment


def is_over(row: AgentKey | AgentLink) -> bool:
    return row.expires_at is not None and row.expires_at <= timezone.now()


def credential_state(row: AgentKey | AgentLink) -> str:
    return "revoked" if row.revoked_at else "expired" if is_over(row) else "active"


def key_entry(row: AgentKey) -> dict[str, Any]:
    """Return the fields from which a key's ETag is derived: all except the time of its last use."""
    return key_out(row).model_dump(exclude={"lastUsedAt"})


def answer_key(row: AgentKey) -> HttpResponse:
    return answer_entry(KeyOut(key=key_out(row)), key_entry(row))


@router.delete("/agents/{path:agent_id}/keys/{key_id}", response={204: None})
def admin_revoke_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Revoke a key immediately and permanently; revoking a key that is already revoked or expired is not an error."""
    row = require(find_key(agent_id, key_id), "key", key_id)
    if row.revoked_at is None:
        revoke_key(script_actor(request), row)
    return HttpResponse(status=204)


@router.post("/agents/{path:agent_id}/keys/{key_id}/rotate", response={201: IssuedOut}, openapi_extra=takes(RotateIn))
def admin_rotate_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Issue a key with the same scopes; the old key remains valid for an overlap period, by default one day.

    The status is 409 if the old key is revoked, and 403 if it has a scope, such as `config:write`, that the token
    itself lacks.
    """
    seconds = read_as(request, RotateIn).overlapSeconds
    row = require(find_key(agent_id, key_id), "key", key_id)
    check_grantable(request, row.scopes, "Such a key")
    overlap = DEFAULT_OVERLAP if seconds is None else timedelta(seconds=seconds)
    return answer_issued(*roll_key(script_actor(request), row, overlap=overlap))


def answer_issued(key: str, row: AgentKey) -> HttpResponse:
    return answer(IssuedOut(key=key, issued=key_out(row)), 201)


def link_out(row: AgentLink) -> LinkThing:
    return LinkThing(
        id=row.public_id,
        name=row.name,
        withBodies=row.with_bodies,
        state=credential_state(row),
        createdAt=iso(row.created_at),
        expiresAt=iso(row.expires_at),
        lastSeenAt=iso(row.last_seen_at),
    )


@router.get("/agents/{path:agent_id}/links", response=LinksOut)
def admin_list_links(request: HttpRequest, agent_id: str) -> HttpResponse:
    """List the links to an agent's own page, without their secrets."""
    row = require(find_agent(agent_id), "agent", agent_id)
    return answer(LinksOut(links=[link_out(link) for link in list_links(row)]))


@router.post("/agents/{path:agent_id}/links", response={201: MadeLinkOut}, openapi_extra=takes(LinkIn))
def admin_make_link(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Create a link to an agent's own page; the link's URL is shown only in this response."""
    body = read_as(request, LinkIn)
    row = require(find_agent(agent_id), "agent", agent_id)
    expires_at = timezone.now() + timedelta(days=body.days) if body.days else None
    text, link = make_link(
        script_actor(request), row, name=body.name, expires_at=expires_at, with_bodies=body.withBodies
    )
    address = settings.PUBLIC_URL + reverse("own_page", args=[text])
    return answer(MadeLinkOut(link=address, details=link_out(link)), 201)


@router.delete("/agents/{path:agent_id}/links/{link_id}", response={204: None})
def admin_revoke_link(request: HttpRequest, agent_id: str, link_id: str) -> HttpResponse:
    """Revoke a link immediately and permanently; revoking a link that is already revoked or expired is not an error."""
    revoke_link(script_actor(request), require(find_link(agent_id, link_id), "link", link_id))
    return HttpResponse(status=204)


# An agent's id may contain slashes, so the following patterns also match the URLs above and must be added last.


def agent_out(row: Agent, keys: int) -> AgentThing:
    return AgentThing(
        id=row.agent_id,
        name=row.name,
        description=row.description,
        serviceId=row.service.service_id if row.service else None,
        taskType=row.task_type or None,
        limits=row.limits,
        origin=row.origin,
        keys=keys,
    )


@router.get("/agents", response=AdminAgentsOut)
def admin_list_agents(request: HttpRequest) -> HttpResponse:
    """List all agents that are not deleted."""
    return answer_at_revision(AdminAgentsOut(agents=[agent_out(line.row, line.keys) for line in list_agents()]))


@router.get("/agents/{path:agent_id}", response=AdminAgentOut)
def admin_get_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Return one agent."""
    agent = describe_agent(require(find_agent(agent_id), "agent", agent_id))
    return answer_entry(AdminAgentOut(agent=agent), agent_entry(agent))


def agent_entry(agent: AgentThing) -> dict[str, Any]:
    """Return the fields from which an agent's ETag is derived: all except its number of keys."""
    return agent.model_dump(exclude={"keys"})


def describe_agent(row: Agent) -> AgentThing:
    return agent_out(row, sum(key.revoked_at is None for key in list_keys(row)))


@router.put("/agents/{path:agent_id}", response={200: ChangedOut, 201: ChangedOut}, openapi_extra=takes(AdminAgentIn))
def admin_put_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Add or replace an agent. The status is 409 if the agent was created at run time."""
    body = read_as(request, AdminAgentIn)
    with ledger.exclusive():
        created, changes, entry = write_agent(request, agent_id, body)
    return answer_entry(ChangedOut(created=created, changes=changes, warnings=[]), entry, 201 if created else 200)


def write_agent(request: HttpRequest, agent_id: str, body: AdminAgentIn) -> tuple[bool, list[str], dict[str, Any]]:
    """Save an agent. Return whether it is new, its changes, and the fields from which its ETag is derived.

    Raise `ConflictError` or `InvalidError`.
    """
    row = find_agent(agent_id)
    before = describe_agent(row) if row else None
    check_expectation(read_expectation(request), agent_entry(before) if before else None)
    if row is not None and row.origin != "administrator":
        raise ConflictError(f"{agent_id} was made at run time: the program that made it changes it. Choose another id.")
    form = build_agent_form(agent_id, body, row)
    if not form.is_valid():
        raise InvalidError(form_problems(form, JSON_NAMES))
    saved = form.save(commit=False)
    # Saving an unchanged agent creates no revision.
    if before is not None and before == agent_out(saved, before.keys):
        return False, [], agent_entry(before)
    save_agent(script_actor(request), saved)
    verb = "changed" if row else "added"
    return row is None, [f"Agent “{agent_id}” is {verb}."], agent_entry(agent_out(saved, 0))


def build_agent_form(agent_id: str, body: AdminAgentIn, row: Agent | None) -> AgentForm:
    """Return the agent's form, filled in from the request body.

    Raise `InvalidError` for an unknown service or limit.
    """
    service = find_service(body.serviceId)
    data: dict[str, Any] = {
        "agent_id": agent_id,
        "name": body.name or "",
        "description": body.description or "",
        "service": service.service_id if service else "",
        "task_type": body.taskType or "",
        "version": row.version if row else 1,
        **limit_fields(body.limits or {}),
    }
    return AgentForm(data, instance=row) if row else AgentForm(data)


@router.delete("/agents/{path:agent_id}", response={204: None})
def admin_delete_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Delete an agent with its keys; a missing agent is not an error."""
    with ledger.exclusive():
        row = find_agent(agent_id)
        check_expectation(read_expectation(request), agent_entry(describe_agent(row)) if row else None)
        if row is not None:
            delete_agent(script_actor(request), row)
    return HttpResponse(status=204)
