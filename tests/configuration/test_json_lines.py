"""The line of a problem's path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.documents.json_lines import line_of, lines_of
from routing_admin.core.documents.json_path import child

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


def test_every_place_has_its_line() -> None:
    """Keys, items and nested ones; text inside strings is no structure."""
    lines = lines_of(TEXT)
    assert lines["providers[0].providerName"] == 3
    assert lines["providers[1]"] == 4
    assert lines["providers[1].endpoint"] == 6
    assert lines['routing["a.b"].fallback[0]'] == 10
    assert lines['routing["a.b"].fallback[1]'] == 11


def test_what_is_missing_is_told_at_the_place_around_it() -> None:
    """A missing field stands where its object begins; a missing root field at the file's first line."""
    lines = lines_of(TEXT)
    assert line_of(lines, "providers[0].apiKey") == 3
    assert line_of(lines, "routing.default.provider") == 9
    assert line_of(lines, "defaultLanguage") == 1
    assert line_of({}, "services[0]") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, path: str = "") -> Iterator[str]:
    yield path
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from places(item, child(path, key))


@given(JSON, st.sampled_from([None, 1, 2]))
def test_the_places_of_any_json_text_are_those_of_its_value(value: Any, indent: int | None) -> None:
    """For any value, however it is written, exactly its places have a line, and none beyond the text."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    lines = lines_of(text)
    assert set(lines) == set(places(value))
    assert max(lines.values()) <= text.count("\n") + 1
