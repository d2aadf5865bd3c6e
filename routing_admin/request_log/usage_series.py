"""Usage over time of a few groups and of the previous period, for charts.

It is read only from hourly and daily totals, never from requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Sum, Value

from routing_admin.models import UsageRollup, UsageSum
from routing_admin.request_log.usage import GROUPS, SERIES_COUNTS, SMALLEST, Counts, SummedTimes, moved
from routing_admin.request_log.usage_sums import COUNTS

NO_FILTERS: Mapping[str, str] = {}
Points = Mapping[datetime, Counts]
"""Maps the start of each hour or day to its totals."""


@dataclass(frozen=True, slots=True)
class UsageSeries:
    """The series of single groups, and the total series of the previous period, shifted to this period's times.

    Both have only the columns in `SERIES_COUNTS`.
    """

    groups: Mapping[str, Points]
    before: Points


def sum_series(
    times: SummedTimes,
    since: datetime,
    length: timedelta,
    group_by: str,
    names: Collection[str],
    *,
    until: datetime | None = None,
    **only: str,
) -> UsageSeries:
    """Return the series of the named groups in a report's period, and the total series of the previous period.

    `length` is the length of the period in whole hours or days; `times` must include the previous period. This takes
    two queries.
    """
    filters = {GROUPS[name]: value for name, value in only.items()}
    now, before = times.between(since, until), times.between(moved(since, -length), since)
    groups = read_points(times.span, now, times.folded, GROUPS[group_by], names, filters) if names else {}
    earlier = read_points(times.span, before, times.folded, filters=filters)
    return UsageSeries(groups, {moved(start, length): counts for start, counts in earlier.get("", {}).items()})


def read_points(
    span: str,
    starts: Sequence[datetime],
    folded: Collection[datetime],
    column: str = "",
    names: Collection[str] = (),
    filters: Mapping[str, str] = NO_FILTERS,
    counts: Sequence[str] = SERIES_COUNTS,
) -> dict[str, dict[datetime, Counts]]:
    """Return hourly or daily totals by the values of a column or, without a column, the grand totals under the name "".

    Hours and days in `folded` are read from their roll-ups, which cannot be filtered. This takes one query.
    """
    open_starts = [start for start in starts if start not in folded]
    rows = UsageSum.objects.filter(span=span, start__in=open_starts, **filters).order_by()
    rollups = UsageRollup.objects.filter(span=span, start__in=[start for start in starts if start in folded]).order_by()
    if column:
        rows = rows.filter(**{f"{column}__in": names})
        rollups = rollups.filter(dimension=column, value__in=names)
    else:
        rollups = rollups.filter(dimension=SMALLEST)
    sums = {f"all_{name}": Sum(name) for name in counts}
    parts = (
        rows.annotate(name=F(column) if column else Value("")),
        rollups.annotate(name=F("value") if column else Value("")),
    )
    queries = [part.values_list("start", "name", "currency").annotate(**sums) for part in parts]
    found: dict[str, dict[datetime, Counts]] = defaultdict(lambda: defaultdict(Counts))
    for start, name, currency, *values in queries[0].union(queries[1], all=True):
        # PostgreSQL returns sums of bigint columns as decimals.
        by_name = dict(zip(counts, map(int, values), strict=True))
        found[name][start].add(currency, [by_name.get(count, 0) for count in COUNTS])
    return found
