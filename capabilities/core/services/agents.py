"""Agents and who among them can take what (MCR-4.1 to 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from capabilities.core.message import FilePart
from capabilities.core.services.registry import direction_of
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, TEXT_ONLY, Capabilities, Direction

HELPED = ("vision", "audio", "file")
"""The capabilities an agent is always told about; others (`video`) are added when some agent has them."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """An agent as others see it: `capabilities` are those of its service, or of its route's first ready candidate.

    `expires_at` in seconds since 1970, None for an agent that stays. `is_configured` tells those that administrators
    keep from those that programs make at run time.
    """

    id: str
    name: str = ""
    description: str = ""
    service_id: str | None = None
    capabilities: Capabilities = TEXT_ONLY
    task_type: str | None = None
    expires_at: float | None = None
    is_configured: bool = True


CanRead = Callable[[AgentProfile, FilePart], bool]
"""Decides whether an agent can read this very file; the caller plugs in the real delivery decision."""


def has_the_word(agent: AgentProfile, file: FilePart) -> bool:
    """Whether the agent has the capability that this kind of file takes, formats and limits aside."""
    return agent.capabilities.has(CAPABILITY_OF_KIND[file.kind])


class AgentDirectory:
    """The agents of an installation, in order; of two with one id the first counts. Every answer is in that order."""

    def __init__(self, profiles: Iterable[AgentProfile] = ()) -> None:
        self._agents: dict[str, AgentProfile] = {}
        for profile in profiles:
            self._agents.setdefault(profile.id, profile)

    def select_living(self, now: float) -> AgentDirectory:
        """Those that have not expired at that moment, in seconds since 1970."""
        alive = [agent for agent in self if agent.expires_at is None or agent.expires_at > now]
        return self if len(alive) == len(self) else AgentDirectory(alive)

    def select_configured(self) -> AgentDirectory:
        """Those that administrators keep."""
        return AgentDirectory(agent for agent in self if agent.is_configured)

    def get(self, agent_id: str) -> AgentProfile | None:
        """The agent with that id, or None."""
        return self._agents.get(agent_id)

    def find_capable(self, capability: str, direction: Direction | str = Direction.INPUT) -> list[str]:
        """The ids of agents whose model has the capability in that direction (MCR-4.1, MCR-4.2)."""
        way = direction_of(direction)
        return [agent.id for agent in self if way and agent.capabilities.has(capability, way)]

    def find_readers(self, file: FilePart, can_read: CanRead = has_the_word, *, but: str | None = None) -> list[str]:
        """The ids of agents that can read this very file, as `can_read` decides; `but` is the agent who asks."""
        return [agent.id for agent in self if agent.id != but and can_read(agent, file)]

    def forward_to(self, agent_id: str | None = None) -> dict[str, list[str]]:
        """For each capability the other agents that have it as input (MCR-4.4).

        `vision`, `audio` and `file` are always there, empty when nobody has them; `video` when somebody has it.
        """
        others = {word: self._others(word, agent_id) for word in (*HELPED, "video")}
        return {word: ids for word, ids in others.items() if ids or word in HELPED}

    def context(self, agent_id: str) -> dict[str, Any] | None:
        """What the agent is told about itself and its helpers (MCR-4.3, CONTRACT §4); None for an unknown id."""
        agent = self.get(agent_id)
        if agent is None:
            return None
        return {
            "id": agent.id,
            "name": agent.name,
            "description": agent.description,
            "serviceId": agent.service_id,
            "capabilities": {"input": list(agent.capabilities.input), "output": list(agent.capabilities.output)},
            "forwardTo": self.forward_to(agent.id),
        }

    def __iter__(self) -> Iterator[AgentProfile]:
        return iter(self._agents.values())

    def __len__(self) -> int:
        return len(self._agents)

    def __contains__(self, agent_id: object) -> bool:
        return agent_id in self._agents

    def _others(self, capability: str, agent_id: str | None) -> list[str]:
        return [other for other in self.find_capable(capability) if other != agent_id]
