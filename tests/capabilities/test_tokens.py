"""A token estimate follows a formula published by the vendor, and names it. Other models have no estimate."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.tokens import FAMILIES, file_tokens, find_family, text_tokens
from capabilities.core.message import FilePart
from capabilities.core.vocabulary import Kind

PUBLISHED = [
    ("claude-sonnet-4-5", 1000, 1000, 1296),
    ("claude-sonnet-4-5", 1920, 1080, 1560),
    ("claude-sonnet-4-5", 3840, 2160, 1560),
    ("claude-opus-4-7", 1920, 1080, 2691),
    ("anthropic/claude-opus-4.7", 1920, 1080, 2691),
    ("claude-opus-4-7", 3840, 2160, 4784),
    ("gpt-4o", 1024, 1024, 765),
    ("gpt-4o", 2048, 4096, 1105),
    ("openai/gpt-4o-2024-08-06", 4096, 2048, 1105),
    ("gemini-2.5-pro", 384, 384, 258),
    ("gemini-2.5-pro", 1536, 768, 516),
    ("gemini-3-pro", 330, 291, 1120),
    ("qwen-vl-max", 280, 280, 100),
    ("qwen-vl-max", 1, 1, 4),
]


@pytest.mark.parametrize(("model", "width", "height", "tokens"), PUBLISHED)
def test_image_token_estimates_equal_the_vendor_examples(model: str, width: int, height: int, tokens: int) -> None:
    estimate = file_tokens(model, FilePart(Kind.IMAGE, width=width, height=height))
    assert estimate is not None
    assert estimate.tokens == tokens
    assert estimate.rule


def test_audio_video_and_document_tokens_are_counted_by_length() -> None:
    """Gemini 2.5 counts 32 tokens per second of audio, 263 per second of video and 258 per page."""
    counted = [
        file_tokens("gemini-2.5-flash", FilePart(Kind.AUDIO, seconds=2.5)),
        file_tokens("gemini-2.5-flash", FilePart(Kind.VIDEO, seconds=10)),
        file_tokens("gemini-2.5-flash", FilePart(Kind.DOCUMENT, pages=3)),
    ]
    assert [estimate and estimate.tokens for estimate in counted] == [80, 2630, 774]


@pytest.mark.parametrize(
    ("model", "file"),
    [
        ("my-own-model", FilePart(Kind.IMAGE, width=10, height=10)),
        ("gpt-4o", FilePart(Kind.IMAGE)),
        ("gpt-4o", FilePart(Kind.AUDIO, seconds=3)),
        ("claude-3-opus", FilePart(Kind.DOCUMENT)),
        ("gemini-2.5-pro", FilePart(Kind.OTHER, size=10)),
    ],
)
def test_file_without_known_formula_or_size_has_no_token_estimate(model: str, file: FilePart) -> None:
    assert file_tokens(model, file) is None


def test_text_counts_one_token_per_chinese_character_and_per_four_others() -> None:
    assert text_tokens("").tokens == 0
    assert text_tokens("hello").tokens == 2
    assert text_tokens("能力路由").tokens == 4
    assert text_tokens("能力 ok").tokens == 3


FULL_HD = {
    "claude-opus-4-8": 2691,
    "claude-sonnet-4-5": 1560,
    "claude-3-opus": 1560,
    "claude-opus-5-0": 2691,
    "claude-instant": 1560,
    "gpt-4o-mini": 36835,
    "gpt-4o": 1105,
    "gpt-4.1-mini": 2443,
    "gpt-4.1-nano": 3710,
    "gpt-4.1": 1105,
    "gpt-5-nano": 2262,
    "gpt-5.2": 2448,
    "gpt-6": 2448,
    "gpt-5": 910,
    "o4-mini": 2594,
    "o1": 975,
    "o3": 975,
    "gemini-3-pro": 1120,
    "gemini-2.5-pro": 1548,
    "qwen-vl-max": 2691,
}
"""Maps a model of each family to its token count for an image of 1920 x 1080 pixels, by the vendor's formula."""


@pytest.mark.parametrize("model", FULL_HD)
def test_each_model_family_has_its_own_image_token_formula(model: str) -> None:
    """The expected token counts were computed by hand."""
    estimate = file_tokens(model, FilePart(Kind.IMAGE, width=1920, height=1080))
    assert (estimate and estimate.tokens) == FULL_HD[model]


def test_no_model_family_pattern_is_shadowed_by_an_earlier_pattern() -> None:
    patterns = [pattern for pattern, _ in FAMILIES]
    assert [next(pattern for pattern in patterns if fnmatchcase(model, pattern)) for model in FULL_HD] == patterns


@given(
    model=st.sampled_from([pattern.replace("*", "-x") for pattern, family in FAMILIES if family.image]),
    width=st.integers(1, 20_000),
    height=st.integers(1, 20_000),
)
def test_image_token_estimate_is_positive_and_independent_of_orientation(model: str, width: int, height: int) -> None:
    upright = file_tokens(model, FilePart(Kind.IMAGE, width=width, height=height))
    lying = file_tokens(model, FilePart(Kind.IMAGE, width=height, height=width))
    if find_family(model) is None:
        assert upright is None
        return
    assert upright == lying
    assert upright is not None
    assert upright.tokens > 0
