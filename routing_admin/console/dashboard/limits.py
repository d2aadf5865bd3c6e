"""Whose budgets run out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from capabilities.core.services.agent_limits import RATES, Meter, limits_of
from capabilities.core.services.labels import LabelKind
from capabilities.core.services.limit_holders import id_of_agent, id_of_label
from routing_admin.core.configuration.specs import Configuration
from routing_admin.limits.headers import WARN_PERCENT, percent_of
from routing_admin.limits.uses import end_of_window, find_uses


@dataclass(frozen=True, slots=True)
class LowBudget:
    """A budget of an agent or a label that is used up but for little, or wholly; it begins anew at `resets_at`.

    `agent` is empty for a label's, whose name is in `label`.
    """

    agent: str
    label: str
    meter: Meter
    percent: int
    resets_at: datetime | None


def list_low_budgets(configuration: Configuration) -> list[LowBudget]:
    """The budgets that callers are warned of, those that are used most first; queries only where there are any."""
    limited = {(each.id, ""): (id_of_agent(each.id), limits_of(each.limits)) for each in configuration.agents}
    for label, limits in configuration.limits_by_label.items():
        kind, _, name = label.partition(":")
        if kind != LabelKind.USER:
            limited["", name] = id_of_label(LabelKind(kind), name), limits
    counted = {whose: (holder, each.most) for whose, (holder, each) in limited.items() if each and each.most}
    if not counted:
        return []
    used = find_uses(holder for holder, _ in counted.values())
    low = [
        LowBudget(*whose, meter, percent_of(used.get((holder, meter), 0), most), end_of_window(meter))
        for whose, (holder, amounts) in counted.items()
        for meter, most in amounts.items()
        if meter not in RATES
    ]
    return sorted((each for each in low if each.percent >= WARN_PERCENT), key=lambda each: -each.percent)
