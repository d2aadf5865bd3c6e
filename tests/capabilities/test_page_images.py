"""A scanned document without text is sent to a vision model as images of its pages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_content import FakeContent, FakeScan

from capabilities.core.delivery.adaptation import Adapted, TextStyle, adapt, summary
from capabilities.core.delivery.decision import Loss, LossKind, Outcome
from capabilities.core.delivery.obstacles import ReasonCode
from capabilities.core.delivery.reader import Reader, parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.message import ChatRequest, Converted, FilePart, Message, NativePart, Role, TextPart, make_blob
from capabilities.core.vocabulary import Capabilities, Kind

PAGE = Converted(make_blob(b"p" * 900), "image/png", 1000, 1400)
SCAN = FilePart(Kind.DOCUMENT, "application/pdf", "scan.pdf", 44, "a1", content=FakeScan(page=PAGE, total=3))
PNG = FilePart(Kind.IMAGE, "image/png", "dot.png", 44, "a2", content=FakeContent())


def reader(*capabilities: str, protocol: str = "openai", policy: str = "extract+convert", **limits: object) -> Reader:
    slots = with_limits(slots_for(protocol), {"image": limits} if limits else {})
    return Reader(slots, Capabilities(("text", *capabilities)), parse_policies(policy))


def adapted(candidate: Reader, *parts: FilePart, role: Role = Role.USER, language: str = "en") -> Adapted:
    result = adapt(ChatRequest((Message(role, parts),)), candidate, TextStyle(language))
    assert isinstance(result, Adapted)
    return result


def native_parts(result: Adapted) -> list[NativePart]:
    return [part for message in result.chat.messages for part in message.parts if isinstance(part, NativePart)]


@pytest.mark.parametrize("policy", ["extract+convert", "convert"])
def test_introduction_of_page_images_lists_the_page_numbers(policy: str) -> None:
    result = adapted(reader("vision", policy=policy), SCAN)
    lead, *pages = result.chat.messages[0].parts
    assert isinstance(lead, TextPart)
    assert lead.text == (
        "Artifact content (scan.pdf):\nArtifact ID: artifact:a1\n"
        "Done: pages 1–3 of 3 follow as images, in order, from: PDF document"
    )
    assert [(page.kind, page.mime_type) for page in pages] == [(Kind.IMAGE, "image/png")] * 3
    assert (result.deliveries[0].delivery.outcome, result.deliveries[0].delivery.loss) == (Outcome.CONVERTED, None)
    assert summary(result.deliveries) == "file=converted"


def test_introduction_of_page_images_is_translated_to_chinese() -> None:
    lead = adapted(reader("vision"), SCAN, language="zh").chat.messages[0].parts[0]
    assert isinstance(lead, TextPart)
    assert lead.text.endswith("处理方式: 第 1–3 页（共 3 页）已转换为图片，依次如下，原为 PDF 文档")


def test_scanned_document_is_sent_natively_or_as_text_or_as_page_images() -> None:
    with_words = replace(SCAN, content=FakeScan(words="Total: 3", page=PAGE))
    assert adapted(reader("vision", "file"), with_words).deliveries[0].delivery.outcome is Outcome.NATIVE
    assert adapted(reader("vision"), with_words).deliveries[0].delivery.outcome is Outcome.EXTRACTED
    assert adapted(reader("vision"), SCAN).deliveries[0].delivery.outcome is Outcome.CONVERTED


@pytest.mark.parametrize(
    ("candidate", "content"),
    [
        (reader(), SCAN.content),
        (reader("vision", policy="extract"), SCAN.content),
        (reader("vision"), FakeScan(page=None)),
        (reader("vision"), FakeContent()),
        (reader("vision", maxBytes=10), SCAN.content),
        (reader("vision", mimeTypes=["image/tiff"]), SCAN.content),
    ],
    ids=["blind", "no convert", "not drawn", "cannot draw", "too large", "no type"],
)
def test_scan_that_cannot_be_rendered_is_described_as_having_no_text(candidate: Reader, content: FakeContent) -> None:
    result = adapted(candidate, replace(SCAN, content=content))
    assert native_parts(result) == []
    assert result.deliveries[0].delivery.outcome is Outcome.DESCRIBED
    assert result.deliveries[0].delivery.reason.code is ReasonCode.NO_TEXT_FOUND


def test_page_images_beyond_twenty_are_reported_as_missing() -> None:
    result = adapted(reader("vision"), replace(SCAN, content=FakeScan(page=PAGE, total=100)))
    assert len(native_parts(result)) == 20
    assert result.deliveries[0].delivery.loss == Loss(LossKind.CUT, 0.8)
    assert summary(result.deliveries) == "file=converted:cut"


def test_page_images_count_toward_the_image_limit() -> None:
    """With a limit of four images, a conversation that already has two can include two pages."""
    result = adapted(reader("vision", maxCount=4), PNG, PNG, SCAN, PNG)
    assert summary(result.deliveries) == "image=native:2;file=converted:cut;image=described"
    assert len(native_parts(result)) == 4


def test_at_most_ten_page_images_are_sent_to_anthropic() -> None:
    """If a request has more than twenty images, Anthropic accepts only smaller ones."""
    result = adapted(reader("vision", protocol="anthropic"), replace(SCAN, content=FakeScan(page=PAGE, total=100)))
    assert len(native_parts(result)) == 10


def test_page_images_of_an_openai_tool_result_follow_in_a_user_message() -> None:
    """OpenAI accepts no images in tool results. The text that introduces the pages remains in the tool result."""
    result = adapted(reader("vision"), SCAN, role=Role.TOOL)
    assert [message.role for message in result.chat.messages] == [Role.TOOL, Role.USER]
    assert len(native_parts(result)) == 3
    assert result.deliveries[0].delivery.hoist


def test_older_scan_is_described_if_newer_images_use_up_the_limit() -> None:
    messages = (Message(Role.USER, (SCAN,)), Message(Role.USER, (PNG,)), Message(Role.USER, (PNG,)))
    result = adapt(ChatRequest(messages), reader("vision", maxCount=4), TextStyle("en"))
    assert isinstance(result, Adapted)
    assert summary(result.deliveries) == "file=described;image=native:2"
