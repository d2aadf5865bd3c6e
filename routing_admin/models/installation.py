"""Installation-wide settings, languages, and label budgets."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from capabilities.models import StoredKey


class Installation(models.Model):
    """The single row of installation-wide settings; processes notice changes to it by `version`."""

    default_language = models.CharField(_("default language"), max_length=35, blank=True)
    content_policy = models.CharField(_("content policy"), max_length=40, blank=True, default="")
    content_text = models.CharField(_("text of a file"), max_length=20, blank=True, default="")
    content_html = models.CharField(_("web pages"), max_length=20, blank=True, default="")
    catalogue = models.CharField(_("edition of the catalogue"), max_length=300, blank=True, default="")
    exchange_rates = models.JSONField(_("exchange rates"), default=list, blank=True)
    routing_extra = models.JSONField(default=dict, blank=True)
    services_extra = models.JSONField(default=dict, blank=True)
    request_days = models.PositiveIntegerField(_("days requests are kept"), default=30)
    artifact_days = models.PositiveIntegerField(_("days artifacts are kept"), null=True, blank=True)
    quota_bytes = models.PositiveBigIntegerField(_("space for artifacts"), null=True, blank=True)
    agent_quota_bytes = models.PositiveBigIntegerField(_("space for one agent's artifacts"), null=True, blank=True)
    record_bodies = models.BooleanField(_("record request bodies"), default=False)
    alert_webhook = models.ForeignKey(StoredKey, models.PROTECT, null=True, blank=True, related_name="+")
    has_demo = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_installation")]

    def __str__(self) -> str:
        return "installation"

    @classmethod
    def current(cls) -> Installation:
        """Return the stored row, or an unsaved one with default values."""
        return cls.objects.filter(id=1).first() or cls(id=1)


class LabelBudget(models.Model):
    """Limits that all calls with one label share.

    `label` has the format of `LabelBudgetSpec.id`, `limits` the same format as an agent's limits.
    """

    label = models.CharField(max_length=130, unique=True)
    limits = models.JSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["label"]

    def __str__(self) -> str:
        return self.label


class Language(models.Model):
    """A language, and the directive that asks a model to answer in it; `en` and `zh` are built in."""

    code = models.CharField(_("language code"), max_length=35, unique=True)
    directive = models.CharField(_("directive"), max_length=500)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.code
