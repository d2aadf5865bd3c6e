"""Whose calls are counted together? Those of an agent, of one of its keys, of a label, or of an agent's end user."""

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


def id_of_label(kind: LabelKind, name: str) -> str:
    """What the counts of a team or a project are kept under."""
    return f"label:{kind}={name}"


def id_of_user(agent: str, name: str) -> str:
    """What the counts of one end user of an agent are kept under."""
    return f"user:{agent}={name}"


def agent_holder(agent: str, limits: AgentLimits | None) -> LimitHolder | None:
    """An agent as a holder; None where nothing of it is counted."""
    if limits is None or not limits.most:
        return None
    return LimitHolder(id_of_agent(agent), THIS_AGENT, limits)


def maker_holder(agent: str, limits: AgentLimits | None) -> LimitHolder | None:
    """The same agent as a holder for those that it made at run time."""
    if limits is None or not limits.most:
        return None
    return LimitHolder(id_of_agent(agent), translatable("Its creator %(name)s", name=agent), limits, "maker")


def key_holder(public_id: str, limits: AgentLimits | None) -> LimitHolder | None:
    """A key as a holder; None where nothing of it is counted."""
    if limits is None or not limits.most:
        return None
    return LimitHolder(id_of_key(public_id), translatable("The key ra_%(key)s…", key=public_id), limits, "key")


def label_holder(kind: LabelKind, name: str, limits: AgentLimits | None) -> LimitHolder | None:
    """A team or a project as a holder; None where nothing of it is counted."""
    if limits is None or not limits.most:
        return None
    return LimitHolder(id_of_label(kind, name), translatable(TITLES[kind], name=name), limits, f"{kind}={name}")


def user_holder(agent: str, name: str, limits: AgentLimits | None) -> LimitHolder | None:
    """One end user of an agent as a holder; None where nothing is counted of them."""
    if limits is None or not limits.most:
        return None
    title = translatable(TITLES[LabelKind.USER], name=name)
    return LimitHolder(id_of_user(agent, name), title, limits, f"{LabelKind.USER}={name}")
