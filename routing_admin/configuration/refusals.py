"""Store which parameters each model has refused, together with a digest of its provider's protocol and endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from django.db import transaction
from django.utils import timezone

from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.memory import ModelKey, Refused
from routing_admin.models import LearnedRefusal
from routing_admin.platform.databases.router import LOGS

MAX_CHARACTERS = 200
"""Maximum length of stored model and parameter names; refusals with longer names are only kept in memory."""


def model_addresses(configuration: Configuration) -> dict[ModelKey, str]:
    """Map each model, as (provider, model), to a digest of its provider's protocol and endpoint."""
    digests = {
        provider.name: hashlib.sha256(f"{provider.protocol} {provider.endpoint}".encode()).hexdigest()
        for provider in configuration.providers
    }
    defaults = {provider.name: provider.default_model for provider in configuration.providers}
    return {key: digests[key[0]] for key in _list_models(configuration, defaults) if key[0] in digests}


def _list_models(configuration: Configuration, defaults: Mapping[str, str]) -> Iterator[ModelKey]:
    yield from defaults.items()
    for service in configuration.services:
        yield service.provider, service.model
    for route in configuration.routes:
        for candidate in route.candidates:
            yield candidate.provider, candidate.model or defaults.get(candidate.provider, "")


def read_refusals(addresses: Mapping[ModelKey, str]) -> dict[ModelKey, Refused]:
    """Return the stored refusals by model, and delete outdated rows.

    A row is outdated if its model no longer exists or its provider's protocol or endpoint has changed.
    """
    known: dict[ModelKey, dict[str, str | None]] = {}
    outdated = []
    for row in LearnedRefusal.objects.order_by("pk"):
        key = (row.provider, row.model)
        if addresses.get(key) == row.address:
            known.setdefault(key, {})[row.name] = row.sent_as or None
        else:
            outdated.append(row.pk)
    if outdated:
        LearnedRefusal.objects.filter(pk__in=outdated).delete()
    return dict(known)


def write_refusals(key: ModelKey, address: str, before: Refused, now: Refused) -> None:
    """Write the refusals that this process added or cleared since its last read; other processes' rows are kept."""
    provider, model = key
    rows = [
        LearnedRefusal(
            provider=provider,
            model=model,
            name=name,
            sent_as=sent_as or "",
            address=address,
            learned_at=timezone.now(),
        )
        for name, sent_as in now.items()
        if (name, sent_as) not in before.items() and max(len(model), len(name)) <= MAX_CHARACTERS
    ]
    forgotten = before.keys() - now.keys()
    with transaction.atomic(using=LOGS):
        if forgotten:
            LearnedRefusal.objects.filter(provider=provider, model=model, name__in=forgotten).delete()
        if rows:
            LearnedRefusal.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["provider", "model", "name"],
                update_fields=["sent_as", "address", "learned_at"],
            )
