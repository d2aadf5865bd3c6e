"""The JSON codec gives the same results as the standard library, which handles the values that the codec rejects."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.json_codec import read_json, write_json
from capabilities.core.message import make_blob
from capabilities.core.surrogates import repair
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.wire import MediaData, split_payload

TEXT = st.text(st.characters(codec="utf-8"))
NUMBER = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def no_default() -> Callable[[Any], Any]:
    def refuse(value: Any) -> Any:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    return refuse


@given(JSON)
def test_written_json_is_read_back_by_the_standard_library(value: Any) -> None:
    """The codec leaves numbers beyond 64 bits to the standard library."""
    assert json.loads(write_json(value, no_default)) == value


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', '"\\ud800"', "123456789012345678", "[]", '"é"'])
def test_json_rejected_by_the_codec_is_read_like_the_standard_library(text: str) -> None:
    """Providers send NaN, infinities and lone surrogates."""
    assert repr(read_json(text)) == repr(json.loads(text))
    assert repr(read_json(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize(("number", "kind"), [(2**64 - 1, int), (2**64, float), (-(2**63), int), (-(2**63) - 1, float)])
def test_only_integers_beyond_64_bits_are_read_as_floats(number: int, kind: type) -> None:
    """The text with NaN is read by the standard library, which must give the same result as the codec."""
    for text in (f"[{number}]", f"[{number}, NaN]"):
        assert [type(read_json(text)[0]), read_json(text)[0]] == [kind, kind(number)]


@pytest.mark.parametrize("text", [b"", b"{", b"[1,]", b"\xff", b"nul"])
def test_invalid_json_raises_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # The codec and the standard library raise different subclasses of ValueError.
        read_json(text)


def test_message_repaired_from_lone_surrogates_stays_translatable() -> None:
    repaired = repair(translatable("%(name)s is missing.", name="\ud83d\ude00"))
    assert isinstance(repaired, Translatable)
    assert repaired.facts == {"name": "😀"}


def test_payload_media_is_found_by_codec_and_standard_library_writers() -> None:
    """If the codec fails midway, the media found so far are discarded and the search starts again."""
    media = MediaData(make_blob(b"abc"), "data:x;base64,")
    payload = {"first": media, "huge": 2**80, "second": [media], "view": MappingProxyType({"a": (1, 2)})}
    assert isinstance(orjson.dumps({"a": 1}), bytes)
    pieces = split_payload(payload)
    assert [isinstance(piece, MediaData) for piece in pieces] == [False, True, False, True, False]
    text = b"".join(b"YWJj" if isinstance(piece, MediaData) else piece for piece in pieces)
    assert json.loads(text) == {
        "first": "data:x;base64,YWJj",
        "huge": 2**80,
        "second": ["data:x;base64,YWJj"],
        "view": {"a": [1, 2]},
    }
