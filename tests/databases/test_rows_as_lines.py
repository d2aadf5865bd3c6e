"""Rows are written losslessly as lines in PostgreSQL's COPY text format. Equal lines mean equal rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.storable import make_storable, storable_text
from routing_admin.console.backups.data_transfer.lines import format_lines, parse_line

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\t\n\r\\\b\f\vN中\U0001f600\u2028"), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e15, 1e15) | st.sampled_from([-0.0, 5e-324, 1e16, 1.0])
DOCUMENT = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KINDS = ("CharField", "JSONField", "FloatField", "BigIntegerField", "BooleanField", "BinaryField", "DateTimeField")
ROW = st.tuples(
    *(
        st.none() | values
        for values in (
            TEXT,
            DOCUMENT.map(json.dumps),
            st.floats(allow_nan=False),
            st.integers(-(2**63), 2**63 - 1),
            st.sampled_from([0, 1]),
            st.binary(max_size=4),
            st.datetimes().map(str),
        )
    )
)


def parse_values(line: str) -> list[Any]:
    text, document, number, whole, truth, blob, moment = parse_line(line, [5], [])
    return [
        text,
        document and json.loads(document),
        number and float(number),
        whole and int(whole),
        truth and int(truth),
        blob,
        moment,
    ]


@given(rows=st.lists(ROW, min_size=1, max_size=5))
def test_every_row_can_be_parsed_back_from_its_line(rows: list[Any]) -> None:
    """Only values that no database engine can store are read back as different values."""
    lines = format_lines(KINDS, rows).decode().split("\n")
    assert lines.pop() == ""
    expected = [
        [text and storable_text(text), document and make_storable(json.loads(document)), number, *rest]
        for text, document, number, *rest in rows
    ]
    assert [parse_values(line) for line in lines] == expected


@given(rows=st.lists(ROW, min_size=1, max_size=5))
def test_line_of_a_row_does_not_depend_on_its_batch(rows: list[Any]) -> None:
    """A continued move divides the rows into different batches than the interrupted one."""
    assert format_lines(KINDS, rows) == b"".join(format_lines(KINDS, [row]) for row in rows)


@pytest.mark.parametrize(
    ("kind", "value", "line"),
    [
        ("CharField", "\\N", r"\\N"),
        ("CharField", "tab\tand\nline", r"tab\tand\nline"),
        ("JSONField", '{"long": 1.0, "b": "\\u4e2d\\n", "a": []}', r'{"a": [], "b": "中\\n", "long": 1.0}'),
        ("FloatField", 200.0, "200"),
        ("FloatField", 0.1, "0.1"),
        ("BooleanField", 1, "1"),
        ("BinaryField", b"\0\xff", r"\\x00ff"),
        ("DateTimeField", "2026-01-31 12:00:00", "2026-01-31 12:00:00"),
        ("DateTimeField", "2026-01-31 12:00:00.5", "2026-01-31 12:00:00.500000"),
        ("DateTimeField", "2026-01-31 12:00:00.000000", "2026-01-31 12:00:00"),
        ("DateField", "2026-01-31", "2026-01-31"),
        ("CharField", None, r"\N"),
    ],
)
def test_line_equals_the_copy_text_of_postgresql(kind: str, value: Any, line: str) -> None:
    """Tables can therefore be compared by their COPY text."""
    assert format_lines([kind], [(value,)]).decode() == line + "\n"
