"""Token counts from providers become bounded whole numbers or None, so that budgets and the log can store them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.json_codec import read_json
from capabilities.core.operations import replies as operations
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.answer_fields import MAX_COUNT, parse_count
from capabilities.core.protocols.anthropic import replies as anthropic
from capabilities.core.protocols.gemini import replies as gemini
from capabilities.core.protocols.openai import replies as openai
from capabilities.core.protocols.openai_responses import replies as responses
from capabilities.core.protocols.stream import BAD_EVENTS
from capabilities.core.wire import Answer, Failure, Usage

UsageReader = Callable[[Any], Usage]
READERS: Mapping[str, tuple[UsageReader, Mapping[str, str], Mapping[str, Mapping[str, str]]]] = {
    "openai": (openai.parse_usage, openai.TOTALS, openai.DETAILS),
    "openai-responses": (responses.parse_usage, responses.TOTALS, responses.DETAILS),
    "anthropic": (anthropic.parse_usage, anthropic.TOTALS, anthropic.DETAILS),
    "gemini": (gemini.parse_usage, gemini.TOTALS, {}),
    "operations": (lambda value: operations.parse_usage({"usage": value}), operations.TOTALS, operations.DETAILS),
}
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=5),
    st.sampled_from(["-1000000", "NaN", [], {}, [1], {"a": 1}, 2**63, -(2**63), 2**64 - 1]),
)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_every_token_count_is_an_integer_that_fits_the_database_column(name: str, data: st.DataObject) -> None:
    read_usage, totals, details = READERS[name]
    answered: dict[str, Any] = {key: data.draw(NUMBERS) for key in totals}
    for part, names in details.items():
        answered[part] = data.draw(st.one_of(NUMBERS, st.fixed_dictionaries(dict.fromkeys(names, NUMBERS))))
    usage = read_usage(answered)
    counts = [getattr(usage, field.name) for field in fields(usage)]
    assert all(count is None or (type(count) is int and 0 <= count <= MAX_COUNT) for count in counts)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (12, 12),
        (12.0, 12),
        (12.7, 12),
        (2**63, MAX_COUNT),
        (1e300, MAX_COUNT),
        (-1, None),
        (-1e300, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        ("12", None),
        (None, None),
        ([12], None),
    ],
)
def test_token_count_is_parsed_or_ignored(value: Any, expected: int | None) -> None:
    """Floats are rounded down, since some hosts send them. Negative numbers, booleans and text are not counts."""
    assert parse_count(value) == expected


def test_negative_cache_miss_count_is_ignored() -> None:
    """DeepSeek reports cache hits and misses. Invalid counts are left out of the sum."""
    usage = openai.parse_usage({"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": -(2**70)})
    assert usage.prompt_tokens == 64


def test_answer_with_invalid_token_counts_is_still_an_answer() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Here."}, "finish_reason": "stop"}
    usage = {"prompt_tokens": -1_000_000, "completion_tokens": 2**80, "total_tokens": "many"}
    reply = PROTOCOLS["openai"].decode(200, {}, json.dumps({"choices": [choice], "usage": usage}).encode())
    assert isinstance(reply, Answer)
    assert (reply.text, reply.usage) == ("Here.", Usage(None, MAX_COUNT))


@pytest.mark.parametrize("name", sorted(set(PROTOCOLS) - {"echo"}))
def test_response_with_too_many_json_values_is_a_failure(name: str) -> None:
    """Decoding stops before the response's many values take up too much memory."""
    bomb = b'{"x":[' + b"[]," * 200_000 + b"[]]}"
    outcome = PROTOCOLS[name].decode(200, {"content-type": "application/json"}, bomb)
    # A stream breaks after `BAD_EVENTS` malformed events.
    streamed = list(PROTOCOLS[name].decoder().feed((b"data: " + bomb + b"\n\n") * BAD_EVENTS))
    refused = PROTOCOLS[name].decode(400, {"content-type": "application/json"}, bomb)
    assert isinstance(outcome, Failure)
    assert "more than 100000 JSON values" in outcome.message
    assert isinstance(streamed[-1], Failure)
    assert "more than 100000 JSON values" in str(streamed[-1].message)
    assert isinstance(refused, Failure)


def test_embedding_with_a_million_numbers_is_read() -> None:
    """An embedding of a million numbers can be read, since numbers need far less memory than lists."""
    assert len(read_json(b"[" + b"0.25," * 1_000_000 + b"0]")) == 1_000_001
