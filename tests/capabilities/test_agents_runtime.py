"""An agent's runtime: its context, and the router that adapts messages to its model."""

from __future__ import annotations

import base64

import pytest

from capabilities.core.services.adapter import AttachmentInfo
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.services.capability_router import AgentMessage, CapabilityRouter, Loaded
from capabilities.core.services.registry import LlmServiceConfig, LlmServiceRegistry
from capabilities.core.texts import description
from capabilities.core.vocabulary import Capabilities
from routing_admin.core.seeds.agent_runtime import AgentRuntime

PIXELS = bytes(range(64))
VISION = Capabilities(("text", "vision"))
REGISTRY = LlmServiceRegistry(
    [
        LlmServiceConfig("text-model", "Text", "https://a.example", "m1"),
        LlmServiceConfig("vision-model", "Vision", "https://a.example", "m2", capabilities=VISION),
    ]
)
WRITER = AgentProfile("writer", service_id="text-model")
SEER = AgentProfile("seer", service_id="vision-model", capabilities=VISION)
WITHOUT_SERVICE = AgentProfile("homeless")
AGENTS = AgentDirectory([WRITER, SEER, WITHOUT_SERVICE])
PICTURE = AgentMessage("What is this?", (AttachmentInfo("image", "artifact:a1", "a.png", 64, "image/png"),))


def runtime(agent: AgentProfile) -> AgentRuntime:
    return AgentRuntime(agent, REGISTRY, AGENTS, lambda _: Loaded(PIXELS, "image/png"), "zh")


@pytest.mark.requirement("MCR-6.3", "MCR-4.3")
def test_agent_runtime_has_router_capabilities_and_helpers() -> None:
    own = runtime(WRITER)
    assert isinstance(own.router, CapabilityRouter)
    assert own.context["capabilities"] == {"input": ["text"], "output": ["text"]}
    assert own.context["forwardTo"]["vision"] == ["seer"]


@pytest.mark.requirement("MCR-4.4", "MCR-2.1", "MCR-2.2")
def test_text_agent_forwards_an_image_by_artifact_reference_to_a_vision_agent() -> None:
    routed = runtime(WRITER).receive(PICTURE)
    assert not routed.can_process
    parsed = description.parse(routed.text_description or "")
    assert parsed is not None
    assert (parsed.agents, parsed.artifact_ref) == (("seer",), "artifact:a1")

    helper = AGENTS.get(parsed.agents[0])
    assert helper is not None
    handed_on = AgentMessage("", (AttachmentInfo("image", parsed.artifact_ref or ""),))
    routed_to_helper = runtime(helper).receive(handed_on)
    assert routed_to_helper.can_process
    assert base64.b64encode(PIXELS).decode() in str(routed_to_helper.processed_content)


def test_agent_without_a_service_reads_text_only() -> None:
    """The capabilities of an agent without a service are unknown, so it counts as text-only (MCR-1.5)."""
    routed = runtime(WITHOUT_SERVICE).receive(PICTURE)
    assert routed.processed_content == f"What is this?\n\n{routed.text_description}"
    parsed = description.parse(routed.text_description or "")
    assert parsed is not None
    assert "homeless" not in parsed.agents


def test_agent_outside_the_directory_can_read_its_own_context() -> None:
    """For example, the agent may have just expired."""
    unlisted = AgentProfile("stranger", capabilities=VISION)
    assert runtime(unlisted).context["capabilities"]["input"] == ["text", "vision"]
