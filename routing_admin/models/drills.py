"""Fire drills: providers that administrators let fail for a while."""

from __future__ import annotations

from django.db import models


class FireDrill(models.Model):
    """One drill. It is no part of the configuration, so it is never exported.

    `ends_at` becomes earlier if the drill is stopped. `noted_at` is when its end was written to the audit log.
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
