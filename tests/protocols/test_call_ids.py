"""Tool call ids for hosts that require nine letters and digits."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.protocols.tool_calls import short_call_id


@given(st.text(max_size=40))
def test_call_id_is_shortened_deterministically_to_nine_letters_and_digits(call_id: str) -> None:
    """An id that already has this form is unchanged, so shortening it twice is harmless."""
    short = short_call_id(call_id)
    assert re.fullmatch("[A-Za-z0-9]{9}", short)
    assert short_call_id(short) == short == short_call_id(call_id)


def test_shortened_call_ids_stay_distinct() -> None:
    assert len({short_call_id(f"call_abcdefgh{number}") for number in range(1000)}) == 1000
