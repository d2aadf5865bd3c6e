"""Agents: listed, written, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from capabilities.errors import ConflictError, InvalidError
from routing_admin.api.calls import gives, read_as, takes
from routing_admin.configuration.agents.actions import delete_agent, find_service, save_agent
from routing_admin.configuration.agents.queries import find_agent, list_agents, list_keys
from routing_admin.configuration.revisions import ledger
from routing_admin.console.agents.forms import AgentForm
from routing_admin.console.base.api import (
    TAG,
    answer_at_revision,
    answer_entry,
    expectation_in,
    require,
    script_actor,
)
from routing_admin.console.base.limit_schemas import limit_fields, problems_of
from routing_admin.console.base.schemas import (
    AdminAgentIn,
    AdminAgentOut,
    AdminAgentsOut,
    ChangedOut,
)
from routing_admin.console.exchange.entries import check_expectation

if TYPE_CHECKING:
    from capabilities.models import Agent

router = Router(tags=[TAG])
FIELDS = {"service": "serviceId", "task_type": "taskType", "agent_id": "id"}
"""Where a form's field stands in the JSON."""


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


@router.get("/agents", openapi_extra=gives(AdminAgentsOut))
def admin_list_agents(request: HttpRequest) -> HttpResponse:
    """Every living agent."""
    return answer_at_revision({"agents": [agent_json(line.row, line.keys) for line in list_agents()]})


@router.get("/agents/{path:agent_id}", openapi_extra=gives(AdminAgentOut))
def admin_get_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """One agent."""
    agent = described(require(find_agent(agent_id), "agent", agent_id))
    return answer_entry({"agent": agent}, entry_of(agent))


def entry_of(agent: Mapping[str, Any]) -> dict[str, Any]:
    """What of an agent its tag speaks of: not how many keys it has."""
    return {name: value for name, value in agent.items() if name != "keys"}


def described(row: Agent) -> dict[str, Any]:
    """An agent with the number of its keys."""
    return agent_json(row, sum(key.revoked_at is None for key in list_keys(row)))


@router.put(
    "/agents/{path:agent_id}", openapi_extra={**takes(AdminAgentIn), **gives(ChangedOut)}, response={201: ChangedOut}
)
def admin_put_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Adds or replaces an agent; 409 for one created by a program at run time."""
    body = read_as(request, AdminAgentIn)
    with ledger.exclusive():
        created, told, entry = write_agent(request, agent_id, body)
    return answer_entry({"created": created, "changes": told, "warnings": []}, entry, 201 if created else 200)


def write_agent(request: HttpRequest, agent_id: str, body: AdminAgentIn) -> tuple[bool, list[str], dict[str, Any]]:
    """Whether the agent is new, what changed, and its entry. Raise `ConflictError`, `InvalidError`."""
    row = find_agent(agent_id)
    before = described(row) if row else None
    check_expectation(expectation_in(request), entry_of(before) if before else None)
    if row is not None and row.origin != "administrator":
        raise ConflictError(f"{agent_id} was made at run time: the program that made it changes it. Choose another id.")
    form = form_of(agent_id, body, row)
    if not form.is_valid():
        raise InvalidError(problems_of(form, FIELDS))
    saved = form.save(commit=False)
    if before is not None and before == agent_json(saved, before["keys"]):
        return False, [], entry_of(before)
    save_agent(script_actor(request), saved)
    verb = "changed" if row else "added"
    return row is None, [f"Agent “{agent_id}” is {verb}."], entry_of(agent_json(saved, 0))


def form_of(agent_id: str, body: AdminAgentIn, row: Agent | None) -> AgentForm:
    """The page's form, filled with what the script sent. Raises `InvalidError` as `limit_fields` does."""
    service = find_service(body.serviceId)
    data: dict[str, Any] = {
        "agent_id": agent_id,
        "name": body.name or "",
        "description": body.description or "",
        "service": service.pk if service else "",
        "task_type": body.taskType or "",
        "version": row.version if row else 1,
        **limit_fields(body.limits or {}),
    }
    return AgentForm(data, instance=row) if row else AgentForm(data)


@router.delete("/agents/{path:agent_id}", response={204: None})
def admin_delete_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Deletes an agent with its keys; a missing one is no error."""
    with ledger.exclusive():
        row = find_agent(agent_id)
        check_expectation(expectation_in(request), entry_of(described(row)) if row else None)
        if row is not None:
            delete_agent(script_actor(request), row)
    return HttpResponse(status=204)
