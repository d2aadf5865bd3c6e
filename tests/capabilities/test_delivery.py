"""The delivery decision: kind, capability and protocol determine a file's outcome; limits and policies refine it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_content import FakeContent
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.decision import (
    FORMS,
    ContentPolicy,
    DeliveryForm,
    Outcome,
    Position,
    Reader,
    can_read,
    decide,
    parse_policies,
)
from capabilities.core.delivery.limits import PROTOCOLS
from capabilities.core.delivery.obstacles import SENTENCES, ReasonCode
from capabilities.core.delivery.slot_choice import GET_ARTIFACT_SLOTS, MESSAGE_SLOTS, slots_for
from capabilities.core.delivery.slots import ToolMedia
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.delivery.writing import WRITERS
from capabilities.core.message import FilePart, Role
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Capabilities, Kind

PNG = FilePart(Kind.IMAGE, "image/png", "plan.png", 44, "a1", content=FakeContent())
WAV = FilePart(Kind.AUDIO, "audio/wav", "talk.wav", 44, "a2", content=FakeContent())
MP4 = FilePart(Kind.VIDEO, "video/mp4", "clip.mp4", 44, "a3", content=FakeContent())
PDF = FilePart(Kind.DOCUMENT, "application/pdf", "report.pdf", 44, "a4", content=FakeContent())
DOCX = FilePart(
    Kind.DOCUMENT,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "report.docx",
    44,
    "a5",
    content=FakeContent(),
)
ZIP = FilePart(Kind.OTHER, "application/zip", "all.zip", 44, "a6", content=FakeContent())
CSV = FilePart(Kind.TEXT, "text/csv", "table.csv", 44, "a7", content=FakeContent(b"a,b", "a,b"))
HTML = replace(CSV, mime_type="text/html", filename="page.html")
XHTML = replace(CSV, mime_type="application/xhtml+xml", filename="page.xhtml")
TIFF = replace(PNG, mime_type="image/tiff", filename="scan.tiff")

EVERYTHING = Capabilities(("text", "vision", "audio", "video", "file"))
NOTHING = Capabilities()


def reader(protocol: str, *capabilities: str, **changes: object) -> Reader:
    return replace(Reader(slots_for(protocol), Capabilities(("text", *capabilities))), **changes)  # type: ignore[arg-type]


EXPECTED = """
file  capability   openai     anthropic  gemini     echo
PNG   -            described  described  described  described
PNG   audio        described  described  described  described
PNG   file         described  described  described  described
PNG   vision       native     native     native     native
WAV   -            described  described  described  described
WAV   vision       described  described  described  described
WAV   file         described  described  described  described
WAV   audio        native     described  native     native
MP4   -            described  described  described  described
MP4   vision       described  described  described  described
MP4   video        described  described  native     native
PDF   -            described  described  described  described
PDF   vision       described  described  described  described
PDF   file         native     native     native     native
DOCX  -            described  described  described  described
DOCX  file         described  described  described  native
ZIP   -            described  described  described  described
ZIP   file         described  described  described  native
TIFF  -            described  described  described  described
TIFF  vision       described  described  described  native
CSV   -            inlined    inlined    inlined    inlined
CSV   file         inlined    inlined    inlined    inlined
"""
FILES = {"PNG": PNG, "WAV": WAV, "MP4": MP4, "PDF": PDF, "DOCX": DOCX, "ZIP": ZIP, "CSV": CSV, "TIFF": TIFF}


def rows() -> list[tuple[str, str, str, str]]:
    head, *lines = [line.split() for line in EXPECTED.strip().splitlines()]
    return [
        (name, capability, protocol, outcome)
        for name, capability, *outcomes in lines
        for protocol, outcome in zip(head[2:], outcomes, strict=True)
    ]


@pytest.mark.parametrize(("name", "capability", "protocol", "outcome"), rows())
def test_file_is_native_if_model_capability_and_protocol_slot_allow(
    name: str, capability: str, protocol: str, outcome: str
) -> None:
    capabilities = () if capability == "-" else (capability,)
    assert decide(FILES[name], reader(protocol, *capabilities)).outcome == outcome


@pytest.mark.parametrize(
    ("name", "capability", "protocol", "code"),
    [
        ("PNG", "audio", "openai", ReasonCode.NO_CAPABILITY),
        ("WAV", "audio", "anthropic", ReasonCode.NO_SLOT),
        ("TIFF", "vision", "openai", ReasonCode.TYPE),
        ("DOCX", "file", "anthropic", ReasonCode.TYPE),
        ("PNG", "vision", "openai", ReasonCode.FITS),
        ("CSV", "vision", "openai", ReasonCode.READABLE_TEXT),
    ],
)
def test_every_delivery_reason_renders_as_a_sentence(
    name: str, capability: str, protocol: str, code: ReasonCode
) -> None:
    reason = decide(FILES[name], reader(protocol, capability)).reason
    assert reason.code is code
    assert reason.sentence().endswith(".")
    assert "%(" not in reason.sentence()


def test_delivery_reason_names_the_mime_type_and_the_slot() -> None:
    sentence = decide(TIFF, reader("openai", "vision")).reason.sentence()
    assert sentence == "image_url does not accept image/tiff."


def reader_with_image_limits(protocol: str = "openai", **image: object) -> Reader:
    given_reader = reader(protocol, "vision")
    return replace(given_reader, slots=with_limits(given_reader.slots, {"image": image}))


@pytest.mark.parametrize(
    ("limits", "file", "position", "code"),
    [
        ({"maxBytes": 43}, PNG, Position(), ReasonCode.TOO_LARGE),
        ({"maxSide": 2000}, replace(PNG, width=100, height=2001), Position(), ReasonCode.TOO_WIDE),
        ({"maxCount": 2}, PNG, Position(counts={"image": 2}), ReasonCode.TOO_MANY_FILES),
        ({"maxTotalBytes": 100}, PNG, Position(sizes={"image": 57}), ReasonCode.TOO_MUCH_OF_A_KIND),
        (
            {"maxSide": 8000, "crowdCount": 20, "crowdMaxSide": 2000},
            replace(PNG, width=3000, height=10),
            Position(total=21),
            ReasonCode.TOO_WIDE,
        ),
    ],
)
def test_file_over_a_limit_is_described_and_the_reason_names_the_limit(
    limits: dict[str, object], file: FilePart, position: Position, code: ReasonCode
) -> None:
    """One byte, pixel or file more than the limit is too much."""
    delivery = decide(file, reader_with_image_limits(**limits), position)
    assert (delivery.outcome, delivery.reason.code) == (Outcome.DESCRIBED, code)
    assert {"limit", "actual"} <= set(delivery.reason.facts)


@pytest.mark.parametrize(
    ("limits", "file", "position"),
    [
        ({"maxBytes": 44}, PNG, Position()),
        ({"maxSide": 2000}, replace(PNG, width=2000, height=2000), Position()),
        ({"maxCount": 2}, PNG, Position(counts={"image": 1})),
        ({"maxTotalBytes": 101}, PNG, Position(sizes={"image": 57})),
        ({"maxSide": 8000, "crowdCount": 20, "crowdMaxSide": 2000}, replace(PNG, width=3000), Position(total=20)),
    ],
)
def test_file_exactly_at_a_limit_is_native(limits: dict[str, object], file: FilePart, position: Position) -> None:
    assert decide(file, reader_with_image_limits(**limits), position).outcome is Outcome.NATIVE


def test_document_with_too_many_pages_is_described_if_the_page_count_is_known() -> None:
    delivery = decide(replace(PDF, pages=601), reader("anthropic", "file"))
    assert (delivery.outcome, delivery.reason.code) == (Outcome.DESCRIBED, ReasonCode.TOO_MANY_PAGES)


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini", "echo"])
def test_file_of_unknown_size_is_native(protocol: str) -> None:
    for file in (PNG, PDF):
        unknown = replace(file, size=None, width=None, height=None, pages=None)
        assert decide(unknown, reader(protocol, "vision", "file")).outcome is Outcome.NATIVE


def test_request_size_limit_counts_base64_and_earlier_content() -> None:
    strict = reader("openai", "vision")
    strict = replace(strict, slots=with_limits(strict.slots, {"maxRequestBytes": 160}))
    assert decide(PNG, strict, Position(request_bytes=100)).outcome is Outcome.NATIVE
    assert decide(PNG, strict, Position(request_bytes=101)).reason.code is ReasonCode.REQUEST_FULL


@pytest.mark.parametrize("role", [Role.SYSTEM, Role.ASSISTANT])
def test_file_in_a_system_or_assistant_message_is_described(role: Role) -> None:
    """Protocols accept files from users and tools only. Text files are inlined as text in any role."""
    delivery = decide(PNG, reader("openai", "vision"), Position(role))
    assert (delivery.outcome, delivery.reason.code) == (Outcome.DESCRIBED, ReasonCode.ROLE)
    assert decide(CSV, reader("openai"), Position(role)).outcome is Outcome.INLINED


TOOL_RESULTS = [
    ("openai", PNG, None, Outcome.HOISTED),
    ("anthropic", PNG, None, Outcome.NATIVE),
    ("anthropic", PDF, None, Outcome.NATIVE),
    ("gemini", PNG, None, Outcome.NATIVE),
    ("gemini", replace(PNG, mime_type="image/gif"), None, Outcome.DESCRIBED),
    ("gemini", WAV, None, Outcome.DESCRIBED),
    ("echo", WAV, None, Outcome.NATIVE),
    ("openai", PNG, ToolMedia.TEXT, Outcome.DESCRIBED),
    ("anthropic", PNG, ToolMedia.HOIST, Outcome.HOISTED),
    ("openai", TIFF, None, Outcome.DESCRIBED),
    ("openai", CSV, None, Outcome.INLINED),
]


@pytest.mark.parametrize(("protocol", "file", "tool_media", "outcome"), TOOL_RESULTS)
def test_protocol_decides_whether_tool_result_media_stay_move_or_are_described(
    protocol: str, file: FilePart, tool_media: ToolMedia | None, outcome: Outcome
) -> None:
    candidate = Reader(slots_for(protocol), EVERYTHING, tool_media=tool_media)
    assert decide(file, candidate, Position(Role.TOOL)).outcome is outcome


def test_remote_file_url_is_passed_on_or_described_and_never_fetched() -> None:
    remote = FilePart(Kind.IMAGE, "image/png", url="https://example.org/a.png")
    assert decide(remote, reader("openai", "vision")).outcome is Outcome.NATIVE
    assert decide(remote, reader("openai")).reason.code is ReasonCode.NO_CAPABILITY
    local = Reader(slots_for("openai", "ollama"), EVERYTHING)
    assert decide(remote, local).reason.code is ReasonCode.URL
    assert decide(replace(remote, kind=Kind.TEXT), local).reason.code is ReasonCode.URL


def test_empty_file_is_described() -> None:
    """Providers reject empty media. Empty text is inlined."""
    assert decide(replace(PNG, size=0), reader("openai", "vision")).reason.code is ReasonCode.EMPTY
    assert decide(replace(CSV, size=0), reader("openai")).outcome is Outcome.INLINED


@pytest.mark.parametrize("file", [replace(PNG, unreadable="artifact_missing"), replace(CSV, content=None)])
def test_file_known_to_be_unreadable_is_described_under_any_policy(file: FilePart) -> None:
    """If a file cannot be read from the store, the model gets a description instead, even under `native_only`."""
    strict = reader("openai", "vision", policies=parse_policies("native_only"))
    delivery = decide(file, strict)
    assert (delivery.outcome, delivery.reason.code) == (Outcome.DESCRIBED, ReasonCode.UNREADABLE)


@pytest.mark.parametrize(
    ("file", "role"), [(PNG, Role.ASSISTANT), (PNG, Role.SYSTEM), (replace(PNG, size=0), Role.USER)]
)
@pytest.mark.parametrize("capabilities", [("vision",), ()], ids=["vision", "text"])
def test_native_only_policy_skips_no_candidate_for_an_unreadable_file(
    capabilities: tuple[str, ...], file: FilePart, role: Role
) -> None:
    strict = reader("openai", *capabilities, policies=parse_policies("native_only"))
    assert decide(file, strict, Position(role)).outcome is Outcome.DESCRIBED


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (PNG, True),
        (TIFF, False),
        (CSV, True),
        (PDF, False),
        (replace(PNG, content=None), True),
        (replace(PNG, content=None, unreadable="artifact_missing"), True),
        (replace(PNG, content=None, size=10**9), False),
        (FilePart(Kind.IMAGE, "image/png", url="https://example.org/a.png"), True),
    ],
)
def test_can_read_agrees_with_the_delivery_decision(file: FilePart, expected: bool) -> None:
    """`can_read` does not need the file's content, since another agent will read the file."""
    candidate = reader_with_image_limits(maxBytes=1000)
    assert can_read(file, candidate) is expected


POLICIES = [
    ("describe", PDF, (), Outcome.DESCRIBED),
    ("extract", PDF, (), Outcome.EXTRACTED),
    ("extract", DOCX, ("file",), Outcome.EXTRACTED),
    ("extract", PDF, ("file",), Outcome.NATIVE),
    ("extract", PNG, (), Outcome.DESCRIBED),
    ("extract", WAV, (), Outcome.DESCRIBED),
    ("extract", ZIP, (), Outcome.EXTRACTED),
    ("describe", ZIP, (), Outcome.DESCRIBED),
    ("describe", HTML, (), Outcome.INLINED),
    ("extract", HTML, (), Outcome.EXTRACTED),
    ("extract", XHTML, ("file",), Outcome.EXTRACTED),
    ("extract", CSV, (), Outcome.INLINED),
    ("convert", TIFF, ("vision",), Outcome.CONVERTED),
    ("convert", TIFF, (), Outcome.DESCRIBED),
    ("convert", PNG, ("vision",), Outcome.NATIVE),
    ("convert", DOCX, ("file",), Outcome.DESCRIBED),
    ("extract+convert", TIFF, ("vision",), Outcome.CONVERTED),
    ("extract+convert", DOCX, ("file",), Outcome.EXTRACTED),
    ("native_only", PNG, (), Outcome.REFUSED),
    ("native_only", TIFF, ("vision",), Outcome.REFUSED),
    ("native_only", PNG, ("vision",), Outcome.NATIVE),
    ("native_only", CSV, (), Outcome.INLINED),
    ("native_only+convert", TIFF, ("vision",), Outcome.CONVERTED),
]


@pytest.mark.parametrize(("policy", "file", "capabilities", "outcome"), POLICIES)
def test_content_policy_determines_extraction_conversion_or_rejection(
    policy: str, file: FilePart, capabilities: tuple[str, ...], outcome: Outcome
) -> None:
    assert decide(file, reader("openai", *capabilities, policies=parse_policies(policy))).outcome is outcome


def test_conversion_target_meets_the_slot_limits() -> None:
    delivery = decide(
        replace(PNG, width=9000, height=100), reader("anthropic", "vision", policies=parse_policies("convert"))
    )
    assert delivery.outcome is Outcome.CONVERTED
    assert delivery.target is not None
    assert delivery.target.mime_types == ("image/png", "image/jpeg", "image/webp")
    assert (delivery.target.max_side, delivery.target.max_bytes) == (8000, 7_864_320)


def test_image_over_the_file_count_limit_is_not_converted() -> None:
    full = reader_with_image_limits(maxCount=1)
    delivery = decide(TIFF, replace(full, policies=parse_policies("convert")), Position(counts={"image": 1}))
    assert delivery.outcome is Outcome.DESCRIBED


def test_unknown_content_policy_raises_an_error_with_its_name() -> None:
    with pytest.raises(ValueError, match="shrink"):
        parse_policies("extract+shrink")
    assert parse_policies(None) == {ContentPolicy.DESCRIBE}


def test_delivery_tables_cover_every_outcome_reason_and_kind() -> None:
    assert set(FORMS) == set(Outcome) == set(WRITERS)
    assert {*FORMS.values(), DeliveryForm.CUT} == set(DeliveryForm)
    assert set(SENTENCES) == set(ReasonCode)
    assert set(CAPABILITY_OF_KIND) == set(Kind)


# The expected values of the next two tests are copied from the requirements.

BETWEEN_AGENTS = {
    "PNG": "vision",
    "TIFF": "vision",
    "WAV": "audio",
    "MP4": "video",
    "PDF": "file",
    "DOCX": "file",
    "ZIP": "file",
    "CSV": "file",
}


@pytest.mark.requirement("MCR-2.1", "MCR-2.2", "MCR-2.3", "MCR-2.4", "MCR-2.5", "MCR-2.6")
@pytest.mark.parametrize("name", list(FILES))
@pytest.mark.parametrize("capability", ["vision", "audio", "video", "file"])
def test_delivery_between_agents_depends_only_on_the_capability(name: str, capability: str) -> None:
    needed = BETWEEN_AGENTS[name]
    outcome = decide(FILES[name], Reader(MESSAGE_SLOTS, Capabilities(("text", capability)))).outcome
    assert outcome is (Outcome.NATIVE if capability == needed else Outcome.DESCRIBED)


GET_ARTIFACT = {
    "PNG": {"vision": "image_url"},
    "WAV": {"file": "file", "audio": "file"},
    "MP4": {"file": "file", "video": "file"},
    "PDF": {"file": "file"},
    "DOCX": {"file": "file"},
    "ZIP": {"file": "file"},
}


@pytest.mark.requirement("ABR-2.2", "ABR-2.3", "ABR-4.1", "ABR-INV3")
@pytest.mark.parametrize("name", list(GET_ARTIFACT))
@pytest.mark.parametrize("capability", ["vision", "audio", "video", "file"])
def test_get_artifact_returns_audio_and_video_as_files(name: str, capability: str) -> None:
    delivery = decide(FILES[name], Reader(GET_ARTIFACT_SLOTS, Capabilities(("text", capability))))
    slot = GET_ARTIFACT[name].get(capability)
    assert delivery.outcome is (Outcome.NATIVE if slot else Outcome.DESCRIBED)
    assert (delivery.slot.name if delivery.slot else None) == slot


KINDS = st.sampled_from(Kind)
TYPES = st.sampled_from(["image/png", "image/tiff", "audio/wav", "audio/x-odd", "video/mp4", "application/pdf", "a/b"])
COUNTS = st.none() | st.integers(0, 10**9)
PARTS = st.builds(
    FilePart,
    kind=KINDS,
    mime_type=TYPES,
    size=COUNTS,
    width=COUNTS,
    height=COUNTS,
    pages=COUNTS,
    url=st.sampled_from([None, "https://example.org/x"]),
    unreadable=st.sampled_from([None, None, "artifact_corrupt"]),
    content=st.sampled_from([None, FakeContent()]),
)
CAPABILITY_NAMES = st.lists(st.sampled_from(["text", "vision", "audio", "video", "file"]), unique=True).map(tuple)
READERS = st.builds(
    Reader,
    slots=st.sampled_from([slots_for(protocol) for protocol in PROTOCOLS]),
    capabilities=CAPABILITY_NAMES.map(Capabilities),
    policies=st.frozensets(st.sampled_from(ContentPolicy)),
    tool_media=st.sampled_from([None, *ToolMedia]),
)
POSITIONS = st.builds(
    Position,
    role=st.sampled_from(Role),
    counts=st.just({}) | st.just({"image": 2000}),
    request_bytes=st.integers(0, 10**9),
    total=st.integers(1, 50),
)


@pytest.mark.requirement("ABR-INV3", "ABR-INV5")
@given(file=PARTS, candidate=READERS, position=POSITIONS)
def test_delivery_decision_is_deterministic_and_native_requires_the_capability(
    file: FilePart, candidate: Reader, position: Position
) -> None:
    delivery = decide(file, candidate, position)
    assert delivery == decide(file, candidate, position)
    assert delivery.reason.sentence()
    if delivery.outcome in (Outcome.NATIVE, Outcome.HOISTED, Outcome.CONVERTED):
        assert delivery.slot is not None
        assert any(candidate.capabilities.has(name) for name in delivery.slot.capabilities)
        assert position.role in (Role.USER, Role.TOOL)
        assert not file.unreadable
    # For booleans, `<=` means "implies".
    assert (delivery.outcome is Outcome.REFUSED) <= (ContentPolicy.NATIVE_ONLY in candidate.policies)


@given(file=PARTS, candidate=READERS, position=POSITIONS)
def test_additional_capabilities_never_make_a_native_file_non_native(
    file: FilePart, candidate: Reader, position: Position
) -> None:
    capable = replace(candidate, capabilities=EVERYTHING)
    if decide(file, candidate, position).outcome in (Outcome.NATIVE, Outcome.HOISTED):
        assert decide(file, capable, position).outcome in (Outcome.NATIVE, Outcome.HOISTED)


def test_file_that_exactly_fills_the_request_size_limit_is_native() -> None:
    """The file's 44 bytes are 60 bytes in base64, which is exactly the limit. The request contains nothing else."""
    strict = reader("openai", "vision")
    assert decide(PNG, replace(strict, slots=with_limits(strict.slots, {"maxRequestBytes": 60}))).outcome is (
        Outcome.NATIVE
    )
