"""What `test_slow_switch.py` runs: one test that is marked slow. It is none of the suite, by its name."""

from __future__ import annotations

import pytest
from hypothesis import settings


@pytest.mark.slow
def test_a_slow_one_has_the_slow_profile() -> None:
    """It is run only with --slow, and then laws are tried on more examples."""
    assert settings().max_examples == 2000
