"""The values in incoming JSON are counted before it is parsed.

A large document parsed in steps gives the same value.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core import json_codec
from capabilities.core.json_codec import extract_strings, restore_strings, scan_json
from capabilities.core.protocols.tool_calls import parse_arguments
from capabilities.json_bodies import JsonTooLargeError, load_json

FRAGMENTS = st.sampled_from(['"', "\\", "a", "中", "😀", "é", "\n", "[", "{", ",", ":", "\\u", "ud83d", "ude00", "/"])
TEXTS = st.lists(FRAGMENTS, max_size=120).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers(-9, 9) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the parsing steps, so that every escape sequence crosses the boundary between two steps."""
    monkeypatch.setattr(json_codec, "BLOCK", 16)
    monkeypatch.setattr(json_codec, "PIECE_BYTES", 20)


def count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(count, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    return int(isinstance(value, str))


@pytest.mark.usefixtures("short_steps")
@given(value=VALUES, escaped=st.booleans())
def test_json_parsed_in_steps_has_the_same_value(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped).encode()
    scan = scan_json(text, 10**6)
    skeleton, texts = extract_strings(text, scan, orjson.loads, "@@")
    assert restore_strings(orjson.loads(skeleton), texts) == value
    assert scan.strings + scan.containers == count(value)


@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize("number", range(12, 40))
@pytest.mark.parametrize("before", ["", "a" * 40])
def test_json_quotes_after_any_number_of_backslashes_are_recognized(number: int, before: str) -> None:
    value = [before + "\\" * number + '"' + "b" * 40, "\\" * number, {"c": []}]
    scan = scan_json(text := json.dumps(value).encode(), 10**6)
    skeleton, texts = extract_strings(text, scan, orjson.loads, "@@")
    assert (scan.strings, scan.containers) == (3, 3)
    assert restore_strings(orjson.loads(skeleton), texts) == value


def test_json_inside_a_string_is_counted_as_one_value() -> None:
    prose = json.dumps({"text": 'He said: "[1, 2, {3}]", and left.\\ ' * 5_000}).encode()
    assert scan_json(prose, 3).values == 3


@pytest.mark.parametrize(
    "part", [b"[],", b"{},", b'"",', b'"a":1,', b"1,1,1,1,", b"[[],{}],", b'{"a":"b"},'], ids=lambda part: part.decode()
)
def test_too_many_json_values_are_rejected_before_parsing(part: bytes, settings: Any) -> None:
    settings.MAX_JSON_VALUES = 1_000
    text = b"[" + part * 1_000_000
    with pytest.raises(JsonTooLargeError, match=r"1000 JSON values.*ROUTING_ADMIN_MAX_JSON_VALUES") as refusal:
        load_json(text)
    assert refusal.value.status == 413


def test_maximum_number_of_json_values_is_parsed(settings: Any) -> None:
    settings.MAX_JSON_VALUES = 1_000
    text = b"[" + b",".join([b'"a"'] * 799) + b"]"
    assert len(load_json(text)) == 799


def test_json_byte_limit_counts_text_but_not_embedded_files(settings: Any) -> None:
    settings.MAX_JSON_BYTES = 5 * 1024 * 1024
    text, file = "word, word " * 500_000, "data:image/png;base64," + "QUJD" * 2_000_000
    assert load_json(json.dumps({"url": file}).encode(), counts_text=True) == {"url": file}
    assert load_json(json.dumps({"text": text}).encode()) == {"text": text}
    with pytest.raises(JsonTooLargeError, match="ROUTING_ADMIN_MAX_JSON_BYTES"):
        load_json(json.dumps({"text": text}).encode(), counts_text=True)
    short = json.dumps(["x" * 1_000] * 6_000).encode()
    with pytest.raises(JsonTooLargeError, match="ROUTING_ADMIN_MAX_JSON_BYTES"):
        load_json(short)


@pytest.mark.parametrize("ending", ["\\ud83d", "\\ud83dx", "\x01", "\\x", "\\u12"])
def test_large_invalid_json_is_rejected_for_the_same_reasons_as_small_json(ending: str) -> None:
    for filling in ("", "a" * 5_000_000):
        with pytest.raises(ValueError, match=re.compile("surrogate|control|escape|hex", re.I)):
            load_json(f'{{"a":"{filling}{ending}"}}'.encode())


def test_json_in_tool_call_arguments_has_its_own_value_limit() -> None:
    shallow, crowded = '{"a":' + "[" * 9 + "]" * 9 + "}", '{"a":[' + "[]," * 500_000 + "[]]}"
    assert parse_arguments(shallow) == json.loads(shallow)
    assert parse_arguments(crowded) == {"_raw": crowded}
    assert parse_arguments(json.dumps({"words": "[], " * 100_000})) == {"words": "[], " * 100_000}
