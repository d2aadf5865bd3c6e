"""List items in documents are numbered as in word processors, even in damaged files."""

from __future__ import annotations

import pytest

from artifacts.extract.numbering import ListLevel, ListNumbers, parse_level


@pytest.mark.parametrize(("kind", "start", "shown"), [("decimal", 1, "1.1"), ("ideographDigital", 0, "〇.1")])
def test_parent_list_level_without_an_item_counts_as_one(kind: str, start: int, shown: str) -> None:
    numbers, levels = ListNumbers(), {0: ListLevel(kind, "%1.", start), 1: ListLevel(pattern="%1.%2")}
    numbers.restart("list", 0, start)
    assert numbers.next_marker("list", levels, 1).strip() == shown


def test_opendocument_list_level_is_parsed_up_to_ten() -> None:
    assert [parse_level(text) for text in ("0", "10", "²", "", "123")] == [0, 10, 0, 0, 0]
