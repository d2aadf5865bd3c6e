"""Endpoints for agents to look up model services and other agents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query

from capabilities.access import request_principal
from capabilities.core.prices import NANO
from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.services.limit_holders import agent_holder_id, key_holder_id
from capabilities.core.vocabulary import Direction
from capabilities.errors import InvalidError
from routing_admin.api import registry
from routing_admin.api.calls import agent_actor, answer, read_as, takes
from routing_admin.api.service_schemas import (
    AgentIn,
    AgentOut,
    AgentsOut,
    CapabilitiesOut,
    KeyLabelsOut,
    LimitOut,
    LimitsOut,
    OwnAgentOut,
    ServicesOut,
    SupportedOut,
)
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import delete_made_agent, put_agent
from routing_admin.dispatch.model_endpoints import build_registry
from routing_admin.request_log.limit_uses import LimitUse, find_limit_uses

router = Router()
AGENT_ID = re.compile(r"[\w.:@+-]{1,120}")
# In `/agents/me` this id means the calling agent.
RESERVED = frozenset({"me"})


@router.get("/services", response=ServicesOut, tags=["services"])
def list_services(
    request: HttpRequest, capability: str | None = None, direction: Direction = Direction.INPUT
) -> HttpResponse:
    """List model services and what each one reads and writes; `capability` selects the services that have it."""
    return answer(ServicesOut(services=registry.list_services(capability, direction)))


@router.get("/services/{path:service_id}/capabilities", response=CapabilitiesOut, tags=["services"])
def service_capabilities(request: HttpRequest, service_id: str) -> HttpResponse:
    """Return what one service reads and writes; the status is 404 for an unknown id."""
    return answer(registry.find_capabilities(service_id))


@router.get("/services/{path:service_id}/has-capability", response=SupportedOut, tags=["services"])
def service_has_capability(
    request: HttpRequest, service_id: str, kind: str = Query(..., alias="type"), direction: Direction = Direction.INPUT
) -> HttpResponse:
    """Return whether the service has the capability; `false` for an unknown id."""
    supported = build_registry(snapshot.current()).has_capability(service_id, kind, direction)
    return answer(SupportedOut(supported=supported))


@router.get("/agents", response=AgentsOut, tags=["agents"])
def list_agents(
    request: HttpRequest, capability: str | None = None, direction: Direction = Direction.INPUT
) -> HttpResponse:
    """List the ids of agents; `capability` selects the agents whose model has it."""
    return answer(AgentsOut(agents=registry.list_agent_ids(capability, direction)))


@router.get("/agents/me", response=OwnAgentOut, tags=["agents"])
def own_agent(request: HttpRequest) -> HttpResponse:
    """Return the calling agent with its limits and its model's capabilities, and agents for the other capabilities."""
    principal = request_principal(request)
    agent, key = agent_holder_id(principal.key_owner), key_holder_id(principal.key)
    uses = find_limit_uses({agent: principal.limits, key: principal.key_limits})
    labels = principal.labels
    return answer(
        OwnAgentOut(
            **registry.describe_agent(principal.agent).model_dump(exclude_unset=True),
            limits=limits_out(principal.limits, uses[agent]),
            keyLimits=limits_out(principal.key_limits, uses[key]),
            keyLabels=KeyLabelsOut(team=labels.team or None, project=labels.project or None),
        )
    )


def limits_out(limits: AgentLimits | None, uses: Sequence[LimitUse]) -> LimitsOut | None:
    if limits is None:
        return None
    return LimitsOut(models=sorted(limits.models or ()), amounts=[_limit_out(use) for use in uses])


def _limit_out(use: LimitUse) -> LimitOut:
    return LimitOut(
        meter=use.meter.value,
        limit=_amount(use, use.limit),
        used=_amount(use, use.used),
        remaining=_amount(use, use.remaining),
        currency=use.currency or None,
        uncounted=use.uncounted,
        resetsAt=use.resets_at.isoformat() if use.resets_at else None,
    )


def _amount(use: LimitUse, amount: int) -> float | int:
    # Money is stored in billionths of the currency unit.
    return amount / NANO if use.currency else amount


@router.get("/agents/{path:agent_id}", response=AgentOut, tags=["agents"])
def one_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Return an agent with its model's capabilities, and for each other capability the agents that have it."""
    return answer(registry.describe_agent(agent_id))


@router.put("/agents/{path:agent_id}", response=AgentOut, tags=["agents"], openapi_extra=takes(AgentIn))
def put_one_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Create or replace an agent at run time; repeating the call has the same result.

    No revision is created. The status is 422 for an invalid id, and 409 if another caller created the agent or the
    caller has already created the maximum number of agents.
    """
    if not AGENT_ID.fullmatch(agent_id) or agent_id in RESERVED:
        message = "An agent's id has 1 to 120 letters, digits and . _ : @ + -, and is not `me`."
        raise InvalidError([Problem("id", message, "range")])
    body = read_as(request, AgentIn)
    put_agent(
        agent_actor(request),
        maker_name(request),
        agent_id,
        name=body.name or "",
        description=body.description or "",
        service_id=body.serviceId,
        task_type=body.taskType,
        expires_in=body.expiresInSeconds,
    )
    return answer(registry.describe_agent(agent_id))


@router.delete("/agents/{path:agent_id}", response={204: None}, tags=["agents"])
def delete_one_agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Delete an agent that the caller created; a missing agent is not an error."""
    delete_made_agent(agent_actor(request), maker_name(request), agent_id)
    return HttpResponse(status=204)


def maker_name(request: HttpRequest) -> str:
    # An agent created on behalf of another agent belongs to the agent whose key made the call.
    principal = request_principal(request)
    return principal.acts_through or principal.agent
