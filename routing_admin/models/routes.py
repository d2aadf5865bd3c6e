"""Task routes with their chains of candidates, and aliases for models."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from capabilities.models import Provider


class TaskRoute(models.Model):
    task_type = models.CharField(_("task type"), max_length=200, unique=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    temperature = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    on_error = models.JSONField(default=dict, blank=True)
    retries = models.PositiveIntegerField(null=True, blank=True)
    deadline = models.FloatField(null=True, blank=True)
    first_content = models.FloatField(null=True, blank=True)
    content = models.JSONField(default=dict, blank=True)
    on_drop = models.CharField(max_length=20, blank=True, default="")
    on_overflow = models.CharField(max_length=20, blank=True, default="")
    directive = models.CharField(max_length=20, blank=True, default="")
    allow_n = models.BooleanField(default=False)
    keep_alive_seconds = models.FloatField(null=True, blank=True)
    extra = models.JSONField(default=dict, blank=True)
    position = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.CheckConstraint(condition=~Q(task_type=""), name="route_has_a_task_type")]

    def __str__(self) -> str:
        return self.task_type


class Candidate(models.Model):
    """A model in a route's chain; position 1 is the primary candidate, and a database trigger forbids gaps."""

    route = models.ForeignKey(TaskRoute, models.CASCADE, related_name="candidates")
    position = models.PositiveIntegerField()
    provider = models.ForeignKey(Provider, models.PROTECT, related_name="candidates")
    model = models.CharField(max_length=200, blank=True)
    temperature = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    extra_body = models.JSONField(default=dict, blank=True)
    extra = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["route", "position"]
        constraints = [
            models.UniqueConstraint(fields=["route", "position"], name="one_candidate_per_position"),
            models.CheckConstraint(condition=Q(position__gte=1), name="positions_start_at_one"),
            models.CheckConstraint(
                condition=Q(temperature__isnull=True) | Q(temperature__gte=0, temperature__lte=2),
                name="candidate_temperature_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider.name}/{self.model or self.provider.default_model}"


class Alias(models.Model):
    """Another name for a route or service, so that a program can keep its model name; `*` matches every name."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    target = models.CharField(_("target"), max_length=300)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
