"""The model's context window limits how much of a file's text is sent.

Messages after the file do not affect this limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_content import FakeContent
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.adaptation import Adapted, PartDelivery, TextStyle, adapt
from capabilities.core.delivery.decision import Outcome, Reader, parse_policies
from capabilities.core.delivery.model_endpoint import content_text_limit
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.text_limit import TextLimit, read_text_limit
from capabilities.core.delivery.tokens import text_tokens
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart
from capabilities.core.vocabulary import Capabilities, Kind

LINE = "one line of words that a model reads\n"
BOOK = (LINE * 20_000)[:713_000]


def document(words: str, name: str = "book.pdf") -> FilePart:
    return FilePart(Kind.DOCUMENT, "application/pdf", name, 44, "a1", content=FakeContent(words=words))


def reader(window: int | None, limit: TextLimit | None = None) -> Reader:
    policies = parse_policies("extract+convert")
    return Reader(
        slots_for("openai"), Capabilities(("text",)), policies, text_limit=limit or TextLimit(), window=window
    )


def delivered(candidate: Reader, *parts: FilePart | TextPart) -> Sequence[PartDelivery]:
    result = adapt(ChatRequest((Message(Role.USER, parts),)), candidate, TextStyle("en"))
    assert isinstance(result, Adapted)
    return result.deliveries


def count_delivered_characters(candidate: Reader, *parts: FilePart | TextPart) -> int:
    return len(delivered(candidate, *parts)[-1].text or "")


def test_model_with_a_million_token_window_gets_a_whole_book() -> None:
    (delivery,) = delivered(reader(1_000_000), document(BOOK))
    assert (delivery.delivery.outcome, delivery.delivery.loss) == (Outcome.EXTRACTED, None)
    assert (delivery.text or "").endswith(BOOK)


def test_model_with_an_unknown_window_gets_the_default_amount_of_text() -> None:
    assert 43_000 < count_delivered_characters(reader(None), document(BOOK)) < 44_500


@pytest.mark.parametrize("window", [8_000, 32_000, 128_000, 200_000])
def test_file_text_gets_half_of_the_window_left_after_the_answer(window: int) -> None:
    text = delivered(reader(window), document(BOOK))[0].text or ""
    assert 0.3 * window < text_tokens(text).tokens < 0.39 * window


def test_chinese_file_text_gets_the_same_share_of_tokens() -> None:
    text = delivered(reader(128_000), document("一行字和更多的字\n" * 60_000))[0].text or ""
    assert 0.3 * 128_000 < text_tokens(text).tokens < 0.42 * 128_000


def test_earlier_text_and_files_reduce_the_share_of_a_file() -> None:
    candidate = reader(128_000)
    alone, after_words = (
        count_delivered_characters(candidate, document(BOOK)),
        count_delivered_characters(candidate, TextPart(LINE * 5_000), document(BOOK)),
    )
    after_file = count_delivered_characters(candidate, document(BOOK, "first.pdf"), document(BOOK))
    assert after_words < 0.6 * alone
    assert 0.4 * alone < after_file < 0.6 * alone


def test_file_gets_a_minimum_of_text_in_a_full_window() -> None:
    assert 1_500 < count_delivered_characters(reader(8_000), TextPart(LINE * 5_000), document(BOOK)) < 2_500


@pytest.mark.parametrize(
    ("window", "setting", "least", "most"),
    [
        (None, "100000", 98_000, 100_500),
        (128_000, "100000", 98_000, 100_500),
        (32_000, "100000", 80_000, 97_000),
        (128_000, "10%", 34_000, 39_000),
        (None, "10%", 43_000, 44_500),
    ],
)
def test_text_limit_can_be_set_in_characters_or_as_a_window_share(
    window: int | None, setting: str, least: int, most: int
) -> None:
    assert least < count_delivered_characters(reader(window, read_text_limit(setting)), document(BOOK)) < most


@pytest.mark.parametrize("setting", ["", "0%", "101%", "-5", "12", "many", "1e9", "99999999999", "٣٠%"])
def test_invalid_text_limit_counts_as_unset(setting: str) -> None:
    assert content_text_limit({"text": setting}) == TextLimit()


def test_file_text_is_cut_between_lines() -> None:
    text = delivered(reader(32_000), document(BOOK))[0].text or ""
    head, _, tail = text.partition("[Truncated")
    assert head.endswith(LINE)
    assert tail.partition("]\n")[2].startswith(LINE[:8])


def test_file_text_is_cut_at_a_nearby_paragraph() -> None:
    paragraphs = (LINE * 10 + "\n") * 2_000
    text = delivered(reader(32_000), document(paragraphs))[0].text or ""
    head, _, tail = text.partition("[Truncated")
    assert head.endswith(f"{LINE}\n")
    assert tail.partition("]\n")[2].startswith(LINE * 10)


PARTS = st.one_of(
    st.integers(0, 40_000).map(lambda count: TextPart("w " * count)),
    st.integers(0, 300_000).map(lambda count: document((LINE * 9_000)[:count])),
    st.integers(1, 300_000).map(
        lambda size: FilePart(Kind.IMAGE, "image/png", "a.png", size, "a2", content=FakeContent(b"x" * size))
    ),
)


@given(st.lists(PARTS, min_size=1, max_size=5), PARTS, st.sampled_from([None, 8_000, 32_000, 200_000]))
def test_later_message_never_changes_the_text_sent_for_earlier_files(
    parts: Sequence[FilePart | TextPart], later: FilePart | TextPart, window: int | None
) -> None:
    candidate = replace(reader(window), capabilities=Capabilities(("text", "vision")))
    messages = tuple(Message(Role.USER, (part,)) for part in parts)
    earlier = adapt(ChatRequest(messages), candidate, TextStyle("en"))
    after = adapt(ChatRequest((*messages, Message(Role.USER, (later,)))), candidate, TextStyle("en"))
    assert isinstance(earlier, Adapted)
    assert isinstance(after, Adapted)
    assert after.chat.messages[: len(messages)] == earlier.chat.messages
