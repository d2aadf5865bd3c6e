"""Whose calls are counted together? Those of an agent, of one of its keys, of a label, or of an agent's end user."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.worded import worded

THIS_AGENT = worded("This agent")


@dataclass(frozen=True, slots=True)
class LimitHolder:
    """One whose limits a call has to keep to.

    `id` is what counts are kept under, `title` begins a sentence about it; `word` stands before its limits in headers,
    empty for the agent itself.
    """

    id: str
    title: str
    limits: AgentLimits
    word: str = ""


def id_of_agent(agent: str) -> str:
    """What an agent's counts are kept under."""
    return f"agent:{agent}"


def id_of_key(public_id: str) -> str:
    """What a key's counts are kept under, by its public part."""
    return f"key:{public_id}"


def agent_holder(agent: str, limits: AgentLimits | None) -> LimitHolder | None:
    """An agent as a holder; None where nothing of it is counted."""
    if limits is None or not limits.most:
        return None
    return LimitHolder(id_of_agent(agent), THIS_AGENT, limits)


def key_holder(public_id: str, limits: AgentLimits | None) -> LimitHolder | None:
    """A key as a holder; None where nothing of it is counted."""
    if limits is None or not limits.most:
        return None
    return LimitHolder(id_of_key(public_id), worded("The key ra_%(key)s…", key=public_id), limits, "key")
