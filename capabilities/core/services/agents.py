"""Agents, and which of them can take what content (MCR-4.1 to 4.4), with labels, key terms and page links."""

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
"""Capabilities that are always listed for an agent. Others (`video`) are listed only if some agent has them."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """An agent as others see it: `capabilities` are those of its service or its route's first ready candidate.

    `expires_at` is in seconds since 1970, None for a permanent agent. `is_configured` is True for agents that
    administrators keep, False for those that programs make at run time.
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
"""Decides whether an agent can read this very file. Callers pass the real delivery decision."""


def has_capability_for(agent: AgentProfile, file: FilePart) -> bool:
    """Return whether the agent has the capability for this kind of file, formats and limits aside."""
    return agent.capabilities.has(CAPABILITY_OF_KIND[file.kind])


class AgentDirectory:
    """The agents of an installation, in order. If two have the same id, the first counts."""

    def __init__(self, profiles: Iterable[AgentProfile] = ()) -> None:
        self._agents: dict[str, AgentProfile] = {}
        for profile in profiles:
            self._agents.setdefault(profile.id, profile)

    def select_living(self, now: float) -> AgentDirectory:
        """Return the agents that have not expired at `now`, in seconds since 1970."""
        alive = [agent for agent in self if agent.expires_at is None or agent.expires_at > now]
        return self if len(alive) == len(self) else AgentDirectory(alive)

    def select_configured(self) -> AgentDirectory:
        return AgentDirectory(agent for agent in self if agent.is_configured)

    def get(self, agent_id: str) -> AgentProfile | None:
        return self._agents.get(agent_id)

    def find_capable(self, capability: str, direction: Direction | str = Direction.INPUT) -> list[str]:
        """Return the ids of agents whose model has the capability (MCR-4.1, MCR-4.2)."""
        side = direction_of(direction)
        return [agent.id for agent in self if side and agent.capabilities.has(capability, side)]

    def find_readers(
        self, file: FilePart, can_read: CanRead = has_capability_for, *, exclude: str | None = None
    ) -> list[str]:
        """Return the ids of agents that can read this very file, except `but`, the asking agent."""
        return [agent.id for agent in self if agent.id != exclude and can_read(agent, file)]

    def forward_to(self, agent_id: str | None = None) -> dict[str, list[str]]:
        """Return by capability the other agents that have it as input (MCR-4.4).

        `vision`, `audio` and `file` are always present, possibly empty; `video` only if an agent has it.
        """
        agent_ids = {capability: self._others(capability, agent_id) for capability in (*HELPED, "video")}
        return {capability: ids for capability, ids in agent_ids.items() if ids or capability in HELPED}

    def context(self, agent_id: str) -> dict[str, Any] | None:
        """Return what an agent learns about itself and its helpers (MCR-4.3), or None for an unknown id."""
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
        return [other_id for other_id in self.find_capable(capability) if other_id != agent_id]


# Labels of calls, for usage and budgets: a team, a project, the end user they are made for.


class LabelKind(StrEnum):
    """A kind of label, by its name in URLs and JSON."""

    TEAM = "team"
    PROJECT = "project"
    USER = "user"


LONGEST: Mapping[LabelKind, int] = {LabelKind.TEAM: 64, LabelKind.PROJECT: 64, LabelKind.USER: 200}
"""The most characters kept of each. An end user's may be the id that a client made."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one call; empty for none."""

    team: str = ""
    project: str = ""
    user: str = ""

    def of(self, label: LabelKind) -> str:
        return str(getattr(self, label.value))

    def over(self, fallback: Labels) -> Labels:
        """Return these labels, completed by the others' where empty."""
        return Labels(self.team or fallback.team, self.project or fallback.project, self.user or fallback.user)


NO_LABELS = Labels()


def clean_label(label: LabelKind, value: Any) -> str:
    """Return a label as one printable line, cut to its length, or "" for anything but text."""
    if not isinstance(value, str):
        return ""
    longest = LONGEST[label]
    # Cut to four times the length first, so that a huge label is not processed whole.
    if not value.isprintable():
        value = "".join(char if char.isprintable() else " " for char in value[: 4 * longest])
    return " ".join(value[: 4 * longest].split())[:longest].rstrip()


# Terms of an agent's key: limits in addition to its agent's, and labels of its calls, as its row stores them.

LIMITS = "limits"
"""The key of the limits, beside `team` and `project`."""


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """A key's own limits, None if unset, and the labels of its calls."""

    limits: AgentLimits | None = None
    labels: Labels = NO_LABELS


def terms_of(stored: Mapping[str, Any]) -> KeyTerms:
    if not stored:
        return KeyTerms()
    labels = Labels(stored.get(LabelKind.TEAM, ""), stored.get(LabelKind.PROJECT, ""))
    return KeyTerms(limits_of(stored.get(LIMITS) or {}), NO_LABELS if labels == NO_LABELS else labels)


# The token in a link to an agent's own page: `rap_`, a public part, a secret, a checksum.

LINK_KIND = "rap"
"""The token's prefix, by which scanners for leaked secrets recognise it."""
LINK = re.compile(r"rap_([0-9a-f]{8})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")


def public_part_in(text: str) -> str:
    """Return the part of a link's token that may be shown, or "" for other text."""
    match = LINK.fullmatch(text)
    return match[1] if match else ""


def secret_in(text: str) -> str:
    """Return the secret part of a link's token, or "" for other text."""
    match = LINK.fullmatch(text)
    return match[2] if match else ""
