"""Headers that tell a client when to retry: seconds, milliseconds, dates and invalid values."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.protocols.error_body import MAX_SECONDS, retry_after

NOW = 1_790_000_000.0


def http_date(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "60"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "60"}, 60.0),
        ({"retry-after": http_date(30), "date": http_date(0)}, 30.0),
        ({"retry-after": http_date(30), "date": http_date(10)}, 20.0),
        ({"retry-after": http_date(30)}, 30.0),
        ({"retry-after": http_date(-30)}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "NaN"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "999999999"}, None),
        ({"retry-after": http_date(10 * MAX_SECONDS)}, None),
        ({"retry-after": "Fri, 99 Foo 2026"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_every_retry_after_format_is_parsed(headers: dict[str, str], expected: float | None) -> None:
    """Milliseconds take precedence over seconds. A date is relative to the response's Date header. Other values become
    None.
    """
    assert retry_after(headers, NOW) == expected


HEADER = st.text(max_size=40) | st.floats().map(str) | st.integers().map(str) | st.integers(-9999, 9999).map(http_date)


@given(st.dictionaries(st.sampled_from(["retry-after", "Retry-After", "retry-after-ms", "date"]), HEADER), st.floats())
def test_any_retry_header_parses_to_a_bounded_delay_or_none(headers: dict[str, str], now: float) -> None:
    seconds = retry_after(headers, now)
    assert seconds is None or 0 <= seconds <= MAX_SECONDS
