"""Agents and their keys: listed, written, deleted; keys issued, revoked and rotated."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from capabilities import actions
from capabilities.api.calls import answer, gives, read_as, takes
from capabilities.core.permissions import DEFAULT_SCOPES
from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import CURRENCY, MODELS
from capabilities.errors import ConflictError, InvalidError
from capabilities.forms.agents import AgentForm
from capabilities.forms.limits import LIMITS
from capabilities.queries.agents import find_agent, find_key, list_agents, list_keys
from routing_admin.actions.entries import check_revision
from routing_admin.agents_api.administration.calls import (
    TAG,
    answer_at_revision,
    expected_in,
    iso,
    require,
    script_actor,
)
from routing_admin.agents_api.administration.schemas import (
    AdminAgentIn,
    AdminAgentOut,
    AdminAgentsOut,
    ChangedOut,
    IssuedOut,
    KeyIn,
    KeysOut,
    RotateIn,
)

if TYPE_CHECKING:
    from capabilities.models import Agent, AgentKey

router = Router(tags=[TAG])
OVERLAP = timedelta(hours=24)
"""How long an old key goes on where nobody says otherwise."""
FIELDS = {"service": "serviceId", "task_type": "taskType", "agent_id": "id", MODELS: f"limits.{MODELS}"}
"""Where a form's field stands in the JSON; a limit stands among the limits."""


def agent_json(row: Agent, keys: int) -> dict[str, Any]:
    """An agent; `keys` are those that are not revoked."""
    return {
        "id": row.agent_id,
        "name": row.name,
        "description": row.description,
        "serviceId": row.service.service_id if row.service else None,
        "taskType": row.task_type or None,
        "limits": row.limits,
        "origin": row.origin,
        "keys": keys,
    }


def key_json(row: AgentKey) -> dict[str, Any]:
    """A key without its secret."""
    is_over = row.expires_at is not None and row.expires_at <= timezone.now()
    return {
        "id": row.public_id,
        "label": row.label,
        "scopes": row.scopes,
        "state": "revoked" if row.revoked_at else "expired" if is_over else "active",
        "createdAt": iso(row.created_at),
        "expiresAt": iso(row.expires_at),
        "lastUsedAt": iso(row.last_used_at),
    }


@router.get("/agents", openapi_extra=gives(AdminAgentsOut))
def admin_list_agents(request: HttpRequest) -> HttpResponse:
    """Every living agent."""
    return answer_at_revision({"agents": [agent_json(line.row, line.keys) for line in list_agents()]})


@router.get("/agents/{path:agent_id}/keys", openapi_extra=gives(KeysOut))
def admin_list_keys(request: HttpRequest, agent_id: str) -> HttpResponse:
    """The keys of an agent, without their secrets."""
    row = require(find_agent(agent_id), "agent", agent_id)
    return answer({"keys": [key_json(key) for key in list_keys(row)]})


@router.post("/agents/{path:agent_id}/keys", response={201: IssuedOut}, openapi_extra=takes(KeyIn))
def admin_issue_key(request: HttpRequest, agent_id: str) -> HttpResponse:
    """A new key, which this answer alone holds."""
    body = read_as(request, KeyIn)
    row = require(find_agent(agent_id), "agent", agent_id)
    ends = timezone.now() + timedelta(days=body.days) if body.days else None
    scopes = DEFAULT_SCOPES if body.scopes is None else body.scopes
    key, made = actions.issue_key(script_actor(request), row, scopes=scopes, label=body.label or "", expires_at=ends)
    return issued(key, made)


@router.delete("/agents/{path:agent_id}/keys/{key_id}", response={204: None})
def admin_revoke_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """Ends a key at once, for good; one that has ended is no error."""
    row = require(find_key(agent_id, key_id), "key", key_id)
    if row.revoked_at is None:
        actions.revoke_key(script_actor(request), row)
    return HttpResponse(status=204)


@router.post("/agents/{path:agent_id}/keys/{key_id}/rotate", response={201: IssuedOut}, openapi_extra=takes(RotateIn))
def admin_rotate_key(request: HttpRequest, agent_id: str, key_id: str) -> HttpResponse:
    """A successor with the same scopes; the old key goes on for the overlap, a day where none is said.

    409 for a key that is revoked.
    """
    seconds = read_as(request, RotateIn).overlapSeconds
    row = require(find_key(agent_id, key_id), "key", key_id)
    if row.revoked_at is not None:
        raise ConflictError(f"The key {key_id} is revoked. Issue a new one.")
    overlap = OVERLAP if seconds is None else timedelta(seconds=seconds)
    return issued(*actions.roll_key(script_actor(request), row, overlap=overlap))


def issued(key: str, row: AgentKey) -> HttpResponse:
    """The one answer that holds a whole key."""
    return answer({"key": key, "issued": key_json(row)}, 201, Cache_Control="no-store")


@router.get("/agents/{path:agent_id}", openapi_extra=gives(AdminAgentOut))
def admin_get_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """One agent."""
    return answer_at_revision({"agent": described(require(find_agent(agent_id), "agent", agent_id))})


def described(row: Agent) -> dict[str, Any]:
    """An agent with the number of its keys."""
    return agent_json(row, sum(key.revoked_at is None for key in list_keys(row)))


@router.put(
    "/agents/{path:agent_id}", openapi_extra={**takes(AdminAgentIn), **gives(ChangedOut)}, response={201: ChangedOut}
)
def admin_put_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Adds or replaces an agent; 409 for one that a program made at run time, which is its maker's."""
    body = read_as(request, AdminAgentIn)
    check_revision(expected_in(request))
    row = find_agent(agent_id)
    if row is not None and row.origin != "administrator":
        raise ConflictError(f"{agent_id} was made at run time: the program that made it changes it. Choose another id.")
    before = described(row) if row else None
    form = form_of(agent_id, body, row)
    if not form.is_valid():
        raise InvalidError(problems_of(form))
    saved = form.save(commit=False)
    if before is not None and before == agent_json(saved, before["keys"]):
        return answer_at_revision({"created": False, "changes": [], "warnings": []})
    actions.save_agent(script_actor(request), saved, expected=row.version if row else None)
    verb = "changed" if row else "added"
    told = {"created": row is None, "changes": [f"Agent “{agent_id}” is {verb}."], "warnings": []}
    return answer_at_revision(told, 200 if row else 201)


def form_of(agent_id: str, body: AdminAgentIn, row: Agent | None) -> AgentForm:
    """The page's form, filled with what the script sent.

    Raises `InvalidError` for a limit there is not, or models that are no list of names.
    """
    limits = body.limits or {}
    known = {MODELS, CURRENCY, *(meter.value for meter in LIMITS)}
    unknown = [name for name in limits if name not in known]
    models = limits.get(MODELS) or []
    if unknown:
        message = f"There is no such limit. Limits are: {', '.join(sorted(known))}."
        raise InvalidError([Problem(f"limits.{unknown[0]}", message, "enum")])
    if not isinstance(models, list) or not all(isinstance(name, str) for name in models):
        raise InvalidError([Problem(f"limits.{MODELS}", "A list of names is expected.", "type")])
    service = actions.find_service(body.serviceId)
    data: dict[str, Any] = {
        "agent_id": agent_id,
        "name": body.name or "",
        "description": body.description or "",
        "service": service.pk if service else "",
        "task_type": body.taskType or "",
        "version": row.version if row else 1,
        MODELS: "\n".join(models),
        **{name: value for name, value in limits.items() if name != MODELS},
    }
    return AgentForm(data, instance=row) if row else AgentForm(data)


def problems_of(form: AgentForm) -> list[Problem]:
    """What the form refuses, at the places of the JSON."""
    meters = {meter.value for meter in LIMITS} | {CURRENCY}
    return [
        Problem(FIELDS.get(name, f"limits.{name}" if name in meters else name), str(error), "range")
        for name, found in form.errors.items()
        for error in found
    ]


@router.delete("/agents/{path:agent_id}", response={204: None})
def admin_delete_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Deletes an agent with its keys; one that is not there is no error."""
    check_revision(expected_in(request))
    row = find_agent(agent_id)
    if row is not None:
        actions.delete_agent(script_actor(request), row)
    return HttpResponse(status=204)
