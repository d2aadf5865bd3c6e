"""How much of their limits agents, keys, teams and projects have used, and the number of unpriced calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum
from django.utils import timezone

from capabilities.core.exchange import ExchangeTable
from capabilities.core.prices import amount_text
from capabilities.core.services.agent_limits import MONEY, AgentLimits, Meter, UnpricedPolicy, parse_limits
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import agent_holder_id, label_holder_id
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import Configuration
from routing_admin.limits.uses import find_uses, window_end
from routing_admin.models import UsageSum
from routing_admin.request_log.usage_sums import day_start

PREFIXES = {
    "agent": agent_holder_id(""),
    "team": label_holder_id(LabelKind.TEAM, ""),
    "project": label_holder_id(LabelKind.PROJECT, ""),
}
"""Maps columns of the usage totals to the id prefix of their limit holders. Keys and end users have no totals."""


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The use of one limit: `used` of `limit`, and the time of its reset, None for a limit on concurrent calls.

    Money is in billionths of `currency`, which is empty for other limits. `uncounted` is the number of calls since the
    last reset that a money budget allowed although their cost in `currency` was unknown.
    """

    meter: Meter
    limit: int
    used: int
    resets_at: datetime | None = None
    currency: str = ""
    uncounted: int = 0

    @property
    def percent(self) -> int:
        return min(100, self.used * 100 // self.limit)

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def text(self) -> str:
        if self.currency:
            return f"{amount_text(self.used)} / {amount_text(self.limit)} {self.currency}"
        return f"{self.used:,} / {self.limit:,}"


def find_limit_uses(limits: Mapping[str, AgentLimits | None]) -> Mapping[str, Sequence[LimitUse]]:
    """Return how much each holder has used of each of its limits, in the order of `Meter`.

    Without any limits, no query is made.
    """
    counted = {
        holder: holder_limits
        for holder, holder_limits in limits.items()
        if holder_limits is not None and holder_limits.maximums
    }
    used = find_uses(counted) if counted else {}
    uncounted = count_uncounted(counted, snapshot.current().exchange)
    return {
        holder: [
            LimitUse(
                meter,
                holder_limits.maximums[meter],
                used.get((holder, meter), 0),
                window_end(meter),
                holder_limits.currency if meter in MONEY else "",
                uncounted.get((holder, meter), 0),
            )
            for meter in Meter
            if holder_limits and meter in holder_limits.maximums
        ]
        for holder, holder_limits in limits.items()
    }


def count_uncounted(
    limits: Mapping[str, AgentLimits | None], exchange: ExchangeTable
) -> Mapping[tuple[str, Meter], int]:
    """Return the number of calls in the current window whose cost is missing from a money budget, by holder and limit.

    The budget allowed these calls although they have no price, or no exchange rate into the budget's currency. This
    takes one query for each type of holder with a money budget that allows such calls.
    """
    allowing = {
        holder: holder_limits
        for holder, holder_limits in limits.items()
        if holder_limits is not None and holder_limits.has_money and holder_limits.unpriced is UnpricedPolicy.ALLOW
    }
    found = Counter[tuple[str, Meter]]()
    for column, prefix in PREFIXES.items():
        names = {
            holder.removeprefix(prefix): holder_limits
            for holder, holder_limits in allowing.items()
            if holder.startswith(prefix)
        }
        if names:
            for name, meter, count in _count(column, names, exchange):
                found[f"{prefix}{name}", meter] += count
    return {key: count for key, count in found.items() if count}


def list_uncounted(configuration: Configuration, exchange: ExchangeTable) -> Mapping[tuple[str, Meter], int]:
    """Return the counts of `count_uncounted` for all agents, teams and projects with a budget."""
    limits = {agent_holder_id(agent.id): parse_limits(agent.limits) for agent in configuration.agents}
    for label, label_limits in configuration.limits_by_label.items():
        kind, _, name = label.partition(":")
        if kind != LabelKind.USER:
            limits[label_holder_id(LabelKind(kind), name)] = label_limits
    return count_uncounted(limits, exchange)


def _count(column: str, limits: Mapping[str, AgentLimits], exchange: ExchangeTable) -> Iterator[tuple[str, Meter, int]]:
    day = day_start(timezone.now())
    month = day.replace(day=1)
    starts: Mapping[Meter, datetime] = {Meter.MONEY_PER_DAY: day, Meter.MONEY_PER_MONTH: month}
    rows = UsageSum.objects.filter(span=UsageSum.DAY, start__gte=month, **{f"{column}__in": list(limits)}).order_by()
    sums = rows.values_list(column, "start", "currency").annotate(Sum("unpriced"), Sum("requests"))
    for name, start, currency, unpriced, requests in sums:
        limit = limits[name]
        has_no_rate = bool(currency) and exchange.convert(1, currency, limit.currency) is None
        for meter in MONEY:
            if meter in limit.maximums and start >= starts[meter]:
                yield name, meter, requests if has_no_rate else unpriced
