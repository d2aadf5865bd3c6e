"""Parameters in effect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.params import Params, in_effect
from tests.routing.walking import temperatures, token_limits


@pytest.mark.requirement("MMR-P7")
@given(st.lists(st.builds(Params, temperatures, token_limits), max_size=4))
def test_each_parameter_is_the_strongest_level_s_that_names_it(levels):
    """Request over candidate over route over provider; 0 is a value, absent is absent (decision 8)."""
    effective = in_effect(*levels)
    named = [level.temperature for level in levels if level.temperature is not None]
    limits = [level.max_tokens for level in levels if level.max_tokens is not None]
    assert effective == Params(named[0] if named else None, limits[0] if limits else None)


def test_temperature_zero_of_a_request_is_not_an_absent_one():
    """Zero wins over the route's value."""
    assert in_effect(Params(0.0), Params(0.8, 100)) == Params(0.0, 100)
