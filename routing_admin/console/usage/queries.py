"""Queries for the budgets of labels and their use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.services.agent_limits import AgentLimits, limits_of
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import id_of_agent, id_of_label
from capabilities.models import Agent
from routing_admin.models import LabelBudget
from routing_admin.request_log.limit_uses import LimitUse, find_limit_uses


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """A budget. `uses` is empty if each end user has a budget of their own."""

    label: str
    kind: LabelKind
    name: str
    stored: dict[str, Any]
    limits: AgentLimits | None
    uses: Sequence[LimitUse] = ()

    @property
    def percent(self) -> int:
        """The used share, in percent, of the limit that is closest to being used up."""
        return max((use.percent for use in self.uses), default=0)


def list_budgets() -> list[BudgetLine]:
    """List all budgets. Those of teams and projects include their use. Two queries."""
    lines = [_line_of(row) for row in LabelBudget.objects.all()]
    shared_limits = {
        id_of_label(line.kind, line.name): line.limits for line in lines if line.kind is not LabelKind.USER
    }
    uses = find_limit_uses(shared_limits)
    return [replace(line, uses=uses.get(id_of_label(line.kind, line.name), ())) for line in lines]


def _line_of(row: LabelBudget) -> BudgetLine:
    kind, _, name = row.label.partition(":")
    return BudgetLine(label=row.label, kind=LabelKind(kind), name=name, stored=row.limits, limits=limits_of(row.limits))


def find_agent_uses(agents: Collection[str]) -> Mapping[str, Sequence[LimitUse]]:
    """Return what the agents with these ids have used of each of their limits."""
    rows = Agent.objects.filter(agent_id__in=agents) if agents else ()
    names = {id_of_agent(row.agent_id): row.agent_id for row in rows}
    uses = find_limit_uses({id_of_agent(row.agent_id): limits_of(row.limits) for row in rows}) if names else {}
    return {names[holder]: agent_uses for holder, agent_uses in uses.items()}
