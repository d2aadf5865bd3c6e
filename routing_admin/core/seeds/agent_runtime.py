"""An agent's interface at run time: its context, and the router for messages that it receives (MCR-4.3, MCR-6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capabilities.core.services.adapter import ContentAdapter
from capabilities.core.services.agents import AgentDirectory, AgentProfile, CanRead, has_capability_for
from capabilities.core.services.capability_router import AgentMessage, CapabilityRouter, Load, RoutingResult
from capabilities.core.services.registry import LlmServiceRegistry


@dataclass(frozen=True, slots=True)
class AgentRuntime:
    """An agent in an agent directory; `load` reads attachments, and `can_read` decides which agents can read a file."""

    agent: AgentProfile
    registry: LlmServiceRegistry
    directory: AgentDirectory
    load: Load
    language: str = "en"
    can_read: CanRead = has_capability_for

    @property
    def context(self) -> Mapping[str, Any]:
        """Response of `GET /agents/me`: the agent's capabilities, and the agents that can handle other content."""
        return self.directory.context(self.agent.id) or AgentDirectory([self.agent]).context(self.agent.id) or {}

    @property
    def router(self) -> CapabilityRouter:
        """A router that suggests agents which can handle a file, but never this agent itself."""
        adapter = ContentAdapter(
            self.registry, self.directory, self.language, can_read=self.can_read, agent_id=self.agent.id
        )
        return CapabilityRouter(self.registry, adapter, self.load)

    def receive(self, message: AgentMessage) -> RoutingResult:
        """Return the message in a form that the agent's service can read.

        An agent without a service can read only text.
        """
        return self.router.route_content(message, self.agent.service_id or "")
