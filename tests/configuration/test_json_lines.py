"""Finding the line and column in a JSON file for the path that a problem names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.storable import DEPTH
from routing_admin.core.documents.json_lines import TextPosition, find_position, find_positions
from routing_admin.core.documents.json_path import child, read_document

TEXT = """{
  "providers": [
    {"providerName": "a"},
    {
      "providerName": "b",
      "endpoint": "x:{,}"
    }
  ],
  "routing": {"a.b": {
    "fallback": ["a",
      "b"]
  }}
}
"""


def test_fields_are_located_at_their_name_and_items_at_their_start() -> None:
    positions = find_positions(TEXT)
    assert positions["providers[0].providerName"] == TextPosition(3, 6)
    assert positions["providers[1]"] == TextPosition(4, 5)
    assert positions["providers[1].endpoint"] == TextPosition(6, 7)
    assert positions['routing["a.b"].fallback[0]'] == TextPosition(10, 18)
    assert positions['routing["a.b"].fallback[1]'] == TextPosition(11, 7)


def test_missing_field_is_located_at_the_start_of_its_object() -> None:
    positions = find_positions(TEXT)
    assert find_position(positions, "providers[0].apiKey") == TextPosition(3, 5)
    assert find_position(positions, "routing.default.provider") == TextPosition(9, 3)
    assert find_position(positions, "defaultLanguage") == TextPosition(1, 1)
    assert find_position({}, "services[0]") is None


def test_duplicate_field_is_reported_at_its_first_position() -> None:
    text = '{"a": 1,\n "b": 2, "a": 3}'
    (problem,) = read_document(text).problems
    assert (problem.field, problem.constraint) == ("a", "duplicate")
    assert find_position(find_positions(text), problem.field) == TextPosition(1, 2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def paths(value: Any, path: str = "") -> Iterator[str]:
    yield path
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from paths(item, child(path, key))


@given(JSON, st.sampled_from([None, 1, 2]))
def test_every_path_of_any_json_text_is_located(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    positions, lines = find_positions(text), text.split("\n")
    assert set(positions) == set(paths(value))
    assert all(lines[position.line - 1][position.column - 1].strip() for position in positions.values())


def test_document_may_be_nested_as_deep_as_the_limit_and_no_deeper() -> None:
    for levels, is_readable in ((DEPTH, True), (DEPTH + 1, False)):
        nested = "[" * levels + "1" + "]" * levels
        assert (read_document(nested).problems == ()) is is_readable, levels
