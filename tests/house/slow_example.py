"""A test that is marked slow, for `test_slow_switch.py` to run. Its file name keeps pytest from collecting it."""

from __future__ import annotations

import pytest
from hypothesis import settings


@pytest.mark.slow
def test_property_has_the_slow_profile() -> None:
    assert settings().max_examples == 2000
