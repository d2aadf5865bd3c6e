"""The usage page and its CSV export, which show the same totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from capabilities.core.exchange import ExchangeTable
from capabilities.core.prices import NO_CURRENCY, exact_amount, money_text, money_texts
from routing_admin.configuration import snapshot
from routing_admin.console.base.lists import Column, arrange, natural_key, page_size
from routing_admin.console.base.spreadsheets import csv_response
from routing_admin.console.base.tags.charting import Chart, table_rows
from routing_admin.console.usage.charts import (
    COST,
    FAILURES,
    METRICS,
    REQUESTS,
    TOKENS,
    ChartLinks,
    Measure,
    build_measure,
    choose_currency,
    draw_usage,
    find_change,
    list_currencies,
)
from routing_admin.console.usage.periods import PERIODS, Period, read_period
from routing_admin.console.usage.queries import list_marks, read_usage
from routing_admin.request_log.journal import journal
from routing_admin.request_log.search_words import Search, moment_text
from routing_admin.request_log.usage import GROUPS, PLAIN_COUNTS, Counts, UsageReport, sum_usage
from routing_admin.request_log.usage import LABELS as USAGE_LABELS
from routing_admin.request_log.usage_series import UsageSeries
from routing_admin.request_log.usage_sums import MAX_USERS, OTHERS

GROUP_LABELS: Mapping[str, str | Promise] = {
    "agent": gettext_lazy("Agent"),
    "route": gettext_lazy("Task route"),
    "provider": gettext_lazy("Provider"),
    "model": gettext_lazy("Model"),
    "team": gettext_lazy("Team"),
    "project": gettext_lazy("Project"),
    "user": gettext_lazy("End user"),
    "day": gettext_lazy("Day"),
}
LABELS: Mapping[str, str | Promise] = {name: GROUP_LABELS[name] for name in USAGE_LABELS}
"""Names of the request labels (team, project, end user) that the page can be filtered by."""
MAX_LABEL = 200
COMPARED = (COST, REQUESTS, TOKENS)
"""Metrics whose tiles show the change since the previous period."""
DEFAULT_GROUP = "agent"


COLUMNS: Mapping[str, Column[tuple[Any, Counts]]] = {
    "name": Column(lambda pair: natural_key(str(pair[0]))),
    "requests": Column(lambda pair: pair[1].requests, falling=True),
    "failures": Column(lambda pair: pair[1].failures, falling=True),
    "input": Column(lambda pair: pair[1].prompt_tokens, falling=True),
    "output": Column(lambda pair: pair[1].completion_tokens, falling=True),
}


class UsageRow(TypedDict):
    """A group as a row of the table.

    `costs` contains the total or, if there is none, the amount in each currency. `parts` lists the amounts in the
    total, and the number of requests with unknown cost that it omits. `share` is the group's value in percent of the
    largest group's. `address` is the URL of the page filtered by this group; it is empty if this filter does not exist.
    `searches` contains the log searches that find the group's requests, by outcome.
    """

    # A dictionary is the fastest type for templates, and there may be a thousand rows.
    name: str
    requests: str
    failures: str
    searches: Mapping[str, str]
    input_tokens: str
    output_tokens: str
    costs: Sequence[str]
    parts: str
    share: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRead:
    """What a request for the page selects and reads: period, filters and data.

    `names` are the groups that have a colour of their own.
    """

    period: Period
    group: str
    filters: Mapping[str, str]
    exchange: ExchangeTable
    currency: str
    measure: Measure
    report: UsageReport
    series: UsageSeries
    names: Sequence[str]

    @property
    def choices(self) -> dict[str, str]:
        currency = {"currency": self.currency} if self.currency else {}
        return {**self.period.params, "metric": self.measure.metric, **currency}


def _read(request: HttpRequest) -> UsageRead:
    period, group, filters = _choices(request)
    exchange = snapshot.current().exchange
    metric, currency = request.GET.get("metric", ""), request.GET.get("currency", "")[:3]

    def measure_in(report: UsageReport) -> Measure:
        chosen = choose_currency(currency, report.total, exchange)
        # If no request has a price, the number of requests says more than a cost of zero.
        default = COST if chosen else REQUESTS
        return build_measure(metric if metric in METRICS else default, chosen, exchange)

    journal().flush()
    report, series, names = read_usage(period, group, exchange, measure_in, **filters)
    return UsageRead(
        period=period,
        group=group,
        filters=filters,
        exchange=exchange,
        currency=choose_currency(currency, report.total, exchange),
        measure=measure_in(report),
        report=report,
        series=series,
        names=names,
    )


@require_GET
def usage(request: HttpRequest) -> HttpResponse:
    read = _read(request)
    report, measure, group, filters, exchange = read.report, read.measure, read.group, read.filters, read.exchange
    total, metric, currency, choices = report.total, measure.metric, read.currency, read.choices
    query = urlencode({**choices, "by": group, **filters})
    # Days are listed newest first, other groups by the metric of the chart, largest first.
    groups = report.groups if group == "day" else sorted(report.groups, key=lambda pair: -measure.weigh(pair[1]))
    listing = arrange(
        groups,
        request.GET,
        texts=lambda pair: (_name(pair[0], group),),
        columns=COLUMNS,
        per_page=page_size(request),
    )
    context = {
        "total": total,
        "since": report.since,
        "last_day": timezone.localtime(report.until - timedelta(microseconds=1)).date(),
        "searches": _searches(report.since, read.period.until, filters, ENDING_SEARCHES),
        "rates": [rate for rate in exchange.rates if rate.currency in total.costs],
        "has_no_rate": bool(exchange.rates) and not total_text(total.costs, exchange) and bool(currency),
        "costs": _amounts(total.costs, exchange),
        "tokens": total.prompt_tokens + total.completion_tokens,
        "savings": _amounts(total.savings, exchange),
        "fallback_costs": _amounts(total.fallback_costs, exchange),
        "changes": {
            name: find_change(report, read.series, build_measure(name, currency, exchange)) for name in COMPARED
        },
        "listing": listing,
        "rows": list_rows(read, list(listing.page)),
        "only": [(name, LABELS[name], value) for name, value in filters.items()],
        "query": query,
        "most_users": MAX_USERS if group == "user" else 0,
        "is_label": group in LABELS,
        "chart": _chart(read) if total.requests else None,
        "currency": currency,
        "currencies": list_currencies(total, exchange) if metric == COST else {},
        "metric": metric,
        "metrics": METRICS,
        "period": read.period,
        "group": group,
        "periods": [(word, label) for word, (_length, _step, label) in PERIODS.items()],
        "groups": list(GROUP_LABELS.items()),
        "group_label": GROUP_LABELS[group],
        "chart_label": _chart_label(metric, group),
    }
    return render(request, "usage/usage.html", context)


def _chart_label(metric: str, group: str) -> str:
    if group == "day":
        return _("%(metric)s over time") % {"metric": METRICS[metric]}
    return _("%(metric)s over time by %(group)s") % {
        "metric": METRICS[metric],
        "group": str(GROUP_LABELS[group]).lower(),
    }


def _chart(read: UsageRead) -> Chart:
    log, kind = reverse("requests"), "failed" if read.measure.metric == FAILURES else "all"

    def between(since: datetime, until: datetime | None) -> str:
        return f"{log}?{urlencode({'q': _searches(since, until, read.filters)[kind]}, safe=':')}"

    def of_group(name: str) -> str:
        searches = _row_searches(name, read)
        return f"{log}?{urlencode({'q': searches[kind]})}" if searches else ""

    return draw_usage(
        read.report,
        read.series,
        read.names,
        read.measure,
        ChartLinks(between=between, group=of_group, name=lambda name: _name(name, read.group)),
        step=read.period.step,
        label=_chart_label(read.measure.metric, read.group),
        marks=list_marks(read.report.since, read.period.until),
    )


@require_GET
def usage_csv(request: HttpRequest) -> HttpResponse:
    """Send the table as CSV or, with the parameter `chart`, the chart's values."""
    if "chart" in request.GET:
        read = _read(request)
        return csv_response(f"usage-{read.measure.metric}-{read.period.name}.csv", table_rows(_chart(read)))
    period, group, filters = _choices(request)
    return csv_response(f"usage-by-{group}-{period.name}.csv", _table(period, group, filters))


def _table(period: Period, group: str, filters: Mapping[str, str]) -> Iterator[list[object]]:
    """Yield a header and then one line per group and currency, with exact amounts and with days as dates."""
    money = ("currency", "cost", "saved_by_cache", "paid_for_failed_attempts", "total_currency", "total_cost")
    yield [group, *PLAIN_COUNTS, *money]
    exchange = snapshot.current().exchange
    for name, counts in _sum_usage(period, group, exchange, filters).groups:
        total = exchange.total(counts.costs)
        count_cells = [getattr(counts, field) for field in PLAIN_COUNTS]
        for index, currency in enumerate(counts.costs or {"": 0}):
            amounts = [
                exact_amount(sums.get(currency, 0)) for sums in (counts.costs, counts.savings, counts.fallback_costs)
            ]
            # Counts are only in the first line of a group, so that the sum of the column is correct.
            cells = count_cells if index == 0 else [""] * len(count_cells)
            # Like the counts, the total in one currency is only in the first line.
            total_cells = ("", "") if total is None or index else (exchange.into, exact_amount(total))
            amount_cells = amounts if currency else ("", "", "")
            yield [_name(name, group), *cells, currency, *amount_cells, *total_cells]


def _choices(request: HttpRequest) -> tuple[Period, str, dict[str, str]]:
    group = request.GET.get("by", "")
    filters = {name: request.GET[name][:MAX_LABEL] for name in LABELS if request.GET.get(name)}
    return read_period(request.GET.dict()), (group if group in GROUPS else DEFAULT_GROUP), filters


def total_text(sums: Mapping[str, int], exchange: ExchangeTable) -> str:
    """Return the total of amounts in several currencies.

    Return an empty string if a rate is missing or no amount needs conversion.
    """
    total = exchange.total(sums)
    needs_no_rate = {NO_CURRENCY, exchange.into}.issuperset(sums)
    return "" if total is None or needs_no_rate else money_text(total, exchange.into)


class Amounts(TypedDict):
    """The amounts on a tile: one for each currency, and their total, or an empty string if there is none."""

    total: str
    amounts: Sequence[str]


def _amounts(sums: Mapping[str, int], exchange: ExchangeTable) -> Amounts:
    return Amounts(total=total_text(sums, exchange), amounts=money_texts(sums))


def _sum_usage(period: Period, group: str, exchange: ExchangeTable, filters: Mapping[str, str]) -> UsageReport:
    journal().flush()
    return sum_usage(period.since, group, exchange, until=period.until, **filters)


def list_rows(read: UsageRead, groups: Sequence[tuple[Any, Counts]]) -> list[UsageRow]:
    weigh = read.measure.weigh
    top = max((weigh(counts) for _, counts in read.report.groups), default=0)
    rows = []
    for name, counts in groups:
        amounts, total = money_texts(counts.costs), total_text(counts.costs, read.exchange)
        row = UsageRow(
            name=_name(name, read.group),
            requests=f"{counts.requests:,}",
            failures=f"{counts.failures:,}",
            searches=_row_searches(name, read),
            input_tokens=f"{counts.prompt_tokens:,}",
            output_tokens=f"{counts.completion_tokens:,}",
            costs=[total] if total else amounts,
            parts=_explain(amounts if total else [], counts.unpriced if amounts else 0),
            share=f"{100 * weigh(counts) / top if top else 0:.2f}%",
            address=_address(str(name), read),
        )
        rows.append(row)
    return rows


def _explain(amounts: Sequence[str], unpriced: int) -> str:
    """Return a tooltip that lists the amounts in a total, and says how many requests without a price it omits."""
    parts = [" + ".join(amounts)] if amounts else []
    if unpriced:
        parts.append(_("and %(count)s unknown") % {"count": f"{unpriced:,}"})
    return _(", ").join(parts)


def _address(name: str, read: UsageRead) -> str:
    if not name or read.group not in LABELS:
        return ""
    return f"?{urlencode({**read.choices, **read.filters, 'by': 'model', read.group: name})}"


SEARCH_KEYS = {"agent": "agent", "route": "task", **{name: name for name in USAGE_LABELS}}
"""Maps each way of grouping to the search key that selects a group in the request log.

Providers and models are missing, because a search for one would find every request that reached it.
"""


def _row_searches(name: Any, read: UsageRead) -> Mapping[str, str]:
    since, until = read.report.since, read.period.until
    if read.group == "day":
        next_day = name + timedelta(days=1)
        stop = next_day if next_day <= timezone.localtime() else None
        return _searches(max(name, since), stop, read.filters)
    # The group without a name, and the combination of all other groups, have no search.
    if read.group not in SEARCH_KEYS or name in ("", OTHERS):
        return {}
    return _searches(since, until, {**read.filters, SEARCH_KEYS[read.group]: name})


ENDING_SEARCHES = ("failed", "refused", "cancelled", "fallback")


def _searches(
    since: datetime, until: datetime | None, filters: Mapping[str, str], endings: Sequence[str] = ("failed",)
) -> Mapping[str, str]:
    times = {"since": moment_text(since), **({"until": moment_text(until)} if until else {})}
    search = Search(tuple({**filters, **times}.items()))
    return {"all": search.to_text(), **{word: search.having("status", word).to_text() for word in endings}}


def _name(name: Any, group: str) -> str:
    if group == "day":
        return f"{name:%Y-%m-%d}"
    return str(_("others")) if name == OTHERS else str(name) or str(_("(none)"))
