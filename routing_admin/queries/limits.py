"""Whose budgets run out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from capabilities.core.services.agent_limits import RATES, Meter, limits_of
from capabilities.core.services.limit_holders import id_of_agent
from routing_admin.core.configuration.specs import AgentSpec
from routing_admin.limits.headers import WARN_PERCENT, percent_of
from routing_admin.limits.uses import end_of_window, find_uses


@dataclass(frozen=True, slots=True)
class LowBudget:
    """A budget of an agent that is used up but for little, or wholly; it begins anew at `resets_at`."""

    agent: str
    meter: Meter
    percent: int
    resets_at: datetime | None


def list_low_budgets(agents: Iterable[AgentSpec]) -> list[LowBudget]:
    """The budgets that their agents are warned of, those that are used most first; queries only where one has any."""
    limited = {each.id: limits.most for each in agents if (limits := limits_of(each.limits)) and limits.most}
    if not limited:
        return []
    used = find_uses(map(id_of_agent, limited))
    low = [
        LowBudget(agent, meter, percent_of(used.get((id_of_agent(agent), meter), 0), most), end_of_window(meter))
        for agent, limits in limited.items()
        for meter, most in limits.items()
        if meter not in RATES
    ]
    return sorted((each for each in low if each.percent >= WARN_PERCENT), key=lambda each: -each.percent)
