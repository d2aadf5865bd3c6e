"""Calls that reached no agent's log, for whoever waits for a new key's first one; in the request log's database."""

from __future__ import annotations

from django.db import models


class RejectedCall(models.Model):
    """A call that was refused before it counted as an agent's: when, why, at which address, and with what for a key.

    `key` is the public part that it named, empty where it named none; `shape` says what the key looked like. Neither
    a secret nor a query is in it, and the newest few are kept for minutes.
    """

    at = models.DateTimeField(db_index=True)
    code = models.CharField(max_length=40)
    path = models.CharField(max_length=200)
    key = models.CharField(max_length=8, blank=True)
    shape = models.CharField(max_length=10)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.code} {self.path}"
