"""A model's token limits: their source, and when a request counts as too long."""

from __future__ import annotations

from datetime import date

import pytest

from capabilities.core.delivery.adaptation import Adapted
from capabilities.core.delivery.model_endpoint import model_endpoint, rename_limit
from capabilities.core.delivery.slots_json import check_limits
from capabilities.core.delivery.token_limits import TokenLimit, TokenLimits, token_limits
from capabilities.core.delivery.tokens import estimate_chat
from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart, Tool
from capabilities.core.providers.catalogue import CatalogueEntry, FactVerdict, StatedLimit
from capabilities.core.vocabulary import Capabilities, Kind
from capabilities.core.wire import Target

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
def test_configured_token_limit_overrides_the_catalogue_limit(stated, entry, context, output):
    assert token_limits(stated, entry) == TokenLimits(context, output)


@pytest.mark.parametrize(("tokens", "fits"), [(1500, True), (1501, False)])
def test_request_is_too_long_above_one_and_a_half_context_windows(tokens: int, fits: bool):
    """Token estimates may be wrong, so a request of up to 1.5 times the window is tried."""
    assert (TokenLimits(TokenLimit(1000)).obstacle(adapted_text(tokens), "m") is None) is fits


def test_invalid_token_limit_is_reported_with_its_path():
    assert check_limits({"contextTokens": 32_000, "outputTokens": 8_000}) == ()
    (problem,) = check_limits({"contextTokens": "many"})
    assert problem.field == "limits.contextTokens"


def test_chat_token_estimate_counts_images_and_tools():
    picture = FilePart(Kind.IMAGE, width=512, height=512)
    chat = ChatRequest((Message(Role.USER, (TextPart("four"), picture)),), tools=(Tool("look", "four" * 100),))
    assert estimate_chat(chat, "gpt-4o") > 1 + 255 + 100
    assert estimate_chat(chat, "unknown-model") < 1 + 255


@pytest.mark.parametrize("name", [None, "max_tokens", "max_completion_tokens"])
def test_max_tokens_in_extra_body_is_renamed_only_if_a_name_is_given(name: str | None) -> None:
    target = Target("p", "https://example.org/v1", "m", extra_body={"max_tokens": 5, "seed": 1})
    renamed = rename_limit(model_endpoint("openai", target, Capabilities(("text",))), name)
    assert renamed.target.extra_body == {name or "max_tokens": 5, "seed": 1}
