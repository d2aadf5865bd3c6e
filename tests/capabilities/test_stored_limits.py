"""Limits stored in an agent's database row are parsed."""

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
def test_agent_row_without_limits_parses_to_none(stored: dict[str, object]) -> None:
    assert parse_limits(stored) is None


def test_agent_row_with_listed_models_allows_only_the_listed_models() -> None:
    limits = parse_limits({"models": ["task:design"]})
    assert limits is not None
    assert [limits.allows(name) for name in ("task:design", "task:planning")] == [True, False]


@pytest.mark.parametrize("limits", [None, AgentLimits(models=frozenset({"task:design"}))])
def test_limits_without_amounts_create_no_usage_holder(limits: AgentLimits | None) -> None:
    assert agent_holder("a", limits) is None
    assert maker_holder("a", limits) is None
    assert key_holder("k", limits) is None
    assert label_holder(LabelKind.TEAM, "t", limits) is None
    assert user_holder("a", "u", limits) is None
