"""Agents and what they can read (MCR-4.1 to 4.4), labels of calls, key terms, and links to agents' own pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capabilities.core.message import FilePart
from capabilities.core.services.agent_limits import AgentLimits, parse_limits
from capabilities.core.services.registry import parse_direction
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, TEXT_ONLY, Capabilities, Direction

ALWAYS_LISTED = ("vision", "audio", "file")
"""Capabilities that `forward_to` always lists. It lists any other (`video`) only if an agent has it."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """An agent's public data.

    `capabilities` are those of the agent's service or, if it uses a route, of the first ready model in the route.
    `expires_at` is in seconds since 1970, or None for a permanent agent. `is_configured` is True for agents that
    administrators configured, and False for agents that programs created at run time.
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
"""Function that returns whether an agent can read a given file."""


def has_capability_for(agent: AgentProfile, file: FilePart) -> bool:
    """Return whether the agent has the capability for this kind of file.

    File formats and size limits are not considered.
    """
    return agent.capabilities.has(CAPABILITY_OF_KIND[file.kind])


class AgentDirectory:
    """An installation's agents, in order. If two have the same id, the first is used."""

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
        side = parse_direction(direction)
        return [agent.id for agent in self if side and agent.capabilities.has(capability, side)]

    def find_readers(
        self, file: FilePart, can_read: CanRead = has_capability_for, *, exclude: str | None = None
    ) -> list[str]:
        """Return the ids of agents that can read this file. The requesting agent, `exclude`, is not among them."""
        return [agent.id for agent in self if agent.id != exclude and can_read(agent, file)]

    def forward_to(self, agent_id: str | None = None) -> dict[str, list[str]]:
        """For each input capability, return the ids of the other agents that have it (MCR-4.4).

        `vision`, `audio` and `file` are always present, even with an empty list. `video` is present only if an agent
        has it.
        """
        agent_ids = {capability: self._others(capability, agent_id) for capability in (*ALWAYS_LISTED, "video")}
        return {capability: ids for capability, ids in agent_ids.items() if ids or capability in ALWAYS_LISTED}

    def context(self, agent_id: str) -> dict[str, Any] | None:
        """Return the agent's data and the agents to which it can forward files, or None for an unknown id (MCR-4.3)."""
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


# A call's labels name its team, project and end user. Usage and budgets can be broken down by label.


class LabelKind(StrEnum):
    """Kinds of labels. The values are the names in URLs and JSON."""

    TEAM = "team"
    PROJECT = "project"
    USER = "user"


MAX_LABEL_CHARS: Mapping[LabelKind, int] = {LabelKind.TEAM: 64, LabelKind.PROJECT: 64, LabelKind.USER: 200}
"""Maximum length of each kind of label. It is higher for end users, because clients may generate long ids."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a call. They are empty if not set."""

    team: str = ""
    project: str = ""
    user: str = ""

    def of(self, label: LabelKind) -> str:
        return str(getattr(self, label.value))

    def with_fallback(self, fallback: Labels) -> Labels:
        """Return these labels, with empty ones filled in from `fallback`."""
        return Labels(self.team or fallback.team, self.project or fallback.project, self.user or fallback.user)


NO_LABELS = Labels()


def clean_label(label: LabelKind, value: Any) -> str:
    """Return a label as one printable line, shortened to the maximum length, or "" if it is not a string."""
    if not isinstance(value, str):
        return ""
    longest = MAX_LABEL_CHARS[label]
    # Truncate generously first, so that only part of a huge label is processed.
    if not value.isprintable():
        value = "".join(char if char.isprintable() else " " for char in value[: 4 * longest])
    return " ".join(value[: 4 * longest].split())[:longest].rstrip()


# The terms of an agent's key, as stored in the database: limits that apply in addition to the agent's, and labels for
# the key's calls.

LIMITS = "limits"
"""JSON key of the limits. It is in the same object as `team` and `project`."""


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """A key's own limits (None if unset), and the labels of its calls."""

    limits: AgentLimits | None = None
    labels: Labels = NO_LABELS


def parse_terms(stored: Mapping[str, Any]) -> KeyTerms:
    if not stored:
        return KeyTerms()
    labels = Labels(stored.get(LabelKind.TEAM, ""), stored.get(LabelKind.PROJECT, ""))
    return KeyTerms(parse_limits(stored.get(LIMITS) or {}), NO_LABELS if labels == NO_LABELS else labels)


# The link to an agent's own page contains a token: `rap_`, a public part, a secret and a checksum.

LINK_KIND = "rap"
"""The token's prefix, which secret scanners recognise."""
LINK = re.compile(r"rap_([0-9a-f]{8})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")


def find_public_id(text: str) -> str:
    """Return the public part of a link's token, or "" for other text."""
    match = LINK.fullmatch(text)
    return match[1] if match else ""


def find_secret(text: str) -> str:
    """Return the secret part of a link's token, or "" for other text."""
    match = LINK.fullmatch(text)
    return match[2] if match else ""
