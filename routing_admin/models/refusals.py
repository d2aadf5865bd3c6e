"""Parameters that models refused; stored in the request log's database."""

from __future__ import annotations

from django.db import models


class LearnedRefusal(models.Model):
    """A parameter that a model refuses: sent as `sent_as`, or omitted if that is empty.

    It is inferred from responses, so it is not part of the configuration and never exported.
    """

    provider = models.CharField(max_length=120)
    model = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    sent_as = models.CharField(max_length=200, blank=True)
    # A digest of the provider's protocol and endpoint, because another endpoint may accept the parameter.
    address = models.CharField(max_length=64)
    learned_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model", "name"], name="one_refusal_per_parameter")]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} {self.name}"
