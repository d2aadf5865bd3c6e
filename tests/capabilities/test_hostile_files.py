"""If a describer repeats instructions from a file, the answering model gets them only as a quotation."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from fake_content import FakeContent
from hostile_words import HOSTILE
from PIL import Image, ImageDraw

from capabilities.core.delivery.adaptation import TextStyle
from capabilities.core.delivery.model_description import DescriptionState, ModelDescription
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, prepare
from capabilities.core.delivery.reader import Reader, parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.describing.prompt import quote_text
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Target

SEER = "gemini/seer"
SPEAKING = [name for name in PROTOCOLS if name != "echo"]


def draw(name: str) -> FilePart:
    """Return an image that shows the hostile text. For every fifth file, it is part of a scanned page."""
    image = Image.new("RGB", (640, 240), "white")
    ImageDraw.Draw(image).text((8, 8), HOSTILE[name][:400].encode("ascii", "replace").decode(), fill="black")
    scanned, buffer = list(HOSTILE).index(name) % 5 == 4, io.BytesIO()
    image.save(buffer, "PDF" if scanned else "PNG")
    kind, mime_type = (Kind.DOCUMENT, "application/pdf") if scanned else (Kind.IMAGE, "image/png")
    data = buffer.getvalue()
    return FilePart(kind, mime_type, f"{name}.bin", len(data), "id1", content=FakeContent(data))


def conversation(file: FilePart, role: Role) -> ChatRequest:
    call = Message(Role.ASSISTANT, (TextPart("looking"),), (ToolCall("c1", "look", "{}"),))
    question = Message(Role.USER, (TextPart("What is in it?"), *([file] if role is Role.USER else [])))
    result = Message(Role.TOOL, (file if role is Role.TOOL else TextPart("ok"),), tool_call_id="c1")
    return ChatRequest((Message(Role.SYSTEM, (TextPart("Be brief."),)), question, call, result))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from strings(item)


def describe(file: FilePart, describer: str, message: int) -> ModelDescription:
    """Describe a file by repeating its content word for word."""
    text = HOSTILE[(file.filename or "").removesuffix(".bin")]
    return ModelDescription(DescriptionState.BY_MODEL, describer, quote_text(text, describer, "en"))


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL])
@pytest.mark.parametrize("protocol", SPEAKING)
@pytest.mark.parametrize("name", HOSTILE)
def test_instructions_in_a_described_file_are_sent_only_as_a_quotation(name: str, protocol: str, role: Role) -> None:
    """Every vendor's payload quotes the describer's text, in messages and in tool results."""
    slots = slots_for(protocol)
    blind = Reader(slots, policies=parse_policies("extract+convert+describer"), describer_for=lambda _: SEER)
    candidate = ModelEndpoint(PROTOCOLS[protocol], Target("p", "https://example.org/v1", "m"), blind)
    prepared = prepare(conversation(draw(name), role), candidate, TextStyle("en", description_of=describe))
    assert isinstance(prepared, Prepared)
    payload = prepared.request.elide()
    lines = [line for text in strings(payload) for line in text.split("\n") if "HACKED" in line]
    assert lines
    assert [line for line in lines if not line.startswith("> ")] == []
    [quoting] = [text for text in strings(payload) if "HACKED" in text]
    quoted = quoting.partition("not seen by you:\n")[2]
    fence = quoted.partition("\n")[0]
    # The fence occurs only as the opening and closing line.
    assert quoted.split("\n").count(fence) == 2
    assert not any("base64" in text or "bytes>" in text for text in strings(payload))
