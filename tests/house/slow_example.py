"""One test that is marked slow, run by `test_slow_switch.py`; its file name keeps it out of the suite."""

from __future__ import annotations

import pytest
from hypothesis import settings


@pytest.mark.slow
def test_property_has_the_slow_profile() -> None:
    """With --slow, properties run on more examples."""
    assert settings().max_examples == 2000
