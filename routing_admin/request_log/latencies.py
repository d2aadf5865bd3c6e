"""Histograms of the times to the first content and to the end of answered requests.

Times are rounded down to two significant digits of milliseconds, so that a percentile is off by at most 5 %. Roll-ups
contain the histograms of ended hours and days, by agent and route; other times are counted from rows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Case, Count, F, Func, IntegerField, QuerySet, Value, When

from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import RequestLog


class Latency(StrEnum):
    """A time that is measured for answered requests; the value is the name of its column."""

    FIRST = "first_content_ms"
    WHOLE = "duration_ms"


Histogram = Counter[int]
"""Maps the lower end of each bucket in milliseconds to the number of requests in the bucket."""
LAST_BUCKET = 100_000_000
"""Lower end of the last bucket, about 28 hours. This bucket contains all longer times."""


class _Truncated(Func):
    template = "CAST(%(expressions)s AS INTEGER)"
    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(compiler, connection, template="TRUNC(%(expressions)s)::integer")


def bucket_expression(latency: Latency) -> Case:
    """Return the SQL expression for the bucket that contains a request's time."""
    scales = [10**power for power in range(len(str(LAST_BUCKET)) - 2)]
    return Case(
        *(
            When(**{f"{latency}__lt": 100 * scale}, then=_Truncated(F(latency) / Value(float(scale))) * Value(scale))
            for scale in scales
        ),
        default=Value(LAST_BUCKET),
        output_field=IntegerField(),
    )


def quantile(histogram: Histogram, share: float) -> float:
    """Return the nearest-rank quantile of a non-empty histogram, as the middle of its bucket."""
    rank, count = max(1, math.ceil(histogram.total() * share)), 0
    for bucket in sorted(histogram):
        count += histogram[bucket]
        if count >= rank:
            break
    width: int = 10 ** max(0, len(str(bucket)) - 2)
    return bucket + width / 2


def select_timed(rows: QuerySet[RequestLog], latency: Latency) -> QuerySet[RequestLog]:
    """Return an unordered query for the answered requests that have a measurement of this time."""
    return rows.filter(ending=RequestEnding.ANSWERED, **{f"{latency}__isnull": False}).order_by()


RollupKey = tuple[str, str]
"""A dimension of the roll-ups and one of its values, such as an agent's id."""
ALL: RollupKey = ("", "")


def count_latencies(start: datetime, stop: datetime) -> dict[RollupKey, dict[str, Histogram]]:
    """Return latency histograms of the requests between two times, for all of them and per agent and per route.

    This takes two queries.
    """
    found: dict[RollupKey, dict[str, Histogram]] = defaultdict(lambda: defaultdict(Counter))
    rows = RequestLog.objects.filter(started_at__gte=start, started_at__lt=stop)
    for latency in Latency:
        timed = select_timed(rows, latency).values_list("agent", "task_type", bucket_expression(latency))
        for agent, task_type, bucket, count in timed.annotate(count=Count("pk")):
            for place in (ALL, ("agent", agent), ("task_type", task_type)):
                found[place][latency.value][bucket] += count
    return found
