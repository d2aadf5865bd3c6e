"""ContentAdapter describes unreadable content as text and as structured data, and names agents that can read it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import FilePart
from capabilities.core.services.adapter import AttachmentInfo, ContentAdapter
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.services.registry import LlmServiceConfig, LlmServiceRegistry
from capabilities.core.texts import description
from capabilities.core.vocabulary import Capabilities, Kind

TEXT = Capabilities()
VISION = Capabilities(("text", "vision"))
ALL = Capabilities(("text", "vision", "audio", "file"))

SERVICES = LlmServiceRegistry(
    [
        LlmServiceConfig("text-model", "Text", "https://a.example", "m1"),
        LlmServiceConfig("vision-model", "Vision", "https://a.example", "m2", capabilities=VISION),
    ]
)
AGENTS = AgentDirectory(
    [
        AgentProfile("text-agent", service_id="text-model", capabilities=TEXT),
        AgentProfile("vision-agent", service_id="vision-model", capabilities=VISION),
        AgentProfile("multimodal-agent", service_id="multimodal-model", capabilities=ALL),
    ]
)

names = st.text(min_size=1)
attachments = st.builds(
    AttachmentInfo,
    type=st.sampled_from(("image", "audio", "video", "file", "document", "other", "surprise", None)),
    artifact_ref=names.map("artifact:{}".format),
    filename=st.none() | names,
    size=st.none() | st.integers(0, 10**12),
    mime_type=st.none() | st.sampled_from(("image/png", "application/pdf", "application/zip")),
)
profiles = st.builds(AgentProfile, id=names, capabilities=st.sampled_from((TEXT, VISION, ALL)))


@pytest.mark.requirement("MCR-P4", "MCR-P5", "MCR-3.1", "MCR-3.2", "MCR-3.3", "MCR-3.4", "MCR-3.5", "MCR-3.6")
@given(attachments, st.lists(profiles, max_size=3, unique_by=lambda agent: agent.id), st.sampled_from(("zh", "en")))
def test_description_text_and_structured_info_have_the_same_values(
    attachment: AttachmentInfo, agents: list[AgentProfile], language: str
) -> None:
    directory = AgentDirectory(agents)
    adapted = ContentAdapter(SERVICES, directory, language).adapt_to_text(attachment)
    parsed = description.parse(adapted.text)
    info = adapted.structured_info
    assert parsed is not None
    assert parsed.artifact_ref == info["artifactRef"] == attachment.artifact_ref
    assert parsed.content_type == info["contentType"]
    assert parsed.filename == info.get("filename") == attachment.filename
    assert info.get("size") == attachment.size
    assert parsed.size == (None if attachment.size is None else description.human_size(attachment.size))
    assert parsed.mime_type == info.get("mimeType") == attachment.mime_type
    assert list(parsed.agents) == info["suggestedAgents"] == directory.find_capable(attachment.capability)


@pytest.mark.parametrize(
    ("kind", "content_type", "capability"),
    [
        ("image", "image", "vision"),
        ("audio", "audio", "audio"),
        ("video", "video", "video"),
        ("file", "file", "file"),
        ("document", "file", "file"),
        ("spreadsheet", "file", "file"),
        ("text", "file", "file"),
        (None, "file", "file"),
    ],
)
def test_attachment_type_determines_the_capability(kind: str | None, content_type: str, capability: str) -> None:
    attachment = AttachmentInfo(kind, "artifact:a")
    info = ContentAdapter(SERVICES, AGENTS).adapt_to_text(attachment).structured_info
    assert (attachment.capability, info["contentType"]) == (capability, content_type)


def test_structured_info_omits_unknown_values() -> None:
    adapter = ContentAdapter(SERVICES, AGENTS, "zh")
    full = adapter.adapt_to_text(AttachmentInfo("image", "artifact:a", "a.png", 3, "image/png"))
    assert full.structured_info == {
        "contentType": "image",
        "artifactRef": "artifact:a",
        "filename": "a.png",
        "size": 3,
        "mimeType": "image/png",
        "suggestedAgents": ["vision-agent", "multimodal-agent"],
    }
    described = adapter.adapt_to_text(AttachmentInfo("video", "artifact:a"))
    assert described.structured_info == {"contentType": "video", "artifactRef": "artifact:a", "suggestedAgents": []}


def test_several_attachments_are_described_in_order() -> None:
    adapter = ContentAdapter(SERVICES, AGENTS, "zh")
    pair = [AttachmentInfo("image", "artifact:a"), AttachmentInfo("audio", "artifact:b")]
    assert adapter.adapt_multiple(pair) == [adapter.adapt_to_text(attachment) for attachment in pair]
    assert adapter.adapt_multiple([]) == []


def test_only_agents_that_can_read_the_file_are_suggested() -> None:
    """Two agents have the capability, but only one of them reads TIFF."""

    def can_read(agent: AgentProfile, file: FilePart) -> bool:
        return agent.capabilities.has("vision") and (file.mime_type != "image/tiff" or agent.id == "multimodal-agent")

    adapter = ContentAdapter(SERVICES, AGENTS, can_read=can_read)
    tiff = adapter.adapt_to_text(AttachmentInfo("image", "artifact:a", mime_type="image/tiff"))
    assert tiff.structured_info["suggestedAgents"] == ["multimodal-agent"]
    png = adapter.adapt_to_text(AttachmentInfo("image", "artifact:a", mime_type="image/png"))
    assert png.structured_info["suggestedAgents"] == ["vision-agent", "multimodal-agent"]


@pytest.mark.requirement("MCR-3.5")
@pytest.mark.parametrize("mime_type", ["text/csv", "TEXT/Plain; charset=utf-8", "application/json"])
def test_every_file_capable_agent_is_suggested_for_a_text_file(mime_type: str) -> None:
    """Every model reads text files, even if its protocol's file slot accepts only PDF."""
    adapter = ContentAdapter(SERVICES, AGENTS, can_read=lambda agent, file: file.mime_type == "application/pdf")
    described = adapter.adapt_to_text(AttachmentInfo("file", "artifact:t1", "notes", 5, mime_type))
    assert described.structured_info["suggestedAgents"] == AGENTS.find_capable("file")


def test_requesting_agent_is_never_suggested_to_itself() -> None:
    adapter = ContentAdapter(SERVICES, AGENTS, agent_id="vision-agent")
    image = adapter.adapt_to_text(AttachmentInfo("image", "artifact:a"))
    assert image.structured_info["suggestedAgents"] == ["multimodal-agent"]


@pytest.mark.requirement("MCR-4.1", "MCR-4.2")
def test_agents_and_services_are_found_by_capability() -> None:
    adapter = ContentAdapter(SERVICES, AGENTS)
    assert adapter.find_capable_agents("vision") == ["vision-agent", "multimodal-agent"]
    assert adapter.find_capable_agents("video") == []
    assert adapter.find_capable_services("vision") == ["vision-model"]


@pytest.mark.requirement("MCR-E4")
def test_unreadable_attachment_is_described_with_its_reference() -> None:
    adapted = ContentAdapter(SERVICES, AGENTS).adapt_to_text(AttachmentInfo("image", "artifact:a"), unreadable=True)
    parsed = description.parse(adapted.text)
    assert parsed is not None
    assert (parsed.unreadable, parsed.artifact_ref) == (True, "artifact:a")


def test_attachment_converts_to_a_file_part_without_content() -> None:
    part = AttachmentInfo("file", "artifact:a", "a.pdf", 3, "application/pdf").file
    assert part == FilePart(Kind.DOCUMENT, "application/pdf", "a.pdf", 3, "a")
    assert AttachmentInfo("file", "artifact:a", mime_type="application/zip").kind is Kind.OTHER


def test_description_without_send_message_names_no_tool() -> None:
    adapter = ContentAdapter(SERVICES, AGENTS, "zh", has_send_message=False)
    assert "send_message" not in adapter.adapt_to_text(AttachmentInfo("image", "artifact:a")).text
