"""Queries for budgets and how much of them is used, and for events during the period of a usage report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from capabilities.core.exchange import ExchangeTable
from capabilities.core.services.agent_limits import AgentLimits, parse_limits
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import agent_holder_id, label_holder_id
from capabilities.models import Agent
from routing_admin.console.base.tags.charting import Mark
from routing_admin.console.usage.charts import Measure, list_largest
from routing_admin.console.usage.periods import Period
from routing_admin.models import FireDrill, LabelBudget, Revision
from routing_admin.platform.databases.router import LOGS, one_moment
from routing_admin.request_log.limit_uses import LimitUse, find_limit_uses
from routing_admin.request_log.usage import SERIES_COUNTS, UsageReport, list_times, sum_usage
from routing_admin.request_log.usage_series import UsageSeries, sum_series

MeasureIn = Callable[[UsageReport], Measure]
REPORTED_COUNTS = (*SERIES_COUNTS, "unpriced")
"""Columns that the usage page reads for each group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """A budget. `uses` is empty if the budget applies to each end user separately."""

    label: str
    kind: LabelKind
    name: str
    stored: dict[str, Any]
    limits: AgentLimits | None
    uses: Sequence[LimitUse] = ()

    @property
    def percent(self) -> int:
        """The usage in percent of the limit that is closest to being used up."""
        return max((use.percent for use in self.uses), default=0)


def list_budgets() -> list[BudgetLine]:
    """Return all budgets, and how much of each team's and project's budget is used. This takes two queries."""
    lines = [_build_line(row) for row in LabelBudget.objects.all()]
    shared_limits = {
        label_holder_id(line.kind, line.name): line.limits for line in lines if line.kind is not LabelKind.USER
    }
    uses = find_limit_uses(shared_limits)
    return [replace(line, uses=uses.get(label_holder_id(line.kind, line.name), ())) for line in lines]


def _build_line(row: LabelBudget) -> BudgetLine:
    kind, _, name = row.label.partition(":")
    return BudgetLine(
        label=row.label, kind=LabelKind(kind), name=name, stored=row.limits, limits=parse_limits(row.limits)
    )


def find_agent_uses(agents: Collection[str]) -> Mapping[str, Sequence[LimitUse]]:
    """Return the usage of each limit of the agents with these ids, by agent id."""
    rows = Agent.objects.filter(agent_id__in=agents) if agents else ()
    names = {agent_holder_id(row.agent_id): row.agent_id for row in rows}
    uses = find_limit_uses({agent_holder_id(row.agent_id): parse_limits(row.limits) for row in rows}) if names else {}
    return {names[holder]: agent_uses for holder, agent_uses in uses.items()}


def read_usage(
    period: Period, group: str, exchange: ExchangeTable, measure_in: MeasureIn, **only: str
) -> tuple[UsageReport, UsageSeries, Sequence[str]]:
    """Return a usage report, its time series, and the names of groups that have a time series of their own.

    All five queries read the same database snapshot. `measure_in` returns the metric by which the groups are ranked.
    """
    with one_moment(LOGS):
        times = list_times(period.since, before=period.length, is_filtered=bool(only))
        report = sum_usage(period.since, group, exchange, times, until=period.until, counted=REPORTED_COUNTS, **only)
        names = [] if group == "day" else list_largest(report.groups, measure_in(report))
        series = sum_series(times, report.since, period.length, group, names, until=period.until, **only)
        return report, series, names


MAX_MARKS = 200
"""Maximum number of revisions, and of fire drills, that are marked in a chart."""


def list_marks(since: datetime, until: datetime | None) -> list[tuple[datetime, Mark]]:
    """Return the revisions and fire drills between two times, oldest first. This takes two queries."""
    revisions, drills = Revision.objects.filter(created_at__gte=since), FireDrill.objects.filter(started_at__gte=since)
    if until is not None:
        revisions, drills = revisions.filter(created_at__lt=until), drills.filter(started_at__lt=until)
    marks = [
        (moment, Mark(text=_revision_text(number, message), url=reverse("revision", args=[number])))
        for moment, number, message in revisions.values_list("created_at", "number", "message")[:MAX_MARKS]
    ]
    marks += [
        (moment, Mark(text=_("Fire drill of %(name)s") % {"name": provider}, url=reverse("provider", args=[provider])))
        for moment, provider in drills.values_list("started_at", "provider")[:MAX_MARKS]
    ]
    return sorted(marks, key=lambda pair: pair[0])


def _revision_text(number: int, message: str) -> str:
    text = _("Revision %(number)s") % {"number": number}
    return f"{text}: {message}" if message else text
