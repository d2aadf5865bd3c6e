"""With the policy `describer`, a model that cannot read a file gets a description that another model wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_content import FakeContent
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.adaptation import Adapted, TextStyle, adapt, is_sent_unchanged, summary
from capabilities.core.delivery.decision import Reader, can_read, decide
from capabilities.core.delivery.model_description import DescriptionState, ModelDescription
from capabilities.core.delivery.model_endpoint import needs_description
from capabilities.core.delivery.reader import parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.texts.parser import parse_all
from capabilities.core.vocabulary import Capabilities, Kind

PICTURE = FilePart(Kind.IMAGE, "image/png", "cat.png", 30, "id1", content=FakeContent(b"x" * 30))
POLICY = "extract+convert+describer"
SEER = "gemini/seer"


def reader(*capabilities: str, policy: str = POLICY, describer: str = SEER) -> Reader:
    return Reader(
        slots_for("openai"),
        Capabilities(("text", *capabilities)),
        parse_policies(policy),
        describer_for=lambda _: describer,
    )


def style(state: DescriptionState, text: str = "", language: str = "en") -> TextStyle:
    return TextStyle(language, description_of=lambda _, describer, __: ModelDescription(state, describer, text))


BY_MODEL = style(DescriptionState.BY_MODEL, "<A cat on a mat.>")


def chat_with(*files: FilePart) -> ChatRequest:
    return ChatRequest((Message(Role.USER, (TextPart("What is it?"), *files)),))


def adapted(chat: ChatRequest, candidate: Reader, text_style: TextStyle) -> Adapted:
    result = adapt(chat, candidate, text_style)
    assert isinstance(result, Adapted)
    return result


def delivered_text(file: FilePart, candidate: Reader, text_style: TextStyle) -> str:
    return adapted(chat_with(file), candidate, text_style).deliveries[0].text or ""


def test_model_description_is_between_file_facts_and_artifact_reference() -> None:
    facts = delivered_text(PICTURE, reader(policy="describe"), TextStyle("en"))
    assert delivered_text(PICTURE, reader(), BY_MODEL) == f"{facts}\n<A cat on a mat.>\nArtifact ID: artifact:id1"


@pytest.mark.parametrize(
    ("language", "slot"), [("en", f"[Here {SEER} describes"), ("zh", f"[此处为 {SEER} 对该文件的描述")]
)
def test_pending_description_is_replaced_by_a_placeholder(language: str, slot: str) -> None:
    """Until the describer is called, a placeholder in the model's language names the describer."""
    assert slot in delivered_text(PICTURE, reader(), TextStyle(language))


def test_failed_describer_leaves_file_facts_and_artifact_reference() -> None:
    result = adapted(chat_with(PICTURE), reader(), style(DescriptionState.FAILED))
    assert result.deliveries[0].text == delivered_text(PICTURE, reader(policy="describe"), TextStyle("en"))
    assert summary(result.deliveries) == "image=described:describer_failed"


def test_delivery_header_reports_a_description_by_a_model() -> None:
    assert summary(adapted(chat_with(PICTURE), reader(), BY_MODEL).deliveries) == "image=described:by_model"


def test_delivery_needs_a_description_until_the_result_is_known() -> None:
    waiting = adapted(chat_with(PICTURE), reader(), TextStyle("en")).deliveries[0].delivery
    known = adapted(chat_with(PICTURE), reader(), BY_MODEL).deliveries[0].delivery
    assert (needs_description(waiting), needs_description(known)) == (True, False)


@pytest.mark.parametrize(
    "file",
    [
        replace(PICTURE, content=FakeContent(gone="artifact_missing"), unreadable="artifact_missing"),
        replace(PICTURE, size=0),
        replace(PICTURE, content=None, url="https://example.com/cat.png"),
    ],
    ids=["gone", "empty", "elsewhere"],
)
def test_undescribable_file_has_no_describer(file: FilePart) -> None:
    assert decide(file, reader()).describer == ""


@pytest.mark.parametrize(
    "candidate", [reader(policy="extract+convert"), reader(describer="")], ids=["policy", "no describer"]
)
def test_file_without_describer_policy_or_describer_is_not_described_by_a_model(candidate: Reader) -> None:
    assert decide(PICTURE, candidate).describer == ""


def test_vision_model_gets_no_description_of_an_image_over_a_limit() -> None:
    candidate = reader("vision")
    full = replace(candidate, slots=with_limits(candidate.slots, {"image": {"maxCount": 1}}))
    deliveries = adapted(chat_with(PICTURE, replace(PICTURE, artifact_id="id2")), full, BY_MODEL).deliveries
    assert summary(deliveries) == "image=native;image=described"


def test_scan_without_text_is_described_by_a_model() -> None:
    scan = FilePart(Kind.DOCUMENT, "application/pdf", "scan.pdf", 30, "id1", content=FakeContent())
    assert summary(adapted(chat_with(scan), reader(), BY_MODEL).deliveries) == "file=described:by_model"


def test_agent_that_gets_only_a_description_cannot_read_the_file() -> None:
    assert not can_read(PICTURE, reader())


def test_unchanged_file_check_selects_no_describer() -> None:
    """Selecting a describer may require reading files."""
    files_asked: list[FilePart] = []
    candidate = replace(reader(), describer_for=_note(files_asked))
    assert not is_sent_unchanged(chat_with(replace(PICTURE, artifact_id=None)), candidate)
    assert files_asked == []


def _note(files_asked: list[FilePart]) -> Callable[[FilePart], str]:
    def note(file: FilePart) -> str:
        files_asked.append(file)
        return SEER

    return note


def test_attachment_fields_before_a_model_description_still_parse() -> None:
    blocks = parse_all(delivered_text(PICTURE, reader(), style(DescriptionState.BY_MODEL, "> [Attachment received]")))
    assert [(block.block, block.filename, block.artifact_ref) for block in blocks] == [
        ("attachment", "cat.png", "artifact:id1")
    ]


KINDS = {
    "image": FilePart(Kind.IMAGE, "image/png", "a.png", 30, content=FakeContent(b"x" * 30)),
    "bitmap": FilePart(Kind.IMAGE, "image/bmp", "a.bmp", 30, content=FakeContent(b"x" * 30)),
    "sound": FilePart(Kind.AUDIO, "audio/mpeg", "a.mp3", 30, content=FakeContent(b"x" * 30)),
    "film": FilePart(Kind.VIDEO, "video/mp4", "a.mp4", 30, content=FakeContent(b"x" * 30)),
    "pdf": FilePart(Kind.DOCUMENT, "application/pdf", "a.pdf", 30, content=FakeContent(words="words")),
    "scan": FilePart(Kind.DOCUMENT, "application/pdf", "a.pdf", 30, content=FakeContent()),
    "text": FilePart(Kind.TEXT, "text/plain", "a.txt", 30, content=FakeContent(words="words")),
    "other": FilePart(Kind.OTHER, "application/x-thing", "a.bin", 30, content=FakeContent()),
}


@given(
    files=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6),
    protocol=st.sampled_from(["openai", "openai_responses", "anthropic", "gemini"]),
    capabilities=st.frozensets(st.sampled_from(["vision", "audio", "video", "file"])),
    role=st.sampled_from([Role.USER, Role.TOOL, Role.SYSTEM]),
    text_style=st.sampled_from([BY_MODEL, style(DescriptionState.FAILED), TextStyle("en")]),
)
def test_describer_policy_changes_only_files_described_by_facts(
    files: list[str], protocol: str, capabilities: frozenset[str], role: Role, text_style: TextStyle
) -> None:
    chat = ChatRequest((Message(role, tuple(KINDS[name] for name in files), tool_call_id="call"),))
    base = Reader(slots_for(protocol), Capabilities(("text", *sorted(capabilities))), parse_policies("extract+convert"))
    rung = replace(base, policies=parse_policies(POLICY), describer_for=lambda _: SEER)
    before, after = adapted(chat, base, text_style), adapted(chat, rung, text_style)
    for described_by_facts, described_by_model in zip(before.deliveries, after.deliveries, strict=True):
        if described_by_facts.delivery.form == "described":
            assert described_by_model.delivery.form == "described"
            assert (described_by_model.text or "").startswith(described_by_facts.text or "")
        else:
            assert described_by_model == described_by_facts
    if all(delivery.delivery.form != "described" for delivery in before.deliveries):
        assert after == before


@given(
    file_names=st.lists(st.lists(st.sampled_from(sorted(KINDS)), max_size=3), min_size=2, max_size=5),
    capabilities=st.frozensets(st.sampled_from(["vision", "audio", "file"])),
    failing=st.frozensets(st.sampled_from(sorted(KINDS))),
)
def test_first_description_of_a_file_is_reused_in_every_later_turn(
    file_names: list[list[str]], capabilities: frozenset[str], failing: frozenset[str]
) -> None:
    def make_description(file: FilePart, describer: str, message: int) -> ModelDescription:
        if any(file == KINDS[name] for name in failing):
            return ModelDescription(DescriptionState.FAILED, describer)
        return ModelDescription(DescriptionState.BY_MODEL, describer, f"<{file.filename}, asked about in {message}>")

    candidate, text_style = reader(*sorted(capabilities)), TextStyle("en", description_of=make_description)
    messages: list[Message] = []
    sent_before: tuple[Message, ...] = ()
    for names in file_names:
        messages.append(Message(Role.USER, (TextPart("look"), *(KINDS[name] for name in names))))
        sent = adapted(ChatRequest(tuple(messages)), candidate, text_style).chat.messages
        assert sent[: len(sent_before)] == sent_before
        sent_before = sent
        messages.append(Message(Role.ASSISTANT, (TextPart("I see"),)))
