"""Find models and providers for the page of the catalogue, and models in use that are about to be retired."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from django.utils import timezone

from capabilities.core.consequence import Consequence
from capabilities.core.providers.catalogue import Catalogue, CatalogueEntry, Retirement
from capabilities.core.providers.catalogue.names import ANY_HOST
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.consequences import with_runtime_agents
from routing_admin.core.planning.consequences import ModelEnding, foresee_endings
from routing_admin.dispatch.decisions import unusable_providers

MAX_FOUND = 25


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model of the catalogue at a host, which is empty for a model that counts for all hosts."""

    host: str
    name: str
    entry: CatalogueEntry
    retirement: Retirement | None


def search_models(catalogue: Catalogue, words: str) -> tuple[list[FoundModel], int]:
    """Return the first models that have all of these words in their name or host, and how many there are."""
    found = catalogue.find(words) if words else []
    models = [
        FoundModel(
            "" if host == ANY_HOST else host, name, catalogue.host_entry(host, name), catalogue.retirement(host, name)
        )
        for host, name in found[:MAX_FOUND]
    ]
    return models, len(found)


def find_called_provider(name: str) -> Provider | None:
    """Return an enabled provider. The built-in echo provider has no list of models."""
    return Provider.objects.filter(enabled=True, name=name).exclude(protocol="echo").first()


# Models in use that, according to the newest snapshot's catalogue, are retired or will be soon.


def list_endings() -> tuple[ModelEnding, ...]:
    """Return the retirements of models that affect a route or an agent, the earliest first."""
    return _list_endings(snapshot.current(), timezone.localdate())


def list_route_endings(task_type: str) -> tuple[ModelEnding, ...]:
    """Return the retirements that affect a route, with the consequences for this route alone."""
    endings = (_for_route(ending, task_type) for ending in list_endings())
    return tuple(ending for ending in endings if ending.consequences)


def find_ending_consequences(provider: str, model: str) -> tuple[Consequence, ...]:
    """Return what a model's retirement means for routes and agents.

    Empty if it means nothing for them, or if the model is not retired soon.
    """
    return next(
        (
            ending.consequences
            for ending in list_endings()
            if (ending.end.provider, ending.end.model) == (provider, model)
        ),
        (),
    )


def _for_route(ending: ModelEnding, task_type: str) -> ModelEnding:
    consequences = tuple(
        consequence
        for consequence in ending.consequences
        if (consequence.kind, consequence.name) == ("route", task_type)
    )
    return replace(ending, consequences=consequences)


# Snapshots are immutable, so a result can be cached by snapshot and day.
@lru_cache(maxsize=2)
def _list_endings(state: Snapshot, today: date) -> tuple[ModelEnding, ...]:
    configuration = with_runtime_agents(state, state.configuration)
    return foresee_endings(configuration, today, unusable_providers(state), state.catalogue)
