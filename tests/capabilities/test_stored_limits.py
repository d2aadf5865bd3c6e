"""The limits in an agent's row."""

from __future__ import annotations

import pytest

from capabilities.core.services.agent_limits import limits_of


@pytest.mark.parametrize("stored", [{}, {"models": []}, {"currency": "USD"}])
def test_a_row_that_limits_nothing_has_no_limits(stored: dict[str, object]) -> None:
    assert limits_of(stored) is None


def test_a_row_that_names_models_allows_these_alone() -> None:
    limits = limits_of({"models": ["task:design"]})
    assert limits is not None
    assert [limits.allows(name) for name in ("task:design", "task:planning")] == [True, False]
