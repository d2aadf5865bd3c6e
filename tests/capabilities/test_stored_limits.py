"""Parsing the limits that are stored in an agent's database row."""

from __future__ import annotations

import pytest

from capabilities.core.services.agent_limits import AgentLimits, parse_limits
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import (
    agent_holder,
    key_holder,
    label_holder,
    maker_holder,
    user_holder,
)


@pytest.mark.parametrize("stored", [{}, {"models": []}, {"currency": "USD"}])
def test_row_without_limits_has_none(stored: dict[str, object]) -> None:
    assert parse_limits(stored) is None


def test_row_that_names_models_allows_only_these() -> None:
    limits = parse_limits({"models": ["task:design"]})
    assert limits is not None
    assert [limits.allows(name) for name in ("task:design", "task:planning")] == [True, False]


@pytest.mark.parametrize("limits", [None, AgentLimits(models=frozenset({"task:design"}))])
def test_only_limited_amounts_are_counted(limits: AgentLimits | None) -> None:
    assert agent_holder("a", limits) is None
    assert maker_holder("a", limits) is None
    assert key_holder("k", limits) is None
    assert label_holder(LabelKind.TEAM, "t", limits) is None
    assert user_holder("a", "u", limits) is None
