"""What the agents' pages show: what each reads itself, and who takes the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q
from django.utils import timezone

from capabilities.access import filter_living
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities
from capabilities.last_use import last_uses
from capabilities.models import Agent, AgentKey
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, Configuration

READABLE = ("text", "vision", "audio", "file", "video")


@dataclass(frozen=True, slots=True)
class Reading:
    """One kind of content for one agent: it reads it itself, or `others` can take it."""

    name: str
    itself: bool
    others: tuple[str, ...]


NAMES = 5
"""Agents that a list names of those one hands over to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLine:
    """One agent of the list."""

    row: Agent
    reads: tuple[str, ...]
    hands_to: tuple[str, ...]
    unread: tuple[str, ...]
    keys: int

    @property
    def others(self) -> int:
        """How many it hands over to beside the first few that a list names."""
        return max(0, len(self.hands_to) - NAMES)

    @property
    def is_locked_out(self) -> bool:
        """Whether it cannot call for want of a key that works; one made at run time comes in with its maker's."""
        return not self.keys and self.row.origin != Agent.Origin.RUNTIME


def find_agent(agent_id: str) -> Agent | None:
    """The agent with that id, an expired one too; None for none."""
    return Agent.objects.select_related("service", "owner").filter(agent_id=agent_id).first()


def agent_exists(agent_id: str) -> bool:
    """Whether there is an agent with that id."""
    return Agent.objects.filter(agent_id=agent_id).exists()


def list_agent_ids() -> list[str]:
    """The ids of all agents, the expired ones too."""
    return list(Agent.objects.values_list("agent_id", flat=True))


def find_key(agent_id: str, public_id: str) -> AgentKey | None:
    """A key by its agent and its public part, with or without the `ra_` before it; None for none."""
    public = public_id.removeprefix("ra_")
    return AgentKey.objects.select_related("agent").filter(agent__agent_id=agent_id, public_id=public).first()


def find_key_by_public_id(public_id: str) -> AgentKey | None:
    """The key with that public part, whoever's it is; None for none."""
    return AgentKey.objects.select_related("agent").filter(public_id=public_id).first()


def list_keys(row: Agent) -> list[AgentKey]:
    """The keys: those that work first, the revoked ones last; a use that is not written yet counts."""
    keys = sorted(row.keys.all(), key=lambda key: key.revoked_at is not None)
    for key in keys:
        key.last_used_at = last_uses().latest(key)
    return keys


def find_profile(row: Agent, directory: AgentDirectory) -> AgentProfile:
    """The agent as others see it; one that expired counts as text only."""
    return directory.get(row.agent_id) or AgentProfile(row.agent_id, row.name, row.description)


def list_readings(profile: AgentProfile, directory: AgentDirectory) -> list[Reading]:
    """What the agent reads, and who takes what it cannot."""
    found = []
    for name in READABLE:
        others = tuple(other for other in directory.find_capable(name) if other != profile.id)
        found.append(Reading(name, profile.capabilities.has(name), others))
    return found


def list_agents(q: str = "") -> list[AgentLine]:
    """The agents that match; two queries."""
    now = timezone.now()
    alive = Q(keys__revoked_at=None) & (Q(keys__expires_at=None) | Q(keys__expires_at__gt=now))
    rows = filter_living(
        Agent.objects.select_related("service", "owner")
        .annotate(working=Count("keys", filter=alive))
        .order_by("agent_id")
    )
    if q:
        rows = rows.filter(Q(agent_id__icontains=q) | Q(name__icontains=q) | Q(description__icontains=q))
    directory = snapshot.current().directory
    takers = {name: directory.find_capable(name) for name in READABLE}
    handed: dict[tuple[str, ...], tuple[str, ...]] = {}  # agents that read the same hand over to the same
    lines = []
    for row in rows:
        reads = find_profile(row, directory).capabilities
        lacks = tuple(name for name in READABLE if not reads.has(name))
        if lacks not in handed:
            handed[lacks] = tuple(dict.fromkeys(other for name in lacks for other in takers[name]))
        unread = tuple(name for name in lacks if not takers[name])
        lines.append(
            AgentLine(row=row, reads=tuple(reads.input), hands_to=handed[lacks], unread=unread, keys=row.working)
        )
    return lines


@dataclass(frozen=True, slots=True)
class Link:
    """One candidate of a route's chain: its service's id, else `provider/model`, and what it counts as able to do."""

    name: str
    capabilities: Capabilities
    is_service: bool = True


def list_links(task_type: str) -> tuple[Link, ...]:
    """Return the candidates of a route in order, empty for an unknown one; without a service they read text only."""
    configuration = snapshot.current().configuration
    route = configuration.route(task_type)
    return tuple(_link(configuration, each) for each in (route.candidates if route else ()))


def _link(configuration: Configuration, candidate: CandidateSpec) -> Link:
    provider = configuration.provider(candidate.provider)
    model = candidate.model or (provider.default_model if provider else "")
    service = configuration.service_at(candidate.provider, model)
    if service is None:
        return Link(f"{candidate.provider}/{model}", TEXT_ONLY, is_service=False)
    return Link(service.id, service.effective_capabilities)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a whole chain reads: `all` of its candidates do, only `some` do; `unserved` have no service row."""

    links: tuple[Link, ...]
    all: tuple[str, ...]
    some: tuple[str, ...]
    unserved: tuple[str, ...]


def find_guarantee(task_type: str) -> Guarantee | None:
    """What the chain of a route guarantees; None for an unknown one."""
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


def find_waiting_key(keys: Sequence[AgentKey]) -> AgentKey | None:
    """The newest key that works and was never used; None where there is none."""
    now = timezone.now()
    living = (key for key in keys if key.revoked_at is None and (key.expires_at is None or key.expires_at > now))
    return max((key for key in living if key.last_used_at is None), key=lambda key: key.created_at, default=None)
