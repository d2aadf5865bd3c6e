"""For a locked or damaged document, a model gets a description with the reason, even if it reads such files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from fake_content import FakeContent

from capabilities.core.delivery.adaptation import Adapted, PartDelivery, TextStyle, adapt, is_sent_unchanged, summary
from capabilities.core.delivery.decision import Outcome, Reader, parse_policies
from capabilities.core.delivery.flaws import find_flaw
from capabilities.core.delivery.obstacles import ReasonCode
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.message import ChatRequest, FilePart, Inspection, Message, Role
from capabilities.core.texts.description import parse
from capabilities.core.vocabulary import Capabilities, Kind

LOCKED, DAMAGED = Inspection(locked=True), Inspection(damaged=True)


@dataclass(frozen=True)
class OpenedContent(FakeContent):
    """A file's content with a given inspection result."""

    found: Inspection = field(default_factory=Inspection)

    def inspect(self) -> Inspection:
        self._check()
        return self.found


def document(found: Inspection, mime_type: str = "application/pdf", words: str | None = None) -> FilePart:
    return FilePart(
        Kind.DOCUMENT, mime_type, "a.pdf", 44, "a1", content=OpenedContent(b"x" * 44, words=words, found=found)
    )


def delivered(
    file: FilePart, policy: str, *capabilities: str, language: str = "en", wire: str = "openai"
) -> PartDelivery:
    reader = Reader(slots_for(wire), Capabilities(("text", *capabilities)), parse_policies(policy))
    style = TextStyle(language, lambda _: ("reader-agent",))
    adapted = adapt(ChatRequest((Message(Role.USER, (file,)),)), reader, style)
    assert isinstance(adapted, Adapted)
    assert "file=described" in summary(adapted.deliveries)
    return adapted.deliveries[0]


@pytest.mark.parametrize("policy", ["describe", "extract", "convert", "extract+convert", "native_only"])
@pytest.mark.parametrize(("found", "code"), [(LOCKED, ReasonCode.LOCKED), (DAMAGED, ReasonCode.DAMAGED)])
def test_file_capable_model_gets_the_reason_instead_of_a_flawed_document(
    policy: str, found: Inspection, code: ReasonCode
) -> None:
    delivery = delivered(document(found), policy, "vision", "file")
    assert (delivery.delivery.outcome, delivery.delivery.reason.code) == (Outcome.DESCRIBED, code)


@pytest.mark.parametrize("policy", ["extract", "convert", "extract+convert"])
def test_model_without_file_capability_gets_the_same_reason(policy: str) -> None:
    assert delivered(document(LOCKED), policy, "vision").delivery.reason.code is ReasonCode.LOCKED


@pytest.mark.parametrize("language", ["en", "zh"])
def test_description_of_a_flawed_document_has_the_reason_and_names_no_agent(language: str) -> None:
    blocks = [
        parse(delivered(document(found), "describe", "file", language=language).text or "")
        for found in (LOCKED, DAMAGED)
    ]
    assert [(block.flaw, block.agents, block.filename) for block in blocks if block] == [
        ("locked", (), "a.pdf"),
        ("damaged", (), "a.pdf"),
    ]


def test_document_with_a_known_page_count_is_not_opened_again() -> None:
    counted = replace(document(LOCKED), pages=3)
    reader = Reader(slots_for("openai"), Capabilities(("text", "file")))
    adapted = adapt(ChatRequest((Message(Role.USER, (counted,)),)), reader, TextStyle("en"))
    assert isinstance(adapted, Adapted)
    assert adapted.deliveries[0].delivery.outcome is Outcome.NATIVE


@pytest.mark.parametrize("found", [LOCKED, DAMAGED])
def test_archive_is_opened_before_its_contents_are_listed(found: Inspection) -> None:
    archive = replace(document(found, "application/zip"), kind=Kind.OTHER)
    assert find_flaw(archive) is not None


def test_inline_document_is_opened_before_sending() -> None:
    chat = ChatRequest((Message(Role.USER, (replace(document(Inspection()), artifact_id=None),)),))
    reader = Reader(slots_for("openai"), Capabilities(("text", "file")))
    assert not is_sent_unchanged(chat, reader)
