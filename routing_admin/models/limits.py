"""How much of their limits agents, keys and labels have used; stored in the database of the request log."""

from __future__ import annotations

from django.db import models


class LimitWindow(models.Model):
    """What all processes drew from one limit of a holder in one minute, day or month, or hold at present."""

    # An id of `capabilities.core.services.limit_holders`.
    holder = models.CharField(max_length=350)
    meter = models.CharField(max_length=30)
    window = models.CharField(max_length=20)
    drawn = models.BigIntegerField(default=0)
    ends_at = models.DateTimeField(null=True, db_index=True)
    # When a process was last refused.
    wanted_at = models.DateTimeField(null=True)
    wanted_by = models.CharField(max_length=32, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["holder", "meter", "window"], name="one_row_per_limit_window")]

    def __str__(self) -> str:
        return f"{self.holder} {self.meter} {self.window}: {self.drawn}"


class LimitShare(models.Model):
    """What one process holds from a window, and what its calls used or reserved; it expires at `held_until`."""

    limit_window = models.ForeignKey(LimitWindow, models.CASCADE, related_name="shares")
    process = models.CharField(max_length=32)
    granted = models.BigIntegerField()
    committed = models.BigIntegerField()
    held_until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["limit_window", "process"], name="one_share_per_process")]

    def __str__(self) -> str:
        return f"{self.process}: {self.committed} of {self.granted}"
