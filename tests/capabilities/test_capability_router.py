"""CapabilityRouter adapts a message to the agent that receives it. Each attachment requires its own capability."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.message import UnreadableError
from capabilities.core.services.adapter import AttachmentInfo, ContentAdapter
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.services.capability_router import AgentMessage, CapabilityRouter, Loaded, RoutingResult
from capabilities.core.services.registry import LlmServiceRegistry
from capabilities.core.texts.description import parse_all
from capabilities.core.vocabulary import Capabilities

CAPABILITY_NAMES = ("vision", "audio", "video", "file")
DATA = bytes(range(48))
B64 = base64.b64encode(DATA).decode()


def services() -> LlmServiceRegistry:
    """Return a registry with a service for every set of capabilities. Its id lists them, such as `text+vision`."""
    ids = [
        "+".join(["text", *(name for bit, name in enumerate(CAPABILITY_NAMES) if number >> bit & 1)])
        for number in range(2 ** len(CAPABILITY_NAMES))
    ]
    return LlmServiceRegistry.from_document(
        {
            "services": [
                {
                    "id": service_id,
                    "name": service_id,
                    "baseURL": "https://example.org/v1",
                    "model": service_id,
                    "apiKey": "",
                    "description": "",
                    "capabilityTags": [],
                    "capabilities": {"input": service_id.split("+"), "output": ["text"]},
                }
                for service_id in ids
            ]
        }
    )


REGISTRY = services()
AGENTS = AgentDirectory([AgentProfile("vision-agent", capabilities=Capabilities(("text", "vision")))])


def load(attachment: AttachmentInfo) -> Loaded:
    if attachment.artifact_ref == "artifact:gone":
        raise UnreadableError("artifact_missing")
    return Loaded(DATA)


def router(language: str = "zh") -> CapabilityRouter:
    return CapabilityRouter(REGISTRY, ContentAdapter(REGISTRY, AGENTS, language), load)


IMAGE = AttachmentInfo("image", "artifact:a1", "screenshot.png", 48, "image/png")
WAV = AttachmentInfo("audio", "artifact:a2", "talk.wav", 48, "audio/wav")
FLAC = AttachmentInfo("audio", "artifact:a3", "song.flac", 48, "audio/flac")
VIDEO = AttachmentInfo("video", "artifact:a4", "clip.mp4", 48, "video/mp4")
FILE = AttachmentInfo("file", "artifact:a5", "report.pdf", 48, "application/pdf")
TEXT_FILE = AttachmentInfo("file", "artifact:a6", "notes.txt", 48, "text/plain")
UNKNOWN = AttachmentInfo(None, "artifact:a7")

PARTS = {
    "image": (IMAGE, "vision", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{B64}"}}),
    "wav": (WAV, "audio", {"type": "input_audio", "input_audio": {"data": B64, "format": "wav"}}),
    "flac": (
        FLAC,
        "audio",
        {"type": "file", "file": {"filename": "song.flac", "file_data": f"data:audio/flac;base64,{B64}"}},
    ),
    "video": (
        VIDEO,
        "video",
        {"type": "file", "file": {"filename": "clip.mp4", "file_data": f"data:video/mp4;base64,{B64}"}},
    ),
    "file": (
        FILE,
        "file",
        {"type": "file", "file": {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{B64}"}},
    ),
    "text file": (
        TEXT_FILE,
        "file",
        {"type": "file", "file": {"filename": "notes.txt", "file_data": f"data:text/plain;base64,{B64}"}},
    ),
    "unknown": (
        UNKNOWN,
        "file",
        {"type": "file", "file": {"filename": "a7", "file_data": f"data:application/octet-stream;base64,{B64}"}},
    ),
}


@pytest.mark.requirement("MCR-2.1", "MCR-2.3", "MCR-2.5")
@pytest.mark.parametrize("name", list(PARTS))
def test_supported_attachment_is_sent_with_its_data(name: str) -> None:
    attachment, capability, part = PARTS[name]
    result = router().route_content(AgentMessage("请看", (attachment,)), f"text+{capability}")
    assert result == RoutingResult(True, [{"type": "text", "text": "请看"}, part])
    assert "textDescription" not in result.as_json()


@pytest.mark.requirement("MCR-2.2", "MCR-2.4", "MCR-2.6")
@pytest.mark.parametrize("name", list(PARTS))
def test_unsupported_attachment_is_described_and_never_read(name: str) -> None:
    attachment, capability, _ = PARTS[name]
    service = "+".join(["text", *(readable for readable in CAPABILITY_NAMES if readable != capability)])

    def refuse(_: AttachmentInfo) -> Loaded:
        raise AssertionError("read a file that is not sent")

    strict = CapabilityRouter(REGISTRY, ContentAdapter(REGISTRY, AGENTS, "zh"), refuse)
    result = strict.route_content(AgentMessage("请看", (attachment,)), service)
    assert not result.can_process
    assert result.unsupported_attachments == (attachment,)
    assert result.processed_content == f"请看\n\n{result.text_description}"
    (block,) = parse_all(result.text_description or "")
    assert (block.artifact_ref, block.filename, block.mime_type) == (
        attachment.artifact_ref,
        attachment.filename,
        attachment.mime_type,
    )


def test_description_between_agents_equals_the_requirements_example() -> None:
    image = AttachmentInfo("image", "artifact:abc123-def456", "screenshot.png", 1258291, "image/png")
    result = router().route_content(AgentMessage("", (image,)), "text")
    assert result.processed_content == (
        "【收到附件】\n类型: 图片\n文件名: screenshot.png\n工件ID: artifact:abc123-def456\n文件大小: 1.2 MB\n"
        "MIME类型: image/png\n\n当前模型不支持直接处理此类型内容。\n"
        "如需处理此图片，可以使用 send_message 工具将其转发给具备视觉理解能力的智能体。\n建议转发给: vision-agent"
    )


def test_descriptions_of_mixed_attachments_are_joined_in_one_text() -> None:
    result = router().route_content(AgentMessage("look", (FILE, IMAGE, WAV)), "text+vision").as_json()
    text, image = result["processedContent"]
    assert text["text"] == f"look\n\n{result['textDescription']}"
    assert image["type"] == "image_url"
    assert [attachment["artifactRef"] for attachment in result["unsupportedAttachments"]] == [
        "artifact:a5",
        "artifact:a2",
    ]
    assert len(parse_all(result["textDescription"])) == 2
    json.dumps(result)


def test_message_without_attachments_is_routed_as_plain_text() -> None:
    assert router().route_content(AgentMessage("hello"), "text") == RoutingResult(True, "hello")
    assert router().route_content(AgentMessage(), "unknown-model") == RoutingResult(True, "")


@pytest.mark.requirement("MCR-E3", "MCR-1.5")
def test_unknown_service_reads_text_only() -> None:
    assert not router().route_content(AgentMessage("", (IMAGE,)), "unknown-model").can_process


@pytest.mark.requirement("MCR-E4")
def test_unloadable_attachment_is_replaced_by_an_error_text_with_its_reference() -> None:
    missing = AttachmentInfo("image", "artifact:gone", "plan.png", 48, "image/png")
    result = router().route_content(AgentMessage("look", (missing, IMAGE)), "text+vision")
    assert not result.can_process
    assert result.unsupported_attachments == (missing,)
    assert result.text_description == (
        "[文件处理失败: plan.png]\n错误: 无法读取文件内容\n请检查文件是否损坏\n工件ID: artifact:gone"
    )
    assert [part["type"] for part in result.processed_content if isinstance(part, dict)] == ["text", "image_url"]


def test_required_capabilities_of_a_message_are_listed_once() -> None:
    required_capabilities = router().get_required_capabilities
    assert required_capabilities(AgentMessage("hello")) == ["text"]
    assert required_capabilities(AgentMessage("", (IMAGE, IMAGE))) == ["text", "vision"]
    assert required_capabilities(AgentMessage("x", (UNKNOWN, WAV, VIDEO, FILE))) == ["text", "file", "audio", "video"]


ATTACHMENTS = st.lists(
    st.builds(
        AttachmentInfo,
        type=st.sampled_from(["image", "audio", "video", "file", "document", "hologram", None]),
        artifact_ref=st.sampled_from(["artifact:a1", "artifact:b2"]),
        filename=st.none() | st.text(max_size=20),
        size=st.none() | st.integers(0, 10**10),
        mime_type=st.sampled_from([None, "image/png", "audio/wav", "application/pdf", "text/plain"]),
    ),
    max_size=5,
).map(tuple)
SERVICE = st.sampled_from([service.id for service in REGISTRY])


@pytest.mark.requirement("MCR-P2", "MCR-P3")
@given(text=st.text(max_size=20), attachments=ATTACHMENTS, service=SERVICE, language=st.sampled_from(["en", "zh"]))
def test_attachment_data_is_sent_only_for_supported_attachments(
    text: str, attachments: tuple[AttachmentInfo, ...], service: str, language: str
) -> None:
    result = router(language).route_content(AgentMessage(text, attachments), service)
    supported = [attachment for attachment in attachments if REGISTRY.has_capability(service, attachment.capability)]
    lacking = tuple(attachment for attachment in attachments if attachment not in supported)
    assert result.can_process == (not lacking)
    assert result.unsupported_attachments == lacking
    content = result.processed_content
    parts = [] if isinstance(content, str) else [part for part in content if part["type"] != "text"]
    text_sent = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    assert isinstance(content, str) == (not supported)
    assert len(parts) == len(supported)
    assert all(B64 in json.dumps(part) for part in parts)
    assert B64[:22] not in text_sent
    assert len(parse_all(result.text_description or "")) == len(lacking)
    assert text in text_sent
