"""Agents and who among them can take what (MCR-4.1 to 4.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capabilities.core.message import FilePart
from capabilities.core.services.agent_limits import AgentLimits, limits_of
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


# What calls are labelled with, for usage and budgets: a team, a project, the end user they are made for.


class LabelKind(StrEnum):
    """A sort of label, as addresses and JSON name it."""

    TEAM = "team"
    PROJECT = "project"
    USER = "user"


LONGEST: Mapping[LabelKind, int] = {LabelKind.TEAM: 64, LabelKind.PROJECT: 64, LabelKind.USER: 200}
"""So many letters are kept of each; an end user's may be the id that a client made."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one call; empty is none."""

    team: str = ""
    project: str = ""
    user: str = ""

    def of(self, label: LabelKind) -> str:
        """The one of that sort."""
        return str(getattr(self, label.value))

    def over(self, others: Labels) -> Labels:
        """These, and the others' where there is none."""
        return Labels(self.team or others.team, self.project or others.project, self.user or others.user)


NO_LABELS = Labels()


def clean_label(label: LabelKind, value: Any) -> str:
    """What is kept of a label: one line of what can be printed, cut to its length; nothing of anything but text."""
    if not isinstance(value, str):
        return ""
    longest = LONGEST[label]
    if not value.isprintable():
        value = "".join(each if each.isprintable() else " " for each in value[: 4 * longest])
    return " ".join(value[: 4 * longest].split())[:longest].rstrip()


# What an agent's key may use beside its agent's limits, and how its calls are labelled; as its row keeps it.

LIMITS = "limits"
"""The key under which the limits stand, beside `team` and `project`."""


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """A key's own limits, None for none, and the labels of its calls."""

    limits: AgentLimits | None = None
    labels: Labels = NO_LABELS


def terms_of(stored: Mapping[str, Any]) -> KeyTerms:
    """The terms as a key's row keeps them."""
    if not stored:
        return KeyTerms()
    labels = Labels(stored.get(LabelKind.TEAM, ""), stored.get(LabelKind.PROJECT, ""))
    return KeyTerms(limits_of(stored.get(LIMITS) or {}), NO_LABELS if labels == NO_LABELS else labels)


# What a link to an agent's own page holds behind its address: `rap_`, a public part, a secret, a checksum.

LINK_KIND = "rap"
"""How its text begins; whatever looks for leaked secrets knows it by that."""
LINK = re.compile(r"rap_([0-9a-f]{8})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")


def public_part_in(text: str) -> str:
    """The part that may be told; empty for a text that is no link's."""
    match = LINK.fullmatch(text)
    return match[1] if match else ""


def secret_in(text: str) -> str:
    """The part that may not; empty for a text that is no link's."""
    match = LINK.fullmatch(text)
    return match[2] if match else ""
