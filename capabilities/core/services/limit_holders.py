"""Limit holders: the agents, keys, labels and end users whose calls are counted against a limit."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.services.agents import LabelKind
from capabilities.core.translatable import translatable

THIS_AGENT = translatable("This agent")
TITLES = {
    LabelKind.TEAM: translatable("The team %(name)s"),
    LabelKind.PROJECT: translatable("The project %(name)s"),
    LabelKind.USER: translatable("The end user %(name)s"),
}


@dataclass(frozen=True, slots=True)
class LimitHolder:
    """An agent, key, label or end user whose limits apply to a call.

    `id` is the key under which the holder's calls are counted. `title` names the holder at the beginning of a sentence.
    `word` is the prefix of its limits in response headers (empty for the agent itself).
    """

    id: str
    title: str
    limits: AgentLimits
    word: str = ""


def agent_holder_id(agent: str) -> str:
    return f"agent:{agent}"


def key_holder_id(public_id: str) -> str:
    return f"key:{public_id}"


def label_holder_id(kind: LabelKind, name: str) -> str:
    return f"label:{kind}={name}"


def user_holder_id(agent: str, name: str) -> str:
    return f"user:{agent}={name}"


def agent_holder(agent: str, limits: AgentLimits | None) -> LimitHolder | None:
    """Return the limit holder for an agent, or None if the agent has no limits on amounts."""
    if limits is None or not limits.maximums:
        return None
    return LimitHolder(agent_holder_id(agent), THIS_AGENT, limits)


def maker_holder(agent: str, limits: AgentLimits | None) -> LimitHolder | None:
    """Return the limit holder for the calling agent's creator, or None if the creator has no limits on amounts."""
    if limits is None or not limits.maximums:
        return None
    # Use the creator's own id, so that its calls are counted together with those of the agents that it created.
    return LimitHolder(agent_holder_id(agent), translatable("Its creator %(name)s", name=agent), limits, "maker")


def key_holder(public_id: str, limits: AgentLimits | None) -> LimitHolder | None:
    if limits is None or not limits.maximums:
        return None
    return LimitHolder(key_holder_id(public_id), translatable("The key ra_%(key)s…", key=public_id), limits, "key")


def label_holder(kind: LabelKind, name: str, limits: AgentLimits | None) -> LimitHolder | None:
    if limits is None or not limits.maximums:
        return None
    return LimitHolder(label_holder_id(kind, name), translatable(TITLES[kind], name=name), limits, f"{kind}={name}")


def user_holder(agent: str, name: str, limits: AgentLimits | None) -> LimitHolder | None:
    if limits is None or not limits.maximums:
        return None
    title = translatable(TITLES[LabelKind.USER], name=name)
    return LimitHolder(user_holder_id(agent, name), title, limits, f"{LabelKind.USER}={name}")
