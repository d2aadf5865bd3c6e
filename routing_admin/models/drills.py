"""Fire drills: providers that administrators let fail for a while."""

from __future__ import annotations

from django.db import models


class FireDrill(models.Model):
    """One drill: of which provider, by whom, from when until when. No part of the configuration, so never exported.

    `ends_at` comes earlier for one that somebody ended. `noted_at` is when the audit log had its end.
    """

    provider = models.CharField(max_length=120, db_index=True)
    actor = models.CharField(max_length=150)
    started_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    noted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.provider} {self.started_at:%Y-%m-%d %H:%M:%S}"
