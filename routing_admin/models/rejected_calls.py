"""Calls rejected before authentication, shown to a user who waits for a new key's first call; in the log's database."""

from __future__ import annotations

from django.db import models


class RejectedCall(models.Model):
    """A rejected call: when, why, at which path, and with what kind of key.

    It contains neither a secret nor a query, and only the newest few are kept, for minutes.
    """

    at = models.DateTimeField(db_index=True)
    code = models.CharField(max_length=40)
    path = models.CharField(max_length=200)
    # The public part of the key, empty without a key.
    key = models.CharField(max_length=8, blank=True)
    # What the key looked like.
    shape = models.CharField(max_length=10)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.code} {self.path}"
