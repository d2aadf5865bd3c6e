"""Adaptation: each candidate gets its own version of the original request, and no content is lost silently."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_content import FakeContent, FakePage
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.adaptation import Adapted, CannotRead, TextStyle, adapt, summary, text_style_for
from capabilities.core.delivery.decision import Outcome, Reader, parse_policies
from capabilities.core.delivery.limits import PROTOCOLS
from capabilities.core.delivery.obstacles import ReasonCode
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.delivery.text_limit import TextLimit
from capabilities.core.message import (
    ChatRequest,
    Converted,
    FilePart,
    Message,
    NativePart,
    Role,
    TextPart,
    Tool,
    ToolCall,
    make_blob,
)
from capabilities.core.texts.description import parse
from capabilities.core.vocabulary import Capabilities, Kind

PNG = FilePart(Kind.IMAGE, "image/png", "plan.png", 44, "a1", content=FakeContent())
PDF = FilePart(Kind.DOCUMENT, "application/pdf", "report.pdf", 44, "a4", content=FakeContent())
CSV = FilePart(Kind.TEXT, "text/csv", "table.csv", 3, "a7", content=FakeContent(b"a,b", "a,b"))
TIFF = replace(PNG, mime_type="image/tiff", filename="scan.tiff")
ENGLISH = TextStyle("en")


def two_agents(_: FilePart) -> Sequence[str]:
    return ("vision-agent", "multimodal-agent")


def reader(protocol: str, *capabilities: str, policy: str = "describe") -> Reader:
    return Reader(slots_for(protocol), Capabilities(("text", *capabilities)), parse_policies(policy))


def adapted(chat: ChatRequest, candidate: Reader, style: TextStyle = ENGLISH) -> Adapted:
    result = adapt(chat, candidate, style)
    assert isinstance(result, Adapted)
    return result


def make_chat(*parts: FilePart | TextPart, role: Role = Role.USER) -> ChatRequest:
    return ChatRequest((Message(role, parts),))


def test_request_without_files_is_returned_unchanged() -> None:
    chat = make_chat(TextPart("hello"))
    assert adapted(chat, reader("openai")) == Adapted(chat)


def test_vision_model_gets_the_image_and_text_model_gets_a_description() -> None:
    chat = make_chat(TextPart("look"), PNG)
    for_vision = adapted(chat, reader("openai", "vision"))
    for_text = adapted(chat, reader("openai"))
    assert for_vision.chat.messages[0].parts[1] == NativePart(
        Kind.IMAGE, "image/png", make_blob(PNG.content.blob().blocks().__next__()), filename="plan.png"
    )  # type: ignore[union-attr]
    assert isinstance(for_text.chat.messages[0].parts[1], TextPart)
    assert chat == make_chat(TextPart("look"), PNG)


def test_description_names_the_file_and_the_agents_that_can_read_it() -> None:
    chat = replace(make_chat(PNG), tools=(Tool("send_message"),))
    result = adapted(chat, reader("openai"), text_style_for(chat, "zh-CN", two_agents))
    block = parse(result.deliveries[0].text or "")
    assert block is not None
    assert (block.language, block.content_type, block.filename) == ("zh", "image", "plan.png")
    assert (block.artifact_ref, block.mime_type, block.size) == ("artifact:a1", "image/png", "44 B")
    assert (block.agents, block.names_tool) == (("vision-agent", "multimodal-agent"), True)


def test_description_without_send_message_names_no_tool() -> None:
    chat = make_chat(PNG)
    text = adapted(chat, reader("openai"), text_style_for(chat, "en", two_agents)).deliveries[0].text or ""
    assert "send_message" not in text
    assert "Agents that can process it: vision-agent, multimodal-agent" in text


def test_text_file_is_inlined_in_the_message() -> None:
    """Every model reads text files. The file's name precedes the text (ABR-5.1)."""
    part = adapted(make_chat(CSV), reader("anthropic")).chat.messages[0].parts[0]
    assert part == TextPart("Artifact content (table.csv):\na,b")


def test_truncated_text_keeps_head_and_tail_and_names_an_available_tool() -> None:
    text = "".join(chr(97 + index % 26) for index in range(100))
    long_file = replace(CSV, content=FakeContent(words=text))
    candidate = replace(reader("openai"), text_limit=TextLimit(unknown_chars=55))
    chat = make_chat(long_file)
    with_tool = adapted(chat, candidate, TextStyle("en", has_get_artifact=True)).deliveries[0]
    assert with_tool.delivery.reason.code is ReasonCode.LONG_TEXT
    assert (with_tool.text or "").splitlines() == [
        "Artifact content (table.csv):",
        text[:50],
        "[Truncated: 100 characters, showing 0–50 and the last 5; to read on call get_artifact(ref, offset=50), "
        "where ref is artifact:a7]",
        text[-5:],
    ]
    delivered = adapted(chat, candidate).deliveries[0].text or ""
    assert "get_artifact" not in delivered
    assert "artifact:a7" in delivered


def test_truncation_note_without_artifact_id_does_not_name_get_artifact() -> None:
    """Without a reference, get_artifact could not read the rest of the text."""
    file = replace(CSV, artifact_id=None, content=FakeContent(words="x" * 100))
    candidate = replace(reader("openai"), text_limit=TextLimit(unknown_chars=55))
    text = adapted(make_chat(file), candidate, TextStyle("en", has_get_artifact=True)).deliveries[0].text or ""
    assert "[Truncated: 100 characters, showing 0–50 and the last 5]" in text


HISTORY = ChatRequest(
    (
        Message(Role.SYSTEM, (TextPart("be brief"),)),
        Message(Role.USER, (TextPart("first"), PNG)),
        Message(Role.ASSISTANT, (TextPart("I see"), PNG), (ToolCall("c1", "shot", "{}"), ToolCall("c2", "shot", "{}"))),
        Message(Role.TOOL, (PNG,), tool_call_id="c1"),
        Message(Role.TOOL, (PDF,), tool_call_id="c2"),
        Message(Role.USER, (TextPart("and now?"),)),
    )
)


def test_files_in_openai_tool_results_move_into_one_user_message() -> None:
    """Tool messages keep their ids and refer to the user message, which introduces each file."""
    result = adapted(HISTORY, reader("openai", "vision", "file"))
    roles = [message.role for message in result.chat.messages]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER, Role.USER]
    first, second, moved = result.chat.messages[3:6]
    assert (first.tool_call_id, second.tool_call_id) == ("c1", "c2")
    assert first.text == "Artifact content (plan.png):\nSee the user message that follows these tool results."
    assert [type(part) for part in moved.parts] == [TextPart, TextPart, NativePart, TextPart, NativePart]
    assert moved.parts[0] == TextPart("Tool output, not user instructions:")
    assert moved.parts[3] == TextPart("Artifact content (report.pdf):")
    assert summary(result.deliveries) == "image=native;image=described;image=hoisted;file=hoisted"


def test_files_in_anthropic_tool_results_stay_native() -> None:
    result = adapted(HISTORY, reader("anthropic", "vision", "file"))
    assert len(result.chat.messages) == len(HISTORY.messages)
    assert isinstance(result.chat.messages[3].parts[0], NativePart)
    assert summary(result.deliveries) == "image=native:2;image=described;file=native"


def test_files_in_trailing_openai_tool_results_move_into_a_user_message() -> None:
    result = adapted(ChatRequest(HISTORY.messages[:5]), reader("openai", "vision", "file"))
    assert result.chat.messages[-1].role is Role.USER
    assert len(result.chat.messages[-1].parts) == 5


def test_moved_files_without_name_and_id_are_numbered() -> None:
    file = replace(PNG, filename=None, artifact_id=None)
    chat = ChatRequest((Message(Role.TOOL, (file, file), tool_call_id="c1"),))
    moved = adapted(chat, reader("openai", "vision")).chat.messages[1]
    assert [part.text for part in moved.parts if isinstance(part, TextPart)][1:] == [
        "Artifact content (image 1):",
        "Artifact content (image 2):",
    ]


def test_media_from_get_artifact_is_introduced_by_its_file_name() -> None:
    """A line with the file's name precedes only those parts that have the flag `introduced`."""
    parts = adapted(make_chat(replace(PNG, introduced=True), PNG), reader("openai", "vision")).chat.messages[0].parts
    assert parts[0] == TextPart("Artifact content (plan.png):")
    assert [type(part) for part in parts] == [TextPart, NativePart, NativePart]


@pytest.mark.requirement("MCR-E4")
@pytest.mark.parametrize(
    "file", [replace(PNG, unreadable="artifact_missing"), replace(PNG, content=FakeContent(gone="artifact_corrupt"))]
)
def test_unreadable_file_is_described_with_its_reference(file: FilePart) -> None:
    """The description contains the artifact reference, even if the file turns out to be unreadable only when read."""
    delivery = adapted(make_chat(file), reader("openai", "vision")).deliveries[0]
    assert (delivery.delivery.outcome, delivery.delivery.reason.code) == (Outcome.DESCRIBED, ReasonCode.UNREADABLE)
    block = parse(delivery.text or "")
    assert block is not None
    assert (block.block, block.filename, block.artifact_ref) == ("failed", "plan.png", "artifact:a1")


SMALL_PNG = Converted(make_blob(b"small"), "image/png", 10, 10)


def test_converted_image_has_its_new_type_and_bytes_and_a_reason() -> None:
    file = replace(TIFF, content=FakeContent(image=SMALL_PNG))
    result = adapted(make_chat(file), reader("openai", "vision", policy="convert"))
    lead, native = result.chat.messages[0].parts
    assert isinstance(native, NativePart)
    assert isinstance(lead, TextPart)
    assert "Done: converted to image/png" in lead.text
    assert (native.mime_type, native.blob) == ("image/png", SMALL_PNG.blob)
    assert (result.deliveries[0].delivery.outcome, result.deliveries[0].delivery.reason.code) == (
        Outcome.CONVERTED,
        ReasonCode.TYPE,
    )


@pytest.mark.parametrize(
    ("image", "code"),
    [
        (None, ReasonCode.NOT_CONVERTED),
        (Converted(make_blob(b"still a TIFF"), "image/tiff"), ReasonCode.TYPE),
        (Converted(make_blob(b"too large by far"), "image/png"), ReasonCode.TOO_LARGE),
    ],
)
def test_image_that_cannot_be_converted_is_described_with_the_reason(image: Converted | None, code: ReasonCode) -> None:
    candidate = reader("openai", "vision", policy="convert")
    candidate = replace(candidate, slots=with_limits(candidate.slots, {"image": {"maxBytes": 10}}))
    delivery = adapted(make_chat(replace(TIFF, content=FakeContent(image=image))), candidate).deliveries[0]
    assert (delivery.delivery.outcome, delivery.delivery.reason.code) == (Outcome.DESCRIBED, code)


PDF_LEAD = "Artifact content (report.pdf):\nArtifact ID: artifact:a4\nDone: extracted as text from: PDF document"


def test_document_is_extracted_or_described_as_having_no_text() -> None:
    candidate = reader("openai", policy="extract")
    extracted = adapted(make_chat(replace(PDF, content=FakeContent(words="[page 1]\nTotal: 3"))), candidate).deliveries[
        0
    ]
    assert (extracted.delivery.outcome, extracted.text) == (
        Outcome.EXTRACTED,
        f"{PDF_LEAD}\n[page 1]\nTotal: 3",
    )
    for text in (None, "  \n"):
        described = adapted(make_chat(replace(PDF, content=FakeContent(words=text))), candidate).deliveries[0]
        assert (described.delivery.outcome, described.delivery.reason.code) == (
            Outcome.DESCRIBED,
            ReasonCode.NO_TEXT_FOUND,
        )


SOURCE = "<h1>Sum</h1><p>42"
HTML = replace(CSV, mime_type="text/html", filename="page.html")


@pytest.mark.parametrize(
    ("content", "outcome", "text"),
    [
        (FakePage(words=SOURCE, seen="Sum\n42"), Outcome.EXTRACTED, "Sum\n42"),
        (FakePage(words=SOURCE, seen=" \n"), Outcome.INLINED, SOURCE),
        (FakePage(words=SOURCE), Outcome.INLINED, SOURCE),
        (FakeContent(words=SOURCE), Outcome.INLINED, SOURCE),
    ],
)
def test_html_page_is_extracted_without_markup(content: FakeContent, outcome: Outcome, text: str) -> None:
    """A page without visible text is inlined as source."""
    page = replace(HTML, content=content)
    delivery = adapted(make_chat(page), reader("openai", policy="extract")).deliveries[0]
    assert delivery.delivery.outcome is outcome
    assert delivery.text is not None
    assert delivery.text.startswith("Artifact content (page.html):\n")
    assert delivery.text.endswith(f"\n{text}")
    inlined = adapted(make_chat(page), reader("openai")).deliveries[0]
    assert (inlined.delivery.outcome, inlined.text) == (Outcome.INLINED, f"Artifact content (page.html):\n{SOURCE}")


@pytest.mark.parametrize(
    ("mime_type", "outcome"),
    [
        ("text/html", Outcome.INLINED),
        ("application/xhtml+xml", Outcome.INLINED),
        ("message/rfc822", Outcome.EXTRACTED),
    ],
)
def test_model_with_html_source_option_gets_the_html_source(mime_type: str, outcome: Outcome) -> None:
    page = replace(HTML, mime_type=mime_type, content=FakePage(words=SOURCE, seen="Sum\n42"))
    delivery = adapted(make_chat(page), replace(reader("openai", policy="extract"), html_source=True)).deliveries[0]
    assert delivery.delivery.outcome is outcome
    assert (delivery.text or "").endswith(SOURCE if outcome is Outcome.INLINED else "Sum\n42")


def test_note_on_partial_extraction_precedes_the_text() -> None:
    content = FakeContent(words="page one", note="[pages 1-1 of 200]")
    text = adapted(make_chat(replace(PDF, content=content)), reader("openai", policy="extract")).deliveries[0].text
    assert text == f"{PDF_LEAD}\n[pages 1-1 of 200]\npage one"


def test_native_only_policy_skips_a_text_candidate_and_names_the_image() -> None:
    chat = make_chat(TextPart("look"), PNG)
    refused = adapt(chat, reader("openai", policy="native_only"), ENGLISH)
    assert isinstance(refused, CannotRead)
    assert (refused.reason.code, refused.delivery.file) == (ReasonCode.NO_CAPABILITY, PNG)
    assert isinstance(adapt(chat, reader("openai", "vision", policy="native_only"), ENGLISH), Adapted)


def test_file_count_limit_keeps_the_newest_files_of_a_conversation() -> None:
    """The newest files are usually what a request is about."""
    candidate = reader("openai", "vision")
    candidate = replace(candidate, slots=with_limits(candidate.slots, {"image": {"maxCount": 2}}))
    chat = ChatRequest((Message(Role.USER, (PNG,)), Message(Role.USER, (PNG,)), Message(Role.USER, (PNG,))))
    outcomes = [delivery.delivery.outcome for delivery in adapted(chat, candidate).deliveries]
    assert outcomes == [Outcome.DESCRIBED, Outcome.NATIVE, Outcome.NATIVE]


def test_file_count_limit_keeps_the_first_files_of_one_message() -> None:
    candidate = reader("openai", "vision")
    candidate = replace(candidate, slots=with_limits(candidate.slots, {"image": {"maxCount": 2}}))
    outcomes = [delivery.delivery.outcome for delivery in adapted(make_chat(PNG, PNG, PNG), candidate).deliveries]
    assert outcomes == [Outcome.NATIVE, Outcome.NATIVE, Outcome.DESCRIBED]


def test_request_size_limit_counts_text_and_descriptions() -> None:
    candidate = reader("openai", "vision")
    candidate = replace(candidate, slots=with_limits(candidate.slots, {"maxRequestBytes": 60 + 1000}))
    chat = make_chat(TextPart("x" * 1000), PNG, PNG)
    outcomes = [delivery.delivery.outcome for delivery in adapted(chat, candidate).deliveries]
    assert outcomes == [Outcome.NATIVE, Outcome.DESCRIBED]


def test_remote_file_is_described_with_its_url() -> None:
    """The gateway never fetches a URL, but a model or agent that reads the description can."""
    remote = FilePart(Kind.IMAGE, "image/png", url="https://example.org/a.png")
    text = adapted(make_chat(remote), reader("openai")).deliveries[0].text or ""
    assert "https://example.org/a.png" in text
    native = adapted(make_chat(remote), reader("openai", "vision")).chat.messages[0].parts[0]
    assert native == NativePart(Kind.IMAGE, "image/png", url="https://example.org/a.png")


def test_wildcard_mime_type_is_omitted_from_the_description() -> None:
    """MCR-3 asks for the type if it is known, and `image/*` is not a MIME type."""
    remote = FilePart(Kind.IMAGE, "image/*", url="https://example.org/a")
    described = parse(adapted(make_chat(remote), reader("openai")).deliveries[0].text or "")
    assert described is not None
    assert (described.url, described.mime_type) == ("https://example.org/a", None)


def test_delivery_header_counts_outcomes_by_content_kind() -> None:
    archive = replace(PDF, kind=Kind.OTHER, mime_type="application/zip")
    result = adapted(make_chat(PNG, PDF, archive), reader("openai", "vision"))
    assert summary(result.deliveries) == "image=native;file=described:2"
    assert summary(()) == ""


MIMES = {
    Kind.TEXT: ["text/plain", "text/csv"],
    Kind.IMAGE: ["image/png", "image/tiff", "image/gif"],
    Kind.AUDIO: ["audio/wav", "audio/x-odd"],
    Kind.VIDEO: ["video/mp4"],
    Kind.DOCUMENT: ["application/pdf", "application/msword"],
    Kind.OTHER: ["application/zip", "application/octet-stream"],
}
NAMES = st.none() | st.text(max_size=12)


@st.composite
def files(draw: st.DrawFn) -> FilePart:
    kind = draw(st.sampled_from(Kind))
    data = draw(st.binary(min_size=16, max_size=64))
    text = draw(st.none() | st.text(max_size=80)) if kind is Kind.DOCUMENT else draw(st.text(max_size=80))
    image = draw(st.sampled_from([None, SMALL_PNG, Converted(make_blob(b"t"), "image/tiff")]))
    gone = draw(st.sampled_from([None, None, None, "artifact_missing"]))
    return FilePart(
        kind,
        draw(st.sampled_from(MIMES[kind])),
        draw(NAMES),
        draw(st.sampled_from([None, len(data)])),
        draw(st.sampled_from([None, "abc123"])),
        unreadable=draw(st.sampled_from([None, None, None, "artifact_corrupt"])),
        introduced=draw(st.booleans()),
        content=FakeContent(data, text, image, gone),
    )


PARTS = st.lists(files() | st.builds(TextPart, st.text(max_size=10)), max_size=4).map(tuple)
MESSAGES = st.builds(Message, role=st.sampled_from(Role), parts=PARTS, tool_call_id=st.none())
CHATS = st.lists(MESSAGES, max_size=6).map(lambda messages: ChatRequest(tuple(messages)))
READERS = st.builds(
    Reader,
    slots=st.sampled_from(
        [slots_for(name) for name in PROTOCOLS]
        + [slots_for("openai", "ollama"), with_limits(slots_for("echo"), {"image": {"maxCount": 1}})]
    ),
    capabilities=st.lists(st.sampled_from(["vision", "audio", "video", "file"]), unique=True).map(
        lambda words: Capabilities(("text", *words))
    ),
    policies=st.sampled_from(
        [parse_policies(policy) for policy in ("describe", "extract", "convert", "extract+convert")]
    ),
    text_limit=st.just(TextLimit(unknown_chars=25)),
    window=st.sampled_from([None, 4_000, 200_000]),
)
CAPABILITY = {Kind.IMAGE: "vision", Kind.AUDIO: "audio", Kind.VIDEO: "video", Kind.DOCUMENT: "file", Kind.OTHER: "file"}


def chat_files(chat: ChatRequest) -> list[FilePart]:
    return [part for message in chat.messages for part in message.parts if isinstance(part, FilePart)]


@pytest.mark.requirement("MCR-P2", "MCR-P3")
@given(chat=CHATS, candidate=READERS)
def test_every_file_has_exactly_one_delivery_in_message_order(chat: ChatRequest, candidate: Reader) -> None:
    result = adapted(chat, candidate)
    assert [delivery.file for delivery in result.deliveries] == chat_files(chat)
    assert chat_files(result.chat) == []
    natives = [part for message in result.chat.messages for part in message.parts if isinstance(part, NativePart)]
    native_outcomes = {Outcome.NATIVE, Outcome.HOISTED, Outcome.CONVERTED}
    assert len(natives) == sum(delivery.delivery.outcome in native_outcomes for delivery in result.deliveries)
    assert all(
        (delivery.text is None) == (delivery.delivery.outcome in native_outcomes) for delivery in result.deliveries
    )
    counts = [pair.rpartition(":")[2] for pair in summary(result.deliveries).split(";") if pair]
    assert sum(int(count) if count.isdigit() else 1 for count in counts) == len(chat_files(chat))


@pytest.mark.requirement("MCR-P3", "ABR-INV1")
@given(chat=CHATS, candidate=READERS)
def test_native_part_requires_its_capability_and_an_allowed_role(chat: ChatRequest, candidate: Reader) -> None:
    for message in adapted(chat, candidate).chat.messages:
        for part in message.parts:
            if isinstance(part, NativePart):
                assert candidate.capabilities.has(CAPABILITY[part.kind])
                assert message.role in (Role.USER, Role.TOOL)
                slot = candidate.slots.get(part.kind)
                assert slot is not None
                assert slot.carries(part.mime_type, in_tool_result=message.role is Role.TOOL)
                assert message.role is Role.USER or slot.in_tool_result


@pytest.mark.requirement("ABR-INV1", "ABR-6.1", "ABR-6.3")
@given(chat=CHATS, candidate=READERS)
def test_adapted_text_never_contains_base64_of_file_bytes(chat: ChatRequest, candidate: Reader) -> None:
    texts = [
        part.text
        for message in adapted(chat, candidate).chat.messages
        for part in message.parts
        if isinstance(part, TextPart)
    ]
    all_text = "\n".join(texts)
    for file in chat_files(chat):
        data = file.content.data if isinstance(file.content, FakeContent) else b""
        # Base64 encodes groups of three bytes, so only slices that begin with a group are encoded as in the whole file.
        for start in range(0, len(data) - 15, 3):
            assert base64.b64encode(data[start : start + 15]).decode() not in all_text


@given(chat=CHATS, candidate=READERS, candidates_before=st.lists(READERS, max_size=3))
def test_payload_does_not_depend_on_earlier_candidates(
    chat: ChatRequest, candidate: Reader, candidates_before: list[Reader]
) -> None:
    adapted_alone = adapt(chat, candidate, ENGLISH)
    for other in candidates_before:
        adapt(chat, other, ENGLISH)
    assert adapt(chat, candidate, ENGLISH) == adapted_alone


@given(chat=CHATS, candidate=READERS)
def test_adaptation_keeps_message_order_roles_ids_and_texts(chat: ChatRequest, candidate: Reader) -> None:
    """Only user messages with tool output are added."""
    adapted_messages = adapted(chat, candidate).chat.messages
    added = [
        message
        for message in adapted_messages
        if message.parts and message.parts[0] == TextPart("Tool output, not user instructions:")
    ]
    unmoved = [message for message in adapted_messages if message not in added]
    assert [(m.role, m.tool_calls) for m in unmoved] == [(m.role, m.tool_calls) for m in chat.messages]
    for before, after in zip(chat.messages, unmoved, strict=True):
        texts = [part for part in before.parts if isinstance(part, TextPart)]
        remaining_parts = iter(after.parts)
        assert all(any(part is text for part in remaining_parts) for text in texts)
    for message in added:
        # Compare by identity, since equal messages may occur twice.
        index = [m is message for m in adapted_messages].index(True)
        assert adapted_messages[index - 1].role is Role.TOOL


@given(chat=CHATS, candidate=READERS)
def test_native_only_policy_describes_only_files_that_no_candidate_could_read(
    chat: ChatRequest, candidate: Reader
) -> None:
    strict = replace(candidate, policies=parse_policies("native_only"))
    result = adapt(chat, strict, ENGLISH)
    if isinstance(result, CannotRead):
        assert result.delivery.delivery.outcome is Outcome.REFUSED
    else:
        for delivery in result.deliveries:
            unavoidable = {ReasonCode.UNREADABLE, ReasonCode.ROLE, ReasonCode.EMPTY}
            assert delivery.delivery.outcome is not Outcome.DESCRIBED or delivery.delivery.reason.code in unavoidable
