"""A multi-page TIFF or animation that a model cannot read is sent as images, and the loss is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_content import FakeScan

from capabilities.core.delivery.adaptation import Adapted, TextStyle, adapt, summary
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.reader import Reader, parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.message import ChatRequest, Converted, FilePart, Message, Role, TextPart, make_blob
from capabilities.core.vocabulary import Capabilities, Kind

FRAME = Converted(make_blob(b"p" * 900), "image/png", 100, 140)


def animation(mime_type: str, total: int) -> FilePart:
    content = FakeScan(image=replace(FRAME, frames=total), page=FRAME, total=total)
    return FilePart(Kind.IMAGE, mime_type, "film", 44, "a1", content=content)


def adapted(file: FilePart, protocol: str, language: str = "en", **limits: object) -> tuple[Adapted, str]:
    slots = with_limits(slots_for(protocol), {"image": limits} if limits else {})
    reader = Reader(slots, Capabilities(("text", "vision")), parse_policies("extract+convert"))
    result = adapt(ChatRequest((Message(Role.USER, (file,)),)), reader, TextStyle(language))
    assert isinstance(result, Adapted)
    lead = result.chat.messages[0].parts[0]
    assert isinstance(lead, TextPart)
    return result, lead.text.splitlines()[-1]


def test_every_page_of_a_multi_page_tiff_is_sent_as_an_image() -> None:
    result, note = adapted(animation("image/tiff", 3), "openai")
    (delivery,) = result.deliveries
    assert (delivery.delivery.outcome, delivery.delivery.loss, len(delivery.natives)) == (Outcome.CONVERTED, None, 3)
    assert "pages 1–3 of 3 follow as images" in note


def test_omitted_animation_frames_are_reported_as_a_loss() -> None:
    result, note = adapted(animation("image/gif", 40), "gemini")
    (delivery,) = result.deliveries
    assert delivery.delivery.loss is not None
    assert (delivery.delivery.loss.percent, summary(result.deliveries)) == (50, "image=converted:cut")
    assert "frames 1, 2, 3, " in note
    assert " of 40 follow as images" in note


@pytest.mark.parametrize(
    ("language", "words"), [("en", "; only page or frame 1 of 12"), ("zh", "；仅含第 1 帧（页），共 12 帧（页）")]
)
def test_note_on_a_single_allowed_frame_states_the_total_frame_count(language: str, words: str) -> None:
    result, note = adapted(animation("image/apng", 12), "openai", language, maxCount=1)
    (delivery,) = result.deliveries
    assert delivery.delivery.loss is not None
    assert (len(delivery.natives), delivery.delivery.loss.percent) == (1, 92)
    assert note.endswith(words)


def test_animation_in_an_accepted_format_is_sent_unchanged() -> None:
    reader = Reader(slots_for("openai"), Capabilities(("text", "vision")), parse_policies("extract+convert"))
    result = adapt(ChatRequest((Message(Role.USER, (animation("image/gif", 12),)),)), reader, TextStyle("en"))
    assert isinstance(result, Adapted)
    assert result.deliveries[0].delivery.outcome is Outcome.NATIVE
