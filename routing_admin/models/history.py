"""Revisions, one per configuration change, and audit events, one per action.

Neither table has foreign keys, because the rows outlive the objects that they name.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Revision(models.Model):
    """The whole configuration after one change, with the change's author and details; it contains no key."""

    number = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor_kind = models.CharField(max_length=10)
    actor = models.CharField(max_length=150)
    message = models.CharField(max_length=500, blank=True)
    changes = models.JSONField(default=list)
    snapshot = models.JSONField()
    sha256 = models.CharField(max_length=64)
    restores = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return str(self.number)


class AuditEvent(models.Model):
    """An audited action with its author, IP address and object, written in the action's own transaction.

    Entries form a hash chain (`core/audit.py`). Numbers have no gaps, and neither the program nor an SQL statement can
    change or delete an entry (`platform/databases/append_only.py`).
    """

    number = models.BigIntegerField(unique=True)
    previous = models.CharField(max_length=64)
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    actor_kind = models.CharField(max_length=10)
    actor = models.CharField(max_length=150)
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    action = models.CharField(max_length=60)
    object_kind = models.CharField(max_length=30, blank=True)
    object_name = models.CharField(max_length=300, blank=True)
    details = models.JSONField(default=dict, blank=True)
    revision = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"{self.action} {self.object_name}"
