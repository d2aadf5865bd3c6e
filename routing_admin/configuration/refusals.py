"""Store refused parameters in rows, by provider and model, with the provider's address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from django.db import transaction
from django.utils import timezone

from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.memory import Place, Refused
from routing_admin.models import LearnedRefusal
from routing_admin.platform.databases.router import LOGS

MAX_CHARACTERS = 200
"""Longer names of models and parameters are kept in memory only."""


def addresses_of(configuration: Configuration) -> dict[Place, str]:
    """Return a digest of protocol and endpoint for each model of a service or a route."""
    digests = {
        each.name: hashlib.sha256(f"{each.protocol} {each.endpoint}".encode()).hexdigest()
        for each in configuration.providers
    }
    defaults = {each.name: each.default_model for each in configuration.providers}
    return {place: digests[place[0]] for place in _list_places(configuration, defaults) if place[0] in digests}


def _list_places(configuration: Configuration, defaults: Mapping[str, str]) -> Iterator[Place]:
    yield from defaults.items()
    for service in configuration.services:
        yield service.provider, service.model
    for route in configuration.routes:
        for each in route.candidates:
            yield each.provider, each.model or defaults.get(each.provider, "")


def read_refusals(addresses: Mapping[Place, str]) -> dict[Place, Refused]:
    """Return the stored refusals by place; rows of models that are gone or have moved are deleted."""
    known: dict[Place, dict[str, str | None]] = {}
    gone = []
    for row in LearnedRefusal.objects.order_by("pk"):
        place = (row.provider, row.model)
        if addresses.get(place) == row.address:
            known.setdefault(place, {})[row.name] = row.sent_as or None
        else:
            gone.append(row.pk)
    if gone:
        LearnedRefusal.objects.filter(pk__in=gone).delete()
    return dict(known)


def write_refusals(place: Place, address: str, before: Refused, now: Refused) -> None:
    """Write what this process learned or forgot since its last read, keeping other processes' rows."""
    provider, model = place
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
    gone = before.keys() - now.keys()
    with transaction.atomic(using=LOGS):
        if gone:
            LearnedRefusal.objects.filter(provider=provider, model=model, name__in=gone).delete()
        if rows:
            LearnedRefusal.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["provider", "model", "name"],
                update_fields=["sent_as", "address", "learned_at"],
            )
