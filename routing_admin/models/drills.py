"""Fire drills, in which administrators make providers fail for a while."""

from __future__ import annotations

from django.db import models


class FireDrill(models.Model):
    """A fire drill; it is not part of the configuration, so it is never exported."""

    provider = models.CharField(max_length=120, db_index=True)
    actor = models.CharField(max_length=150)
    started_at = models.DateTimeField()
    # When the drill is planned to end, or when it was stopped early.
    ends_at = models.DateTimeField()
    # When the drill's end was written to the audit log.
    noted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.provider} {self.started_at:%Y-%m-%d %H:%M:%S}"
