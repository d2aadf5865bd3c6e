"""Token limits of a model: their source, and when a request counts as too long."""

from __future__ import annotations

from datetime import date

import pytest

from capabilities.core.delivery.adaptation import Adapted
from capabilities.core.delivery.slots_json import check_limits
from capabilities.core.delivery.token_limits import TokenLimit, TokenLimits, token_limits
from capabilities.core.delivery.tokens import estimate_chat
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart, Tool
from capabilities.core.providers.catalogue import CatalogueEntry, FactVerdict, StatedLimit
from capabilities.core.vocabulary import Kind

DAY = date(2026, 11, 20)
CONTEXT, OUTPUT = StatedLimit(128_000, FactVerdict.AGREED), StatedLimit(16_384, FactVerdict.AGREED)
ENTRY = CatalogueEntry({}, CONTEXT, OUTPUT, "a map", DAY, "maker", "gpt-4o")


def adapted_text(count: int) -> Adapted:
    return Adapted(ChatRequest((Message(Role.USER, (TextPart("four" * count),)),)))


@pytest.mark.parametrize(
    ("stated", "entry", "context", "output"),
    [
        ({}, None, None, None),
        ({}, ENTRY, TokenLimit(128_000, "a map", DAY), TokenLimit(16_384, "a map", DAY)),
        ({"contextTokens": 32_000}, ENTRY, TokenLimit(32_000), TokenLimit(16_384, "a map", DAY)),
        ({"outputTokens": 100}, None, None, TokenLimit(100)),
        ({"contextTokens": 1}, None, TokenLimit(1), None),
        ({"contextTokens": 0, "outputTokens": True}, None, None, None),
    ],
)
def test_the_administrators_limit_takes_precedence_over_the_catalogues(stated, entry, context, output):
    """An administrator's limits precede the catalogue's, separately for context and output."""
    assert token_limits(stated, entry) == TokenLimits(context, output)


@pytest.mark.parametrize(("tokens", "fits"), [(1500, True), (1501, False)])
def test_a_request_is_too_long_from_half_as_much_again(tokens: int, fits: bool):
    """A request is tried up to 1.5 times the context size, since the estimate may be wrong."""
    assert (TokenLimits(TokenLimit(1000)).obstacle(adapted_text(tokens), "m") is None) is fits


def test_the_two_are_limits_that_may_be_written():
    """`contextTokens` and `outputTokens` are numbers; anything else is a problem that names its path."""
    assert check_limits({"contextTokens": 32_000, "outputTokens": 8_000}) == ()
    (problem,) = check_limits({"contextTokens": "many"})
    assert problem.field == "limits.contextTokens"


def test_tools_calls_and_files_count_too():
    """A request's estimate counts images by their model's rule and tools by their JSON."""
    picture = FilePart(Kind.IMAGE, width=512, height=512)
    chat = ChatRequest((Message(Role.USER, (TextPart("four"), picture)),), tools=(Tool("look", "four" * 100),))
    assert estimate_chat(chat, "gpt-4o") > 1 + 255 + 100
    assert estimate_chat(chat, "unknown-model") < 1 + 255
