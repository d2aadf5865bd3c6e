"""Estimated usage where a provider reports none, or only a part."""

from __future__ import annotations

import pytest

from capabilities.core.message import ToolCall
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Media, Usage
from routing_admin.core.limits.estimates import IMAGE_TOKENS, answer_tokens, usage_of

TEXT = "x" * 40
"""A text of ten tokens."""


@pytest.mark.parametrize(
    ("said", "tokens"),
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
def test_all_that_came_of_an_answer_counts(said: Answer, tokens: int) -> None:
    """Text, reasoning, refusals, tool calls and media all count as output."""
    assert answer_tokens(said) == tokens


@pytest.mark.parametrize(
    ("usage", "took"),
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
def test_what_a_provider_left_out_is_estimated(usage: Usage | None, took: tuple[int, int]) -> None:
    """Missing counts are estimated; a reported count of a complete answer is used as it is."""
    found = usage_of(usage, 7, Answer(TEXT))
    assert (found.prompt_tokens, found.completion_tokens) == took


def test_an_answer_that_was_cut_counts_as_far_as_it_came() -> None:
    """The output of an interrupted stream is estimated, since Anthropic reports one token at its beginning."""
    found = usage_of(Usage(5, 1), 7, Answer(TEXT), is_cut=True)
    assert (found.prompt_tokens, found.completion_tokens) == (5, 10)


def test_no_answer_takes_nothing_unless_it_was_counted() -> None:
    """Without an answer nothing is counted, unless the provider reported usage."""
    assert usage_of(None, 7, None) == Usage(0, 0)
    assert usage_of(Usage(5, 0), 7, None) == Usage(5, 0)
