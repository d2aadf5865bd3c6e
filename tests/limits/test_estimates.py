"""Token usage is estimated if the provider reports none or only part of it."""

from __future__ import annotations

import pytest

from capabilities.core.message import ToolCall
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Media, Usage
from routing_admin.core.limits.estimates import IMAGE_TOKENS, answer_tokens, estimate_usage

TEXT = "x" * 40
"""A text that is estimated at ten tokens."""


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (Answer(), 0),
        (Answer(TEXT), 10),
        (Answer(reasoning=TEXT), 10),
        (Answer(refusal=TEXT), 10),
        (Answer(tool_calls=(ToolCall("a", "findings", TEXT), ToolCall("b", "find", TEXT))), 23),
        (Answer(media=(Media(Kind.IMAGE, "image/png", size=70), Media(Kind.IMAGE, "image/png"))), 2 * IMAGE_TOKENS),
        (Answer(media=(Media(Kind.AUDIO, "audio/wav", size=40_000, transcript=TEXT),)), 30),
        (Answer(media=(Media(Kind.AUDIO, "audio/wav", data="A" * 8000),)), 3),
        (Answer(TEXT, reasoning=TEXT), 20),
    ],
)
def test_estimate_includes_all_parts_of_an_answer(answer: Answer, tokens: int) -> None:
    assert answer_tokens(answer) == tokens


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, (7, 10)),
        (Usage(), (7, 10)),
        (Usage(5, 3), (5, 3)),
        (Usage(0, 0), (0, 0)),
        (Usage(5), (5, 10)),
        (Usage(None, 3), (7, 3)),
        (Usage(None, None, 50), (40, 10)),
        (Usage(None, None, 4), (0, 10)),
        (Usage(30, None, 50), (30, 20)),
        (Usage(None, 30, 50), (20, 30)),
    ],
)
def test_missing_token_counts_are_estimated(usage: Usage | None, expected: tuple[int, int]) -> None:
    estimated = estimate_usage(usage, 7, Answer(TEXT))
    assert (estimated.prompt_tokens, estimated.completion_tokens) == expected


def test_output_of_an_interrupted_stream_is_estimated() -> None:
    """Anthropic reports one output token at the beginning of a stream, so this count is too low if the stream
    breaks.
    """
    estimated = estimate_usage(Usage(5, 1), 7, Answer(TEXT), is_cut=True)
    assert (estimated.prompt_tokens, estimated.completion_tokens) == (5, 10)


def test_without_an_answer_only_reported_usage_counts() -> None:
    assert estimate_usage(None, 7, None) == Usage(0, 0)
    assert estimate_usage(Usage(5, 0), 7, None) == Usage(5, 0)
