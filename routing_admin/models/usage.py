"""Usage per hour and per day, and how much of their limits agents, keys and labels have used.

Without the hourly and daily totals, a page would have to read up to a million requests. All tables are in the request
log's database.
"""

from __future__ import annotations

from django.db import models


class UsageCounts(models.Model):
    """Columns that count requests and sum up their tokens and cost."""

    requests = models.PositiveBigIntegerField(default=0)
    failures = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(db_default=0)
    cancelled = models.PositiveBigIntegerField(db_default=0)
    attempts = models.PositiveBigIntegerField(db_default=0)
    fallbacks = models.PositiveBigIntegerField(default=0)
    unpriced = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cost_nanos = models.BigIntegerField(default=0)
    saved_nanos = models.BigIntegerField(default=0)
    fallback_nanos = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class UsageSum(UsageCounts):
    """Usage by one combination of agent, route, provider, model, labels and currency in one hour or day.

    `failures`, `refused` and `cancelled` count the `requests` with that ending (`core.fallback.endings`); the other
    requests were answered. `attempts` is the number of candidates that were called. Before migration 0032 `failures`
    included every unanswered request, and attempts were not counted; the migration corrected the hours and days that
    the log still covered.

    `start` is the start of the hour, or of the day in the installation's time zone. Money is in billionths of the
    currency's unit. `unpriced` is the number of requests without a known price. `fallback_nanos`, a part of
    `cost_nanos`, is the cost of failed calls; it is in the rows of the provider that was called.
    """

    HOUR, DAY = "h", "d"

    span = models.CharField(max_length=1)
    start = models.DateTimeField()
    agent = models.CharField(max_length=120, blank=True)
    task_type = models.CharField(max_length=200, blank=True)
    provider = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=200, blank=True)
    team = models.CharField(max_length=64, blank=True)
    project = models.CharField(max_length=64, blank=True)
    end_user = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=3, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("span", "start", "agent", "task_type", "provider", "model"),
                    *("team", "project", "end_user", "currency"),
                ],
                name="usage_sum_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H} {self.agent} {self.provider}/{self.model}"


class UsageRollup(UsageCounts):
    """Totals for one hour or day, grouped by one column of `UsageSum` and by currency (`request_log.usage_rollups`).

    The row with an empty dimension covers the whole hour or day. Its `value` is a random token while the other rows are
    being written, and empty once all of them exist. A migration that changes `UsageSum` deletes this table's rows,
    which are then rebuilt.

    `latencies` are histograms of answered requests (`request_log.latencies`): the row with the empty dimension covers
    all requests, and each agent and route has its own row.
    """

    span = models.CharField(max_length=1)
    start = models.DateTimeField()
    dimension = models.CharField(max_length=16, blank=True)
    value = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    latencies = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["span", "start", "dimension", "value", "currency"], name="usage_rollup_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H} {self.dimension} {self.value}"


class LimitWindow(models.Model):
    """How much of a limit all processes together have drawn in a minute, day or month, or are holding now."""

    # Id of the agent, key or label, in the format of `capabilities.core.services.limit_holders`.
    holder = models.CharField(max_length=350)
    meter = models.CharField(max_length=30)
    window = models.CharField(max_length=20)
    drawn = models.BigIntegerField(default=0)
    ends_at = models.DateTimeField(null=True, db_index=True)
    # When an amount was last refused to a process because the limit had too little left.
    wanted_at = models.DateTimeField(null=True)
    wanted_by = models.CharField(max_length=32, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["holder", "meter", "window"], name="one_row_per_limit_window")]

    def __str__(self) -> str:
        return f"{self.holder} {self.meter} {self.window}: {self.drawn}"


class LimitShare(models.Model):
    """A process's share of a window: `granted` until `held_until`, of which calls used or reserved `committed`."""

    limit_window = models.ForeignKey(LimitWindow, models.CASCADE, related_name="shares")
    process = models.CharField(max_length=32)
    granted = models.BigIntegerField()
    committed = models.BigIntegerField()
    held_until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["limit_window", "process"], name="one_share_per_process")]

    def __str__(self) -> str:
        return f"{self.process}: {self.committed} of {self.granted}"
