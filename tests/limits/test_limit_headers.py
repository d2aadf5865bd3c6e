"""Response headers that report the remaining limits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from capabilities.core.services.agent_limits import AgentLimits, Meter, UnpricedPolicy
from capabilities.core.services.limit_holders import agent_holder
from routing_admin.core.limits.shares import Share, Window
from routing_admin.limits.headers import build_headers

MONTH = Window("2026-11", datetime(2026, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("policy", "currency", "uncounted"),
    [
        (UnpricedPolicy.ALLOW, "USD", "moneyPerMonth"),
        (UnpricedPolicy.ALLOW, "CNY", None),
        (UnpricedPolicy.REFUSE, "USD", None),
        (UnpricedPolicy.COUNT, "USD", None),
    ],
)
def test_only_budgets_that_allow_unpriced_calls_are_reported_as_uncounted(
    policy: UnpricedPolicy, currency: str, uncounted: str | None
) -> None:
    limits = AgentLimits(maximums={Meter.MONEY_PER_MONTH: 1000}, currency=currency, unpriced=policy)
    holder = agent_holder("a", limits)
    assert holder is not None
    headers = build_headers([(holder, Meter.MONEY_PER_MONTH, Share(1000, MONTH))], {"USD"})
    assert headers.get("x-routing-budget-uncounted") == uncounted
