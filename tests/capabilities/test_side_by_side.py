"""Two texts are compared line by line: differing lines form rows, and changed words in a line are marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.side_by_side import MAX_LINE, compare_lines, mark_words

TEXTS = st.lists(st.text("ab你 ", max_size=6), max_size=12).map("\n".join)


@given(TEXTS, TEXTS)
def test_every_changed_line_of_both_texts_has_a_diff_row(before: str, after: str) -> None:
    rows = compare_lines(before, after, context=99)
    left = [row.left for row in rows if row.left_number]
    right = [row.right for row in rows if row.right_number]
    if before.splitlines() == after.splitlines():
        assert rows == ()
    else:
        assert (left, right) == (before.splitlines(), after.splitlines())


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_omitted_lines_before_a_diff_row_are_counted(before: str, after: str, context: int) -> None:
    number = 0
    for row in compare_lines(before, after, context=context):
        number += row.skipped
        if row.left_number:
            number += 1
            assert row.left_number == number


@given(st.text(max_size=30), st.text(max_size=30))
def test_marked_parts_of_a_line_concatenate_to_the_line(line: str, other_line: str) -> None:
    parts = mark_words(line, other_line)
    assert "".join(text for text, _ in parts) == line
    if line == other_line:
        assert not any(is_different for _, is_different in parts)


def test_changed_words_and_single_chinese_characters_are_marked() -> None:
    """Very long lines are not searched for changed words."""
    (row,) = compare_lines("size: 12 kB 收到", "size: 34 kB 收文")
    assert row.left_parts == (("size: ", False), ("12", True), (" kB 收", False), ("到", True))
    assert row.right_parts == (("size: ", False), ("34", True), (" kB 收", False), ("文", True))
    assert mark_words("x" * (MAX_LINE + 1), "y") == (("x" * (MAX_LINE + 1), False),)
