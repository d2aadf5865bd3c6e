"""Alerts for operators, one row for each kind and subject."""

from __future__ import annotations

from django.db import models


class Alert(models.Model):
    """An alert, which lasts while `ended_at` is null and ends at `expires_at` unless its condition is detected again.

    `times` counts how often the condition has started. The alert is sent once, at `sent_at`, and its end is reported at
    `end_sent_at`. `next_try_at` is the earliest time for the next attempt to send it, null if there will be none.
    `error` says why the last attempt failed. An acknowledgement lasts until the condition starts again. Nothing is sent
    until `muted_until`.
    """

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=400)
    # Stored message in the format of `capabilities.core.translatable.encode_text`.
    sentence = models.JSONField()
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    times = models.PositiveIntegerField(default=1)
    ended_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    end_sent_at = models.DateTimeField(null=True)
    # Number of attempts to send the alert. Of several processes, only the one that increments this number sends the
    # alert.
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    error = models.JSONField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    muted_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-first_seen_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["kind", "subject"], name="one_alert_per_subject")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
