"""Probes test what a model reads: it must name the words in two files, and no word in an empty control file."""

from __future__ import annotations

import io
import random
import wave

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image
from pypdf import PdfReader

from artifacts.core.detection.detector import BinaryDetector
from capabilities.core.message import NativePart
from capabilities.core.providers.probes.drawing import draw
from capabilities.core.providers.probes.judgement import (
    AnswerReading,
    ProbeAnswer,
    ProbeOutcome,
    ProbeReason,
    conclude,
    conduct,
    read_answer,
)
from capabilities.core.providers.probes.questions import PROBES, WORDS, build_request
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind
from capabilities.core.wire import Fault
from tests.lab.reading_model import word_in
from tests.lab.received_requests import Media

SECRETS = {"vision": "LANTERN", "audio": "4271", "video": "UMBRELLA", "file": "WALNUT"}


def test_every_capability_except_text_has_a_probe() -> None:
    """The capability `text` is tested by a plain greeting instead of a probe."""
    assert set(PROBES) == {CAPABILITY_OF_KIND[kind] for kind in Kind} - {"text"}


def test_probe_word_is_drawn_in_readable_letters() -> None:
    """A letter is drawn in seven rows and five columns of pixels, with a gap between letters."""
    rows = ["".join("#" if pixel == 0 else "." for pixel in row) for row in draw("KEY", 17, 7, 1)]
    assert rows == [
        "#...#.#####.#...#",
        "#..#..#.....#...#",
        "#.#...#......#.#.",
        "##....####....#..",
        "#.#...#.......#..",
        "#..#..#.......#..",
        "#...#.#####...#..",
    ]


@pytest.mark.parametrize("name", sorted(PROBES))
def test_probe_file_contains_the_word_and_control_file_contains_none(name: str) -> None:
    probe = PROBES[name]
    full, empty = probe.make_file(SECRETS[name]), probe.make_file("")
    assert word_in(Media("", data=full)) == SECRETS[name]
    assert word_in(Media("", data=empty)) == ""
    for data in (full, empty):
        assert BinaryDetector().detect(data).mime_type == probe.mime_type


@pytest.mark.parametrize("name", ["vision", "video"])
def test_every_probe_word_is_drawn_completely(name: str) -> None:
    assert [word_in(Media("", data=PROBES[name].make_file(word))) for word in WORDS] == list(WORDS)


def test_probe_files_can_be_opened_by_pillow_pypdf_and_the_standard_library() -> None:
    assert Image.open(io.BytesIO(PROBES["vision"].make_file("ACORN"))).size == (560, 160)
    assert len(PdfReader(io.BytesIO(PROBES["file"].make_file("ACORN")), strict=True).pages) == 1
    with wave.open(io.BytesIO(PROBES["audio"].make_file("0000"))) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 16_000)
        assert sound.getnframes() == 16_000 * 17 // 4


@pytest.mark.parametrize("name", sorted(PROBES))
def test_probe_question_and_filename_do_not_reveal_the_word(name: str) -> None:
    probe = PROBES[name]
    assert not probe.vocabulary.find(f"{probe.question} {probe.filename}")
    file = build_request(probe, SECRETS[name]).messages[0].parts[1]
    assert isinstance(file, NativePart)
    assert (file.mime_type, file.filename) == (probe.mime_type, probe.filename)


def test_probability_of_guessing_both_probe_words_is_below_one_in_a_thousand() -> None:
    """A model that cannot read the probes may guess their words."""
    for probe in PROBES.values():
        assert probe.vocabulary.size * (probe.vocabulary.size - 1) > 1000
        first, second = probe.vocabulary.draw_two(random.Random(1).sample)
        assert first != second
        assert probe.vocabulary.find(first) == {first}


ANSWERS = [
    ("vision", "LANTERN", AnswerReading.RIGHT),
    ("vision", "lantern.", AnswerReading.RIGHT),
    (
        "vision",
        "Of course! The word in your picture is **Lantern**. Don't hesitate to ask for more.",
        AnswerReading.RIGHT,
    ),
    ("vision", "图片中的单词是“LANTERN”。", AnswerReading.RIGHT),
    ("vision", "图片里写着ＬＡＮＴＥＲＮ，没有其他内容。", AnswerReading.RIGHT),
    ("vision", "PUMPKIN", AnswerReading.WRONG),
    ("vision", "LANTERN or PUMPKIN", AnswerReading.HEDGED),
    ("vision", " ".join(WORDS), AnswerReading.HEDGED),
    ("vision", "Yes, I can see it.", AnswerReading.HEDGED),
    ("vision", "A red car is parked in front of a house.", AnswerReading.HEDGED),
    ("vision", "LANTERNS", AnswerReading.HEDGED),
    ("vision", "I cannot see any image, but perhaps it says LANTERN.", AnswerReading.HEDGED),
    ("vision", "NONE", AnswerReading.DENIED),
    ("vision", "I'm sorry, but I can't view images.", AnswerReading.DENIED),
    ("vision", "我无法查看图片。", AnswerReading.DENIED),
    ("vision", "看不到任何图片", AnswerReading.DENIED),
    ("vision", PROBES["vision"].question, AnswerReading.HEDGED),
    ("audio", "4271", AnswerReading.RIGHT),
    ("audio", "4, 2, 7, 1.", AnswerReading.RIGHT),
    ("audio", "I heard four digits: four, two, seven, one.", AnswerReading.RIGHT),
    ("audio", "录音里说的是：四、二、七、一。", AnswerReading.RIGHT),
    ("audio", "42 71", AnswerReading.RIGHT),
    ("audio", "1724", AnswerReading.WRONG),
    ("audio", "427", AnswerReading.HEDGED),
    ("audio", "4271 or 4272", AnswerReading.HEDGED),
    ("audio", "NONE. I cannot hear any sound.", AnswerReading.DENIED),
    ("audio", "我听不到任何声音。", AnswerReading.DENIED),
    ("file", "The document says WALNUT.", AnswerReading.RIGHT),
    ("file", "No document was attached.", AnswerReading.DENIED),
    ("video", "UMBRELLA", AnswerReading.RIGHT),
    ("video", "   ", AnswerReading.SILENT),
]


@pytest.mark.parametrize(("name", "text", "reading"), ANSWERS)
def test_probe_answer_is_right_only_if_exactly_the_word_is_named(name: str, text: str, reading: AnswerReading) -> None:
    assert read_answer(PROBES[name], SECRETS[name], ProbeAnswer(text=text)) is reading


@pytest.mark.parametrize(
    ("fault", "reading"),
    [
        (Fault.HTTP_400, AnswerReading.REFUSED),
        (Fault.CAPABILITY_MISMATCH, AnswerReading.REFUSED),
        (Fault.HTTP_415, AnswerReading.REFUSED),
        (Fault.EMPTY_CONTENT, AnswerReading.SILENT),
        (Fault.HTTP_429, AnswerReading.FAILED),
        (Fault.HTTP_401, AnswerReading.FAILED),
        (Fault.READ_TIMEOUT, AnswerReading.FAILED),
    ],
)
def test_only_a_content_refusal_shows_that_a_model_cannot_read_the_probe(fault: Fault, reading: AnswerReading) -> None:
    """A missing key, a rate limit or a network error does not show what a model reads."""
    assert read_answer(PROBES["vision"], "LANTERN", ProbeAnswer(fault=fault)) is reading


@pytest.mark.parametrize("text", ["NONE", "The image is blank.", "It is empty.", "空白", "无", "I can't see a word."])
def test_answer_that_finds_no_word_in_the_control_file_is_a_denial(text: str) -> None:
    assert read_answer(PROBES["vision"], "", ProbeAnswer(text=text)) is AnswerReading.DENIED


RIGHT, REFUSED, DENIED, WRONG = AnswerReading.RIGHT, AnswerReading.REFUSED, AnswerReading.DENIED, AnswerReading.WRONG
HEDGED, SILENT, FAILED = AnswerReading.HEDGED, AnswerReading.SILENT, AnswerReading.FAILED


@pytest.mark.parametrize(
    ("first", "second", "control", "outcome", "reason"),
    [
        (RIGHT, RIGHT, DENIED, ProbeOutcome.YES, ProbeReason.READ_BOTH),
        (RIGHT, RIGHT, REFUSED, ProbeOutcome.YES, ProbeReason.READ_BOTH),
        (RIGHT, RIGHT, SILENT, ProbeOutcome.YES, ProbeReason.READ_BOTH),
        (RIGHT, RIGHT, WRONG, ProbeOutcome.UNCLEAR, ProbeReason.FOUND_IN_CONTROL),
        (RIGHT, RIGHT, HEDGED, ProbeOutcome.UNCLEAR, ProbeReason.FOUND_IN_CONTROL),
        (RIGHT, RIGHT, FAILED, ProbeOutcome.UNCLEAR, ProbeReason.FAILED),
        (RIGHT, WRONG, None, ProbeOutcome.UNCLEAR, ProbeReason.ONE_OF_TWO),
        (REFUSED, RIGHT, None, ProbeOutcome.UNCLEAR, ProbeReason.ONE_OF_TWO),
        (REFUSED, REFUSED, None, ProbeOutcome.NO, ProbeReason.REFUSED),
        (DENIED, REFUSED, None, ProbeOutcome.NO, ProbeReason.REFUSED),
        (WRONG, DENIED, None, ProbeOutcome.NO, ProbeReason.DENIED),
        (WRONG, WRONG, None, ProbeOutcome.NO, ProbeReason.WRONG),
        (HEDGED, DENIED, None, ProbeOutcome.UNCLEAR, ProbeReason.HEDGED),
        (SILENT, DENIED, None, ProbeOutcome.UNCLEAR, ProbeReason.SILENT),
        (FAILED, DENIED, None, ProbeOutcome.UNCLEAR, ProbeReason.FAILED),
    ],
)
def test_probe_outcome_combines_both_word_files_and_the_control_file(
    first: AnswerReading,
    second: AnswerReading,
    control: AnswerReading | None,
    outcome: ProbeOutcome,
    reason: ProbeReason,
) -> None:
    """If the answers about the two files differ, the result is unclear and has a reason."""
    assert conclude((first, second), control) == (outcome, reason)


TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from([*WORDS[:6], "NONE", "yes", "1234", "9", "four", "二", "我看到"]), max_size=8).map(
        " ".join
    ),
)


@given(name=st.sampled_from(sorted(PROBES)), answers=st.tuples(TEXTS, TEXTS, TEXTS))
def test_constant_probe_answer_is_right_for_at_most_one_word(name: str, answers: tuple[str, str, str]) -> None:
    """To pass without reading the probe, a model must guess the right one of size × (size - 1) word pairs."""
    probe = PROBES[name]
    words_found = [sorted(probe.vocabulary.find(text)) for text in answers[:2]]
    for text, names in zip(answers, words_found, strict=False):
        right = [
            candidate
            for candidate in names
            if read_answer(probe, candidate, ProbeAnswer(text=text)) is AnswerReading.RIGHT
        ]
        assert right == [] or right == names[:1] == names
    words_drawn = ("4711", "0815") if name == "audio" else ("YOGURT", "WILLOW")
    # Skip answers that happen to contain a drawn word.
    assume(not any(drawn in word for drawn in words_drawn for word in words_found))
    replies = iter(answers)
    (finding,) = conduct(
        [probe], lambda chats: [ProbeAnswer(text=next(replies)) for _ in chats], lambda *_: words_drawn
    )
    assert finding.outcome is not ProbeOutcome.YES
