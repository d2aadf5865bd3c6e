"""Which calls passed a budget of money that could not count them? Summed up per agent, team and project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from django.db.models import Sum
from django.utils import timezone

from capabilities.core.exchange import ExchangeTable
from capabilities.core.services.agent_limits import MONEY, AgentLimits, Meter, UnpricedPolicy, limits_of
from capabilities.core.services.labels import LabelKind
from capabilities.core.services.limit_holders import id_of_agent, id_of_label
from routing_admin.core.configuration.specs import Configuration
from routing_admin.models import UsageSum
from routing_admin.request_log.sum_labels import day_of

PREFIXES = {
    "agent": id_of_agent(""),
    "team": id_of_label(LabelKind.TEAM, ""),
    "project": id_of_label(LabelKind.PROJECT, ""),
}
"""What the ids of holders begin with whose calls have sums; keys and end users have none of their own."""


def count_uncounted(
    limits: Mapping[str, AgentLimits | None], exchange: ExchangeTable
) -> Mapping[tuple[str, Meter], int]:
    """Return how many calls passed uncounted in the window of now, by holder and limit; only those above 0.

    A query for each sort of holder that has a budget of money and lets such calls pass.
    """
    allowing = {
        holder: each
        for holder, each in limits.items()
        if each is not None and each.has_money and each.unpriced is UnpricedPolicy.ALLOW
    }
    found = Counter[tuple[str, Meter]]()
    for column, prefix in PREFIXES.items():
        names = {holder.removeprefix(prefix): each for holder, each in allowing.items() if holder.startswith(prefix)}
        if names:
            for name, meter, count in _count(column, names, exchange):
                found[f"{prefix}{name}", meter] += count
    return {place: count for place, count in found.items() if count}


def list_uncounted(configuration: Configuration, exchange: ExchangeTable) -> Mapping[tuple[str, Meter], int]:
    """Return the same for every agent, team and project with a budget."""
    limits = {id_of_agent(each.id): limits_of(each.limits) for each in configuration.agents}
    for label, each in configuration.limits_by_label.items():
        kind, _, name = label.partition(":")
        if kind != LabelKind.USER:
            limits[id_of_label(LabelKind(kind), name)] = each
    return count_uncounted(limits, exchange)


def _count(column: str, limits: Mapping[str, AgentLimits], exchange: ExchangeTable) -> Iterator[tuple[str, Meter, int]]:
    day = day_of(timezone.now())
    month = day.replace(day=1)
    starts: Mapping[Meter, datetime] = {Meter.MONEY_PER_DAY: day, Meter.MONEY_PER_MONTH: month}
    rows = UsageSum.objects.filter(span=UsageSum.DAY, start__gte=month, **{f"{column}__in": list(limits)}).order_by()
    sums = rows.values_list(column, "start", "currency").annotate(Sum("unpriced"), Sum("requests"))
    for name, start, currency, unpriced, requests in sums:
        limit = limits[name]
        has_no_rate = bool(currency) and exchange.convert(1, currency, limit.currency) is None
        for meter in MONEY:
            if meter in limit.most and start >= starts[meter]:
                yield name, meter, requests if has_no_rate else unpriced
