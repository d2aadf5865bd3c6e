"""Parameters that models have refused; stored in the request log's database."""

from __future__ import annotations

from django.db import models


class LearnedRefusal(models.Model):
    """A parameter that a model refuses; it is sent as `sent_as` instead, or omitted if `sent_as` is empty.

    The refusal is inferred from responses, so it is not part of the configuration and is never exported.
    """

    provider = models.CharField(max_length=120)
    model = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    sent_as = models.CharField(max_length=200, blank=True)
    # Digest of the provider's protocol and endpoint, because another endpoint may accept the parameter.
    address = models.CharField(max_length=64)
    learned_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model", "name"], name="one_refusal_per_parameter")]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} {self.name}"
