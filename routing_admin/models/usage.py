"""What was used, summed up as it is logged: per hour and per day, so that no page has to read a million requests."""

from __future__ import annotations

from django.db import models


class UsageCounts(models.Model):
    """What is counted of requests."""

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
    """The requests of one agent, route, provider, model and set of labels in one hour or day, in one currency.

    Of `requests`, `failures`, `refused` and `cancelled` are those that ended so (`core.fallback.endings`); the rest was
    answered. `attempts` are the candidates they reached. Before migration 0032 `failures` were all that was not
    answered, and attempts were not counted; it corrects what the log still has.

    `start` is when the hour or, in the installation's time zone, the day began. Money is in thousand-millionths of the
    currency's unit; `unpriced` are requests whose tokens nobody has a price for, `fallback_nanos` the part of
    `cost_nanos` that was paid for calls which gave no answer, as sums of whoever was called.
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
    """The sums of one hour or day by one column of `UsageSum` and currency (`request_log.usage_rollups`).

    A row whose dimension is empty marks the hour or day as folded; its value is empty once all others are there. A
    migration that changes sums of `UsageSum` removes the rows of this table, which are then made again.
    """

    span = models.CharField(max_length=1)
    start = models.DateTimeField()
    dimension = models.CharField(max_length=16, blank=True)
    value = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=3, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["span", "start", "dimension", "value", "currency"], name="usage_rollup_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H} {self.dimension} {self.value}"
