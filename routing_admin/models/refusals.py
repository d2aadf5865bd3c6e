"""Parameters that models refused, kept with the model services; in the database of the request log."""

from __future__ import annotations

from django.db import models


class LearnedRefusal(models.Model):
    """A parameter that a model does not take: sent as `sent_as` since, left out where that is empty.

    Learned from answers, so no part of the configuration and never exported. `address` is a digest of the protocol and
    endpoint it was learned at: another one may take it.
    """

    provider = models.CharField(max_length=120)
    model = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    sent_as = models.CharField(max_length=200, blank=True)
    address = models.CharField(max_length=64)
    learned_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model", "name"], name="one_refusal_per_parameter")]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} {self.name}"
