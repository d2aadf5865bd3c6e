"""Queries for the agent pages: an agent's keys, and which kinds of content its model and other agents can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch
from django.utils import timezone

from capabilities.access import filter_living
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.validity import Validity, judge_validity
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities
from capabilities.last_use import last_uses
from capabilities.models import Agent, AgentKey
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, Configuration

READABLE = ("text", "vision", "audio", "file", "video")


@dataclass(frozen=True, slots=True)
class CapabilityReading:
    """Whether an agent's model can read one kind of content, and the ids of the other agents that can."""

    name: str
    itself: bool
    others: tuple[str, ...]


NAMES = 5
"""Maximum number of agents that an agent's own page names for each kind of content."""


@dataclass(frozen=True, slots=True)
class AgentLine:
    """An agent in the list: what its model can read, how many of its keys work, and the status of its best key.

    The best key is the one whose status is listed first in `Validity`.
    """

    row: Agent
    reads: tuple[str, ...]
    keys: int
    validity: Validity | None


def find_agent(agent_id: str) -> Agent | None:
    return Agent.objects.select_related("service", "owner").filter(agent_id=agent_id).first()


def agent_exists(agent_id: str) -> bool:
    return Agent.objects.filter(agent_id=agent_id).exists()


def list_agent_ids() -> list[str]:
    return list(Agent.objects.values_list("agent_id", flat=True))


def find_key(agent_id: str, public_id: str) -> AgentKey | None:
    """Return an agent's key by its public part, with or without `ra_`, or None."""
    public = public_id.removeprefix("ra_")
    return AgentKey.objects.select_related("agent").filter(agent__agent_id=agent_id, public_id=public).first()


def find_key_by_public_id(public_id: str) -> AgentKey | None:
    return AgentKey.objects.select_related("agent").filter(public_id=public_id).first()


def key_validity(key: AgentKey) -> Validity:
    return judge_validity(
        revoked_at=key.revoked_at,
        expires_at=key.expires_at,
        used_at=last_uses().latest(key),
        now=timezone.now(),
    )


def list_keys(row: Agent) -> list[AgentKey]:
    """Return the agent's keys, with revoked keys last. Last-use times that have not been written yet are included."""
    keys = sorted(row.keys.all(), key=lambda key: key.revoked_at is not None)
    for key in keys:
        key.last_used_at = last_uses().latest(key)
    return keys


def find_profile(row: Agent, directory: AgentDirectory) -> AgentProfile:
    # An expired agent is not in the agent directory. The page shows it as an agent that can read only text.
    return directory.get(row.agent_id) or AgentProfile(row.agent_id, row.name, row.description)


def list_readings(profile: AgentProfile, directory: AgentDirectory) -> list[CapabilityReading]:
    found = []
    for name in READABLE:
        others = tuple(agent_id for agent_id in directory.find_capable(name) if agent_id != profile.id)
        found.append(CapabilityReading(name, profile.capabilities.has(name), others))
    return found


def list_agents() -> list[AgentLine]:
    """Return all unexpired agents, sorted by id, with two database queries."""
    keys = AgentKey.objects.only("agent_id", "public_id", "revoked_at", "expires_at", "last_used_at")
    rows = filter_living(
        Agent.objects.select_related("service", "owner")
        .only(*(field.name for field in Agent._meta.concrete_fields), "service__service_id", "owner__agent_id")
        .prefetch_related(Prefetch("keys", keys))
        .order_by("agent_id")
    )
    directory = snapshot.current().directory
    return [_line(row, directory) for row in rows]


def _line(row: Agent, directory: AgentDirectory) -> AgentLine:
    states = [key_validity(key) for key in row.keys.all()]
    reads = tuple(find_profile(row, directory).capabilities.input)
    best = min(states, key=list(Validity).index, default=None)
    return AgentLine(row, reads, sum(state.works for state in states), best)


@dataclass(frozen=True, slots=True)
class Link:
    """A candidate in a route's chain; `name` is the id of its service or, if it has no service, `provider/model`."""

    name: str
    capabilities: Capabilities
    is_service: bool = True


def list_links(task_type: str) -> tuple[Link, ...]:
    configuration = snapshot.current().configuration
    route = configuration.route(task_type)
    return tuple(_link(configuration, candidate) for candidate in (route.candidates if route else ()))


def _link(configuration: Configuration, candidate: CandidateSpec) -> Link:
    provider = configuration.provider(candidate.provider)
    model = candidate.model or (provider.default_model if provider else "")
    service = configuration.service_at(candidate.provider, model)
    if service is None:
        return Link(f"{candidate.provider}/{model}", TEXT_ONLY, is_service=False)
    return Link(service.id, service.effective_capabilities)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The kinds of content that `all` candidates of a chain can read, and those that only `some` of them can read.

    `unserved` names the candidates without a service.
    """

    links: tuple[Link, ...]
    all: tuple[str, ...]
    some: tuple[str, ...]
    unserved: tuple[str, ...]


def find_guarantee(task_type: str) -> Guarantee | None:
    links = list_links(task_type)
    if not links:
        return None
    sets = [set(link.capabilities.input) for link in links]
    every, any_of = set.intersection(*sets), set.union(*sets)
    ordered = [name for name in (*READABLE, *sorted(any_of - set(READABLE))) if name in any_of]
    return Guarantee(
        links,
        tuple(name for name in ordered if name in every),
        tuple(name for name in ordered if name not in every),
        tuple(link.name for link in links if not link.is_service),
    )


def find_unused_key(keys: Sequence[AgentKey]) -> AgentKey | None:
    """Return the newest working key that has never been used, or None."""
    living = (key for key in keys if key.last_used_at is None and key_validity(key).works)
    return max(living, key=lambda key: key.created_at, default=None)
