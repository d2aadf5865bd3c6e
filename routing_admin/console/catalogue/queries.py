"""Find models and providers for the catalogue's page, and models in use that are or soon will be retired."""

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
    """A catalogue entry for a model at a host. `host` is empty if the entry applies to all hosts."""

    host: str
    name: str
    entry: CatalogueEntry
    retirement: Retirement | None


def search_models(catalogue: Catalogue, words: str) -> tuple[list[FoundModel], int]:
    """Return the first models whose name and host together contain all the words, and the number of all such models."""
    found = catalogue.find(words) if words else []
    models = [
        FoundModel(
            "" if host == ANY_HOST else host, name, catalogue.host_entry(host, name), catalogue.retirement(host, name)
        )
        for host, name in found[:MAX_FOUND]
    ]
    return models, len(found)


def find_called_provider(name: str) -> Provider | None:
    """Return an enabled provider. The built-in provider `echo` is excluded, because it has no list of models."""
    return Provider.objects.filter(enabled=True, name=name).exclude(protocol="echo").first()


# The following queries find models in use that are or soon will be retired, according to the newest snapshot's
# catalogue.


def list_endings() -> tuple[ModelEnding, ...]:
    """Return the model retirements that affect a route or an agent, earliest first."""
    return _list_endings(snapshot.current(), timezone.localdate())


def list_route_endings(task_type: str) -> tuple[ModelEnding, ...]:
    """Return the model retirements that affect a route, with only this route's consequences."""
    endings = (_for_route(ending, task_type) for ending in list_endings())
    return tuple(ending for ending in endings if ending.consequences)


def find_ending_consequences(provider: str, model: str) -> tuple[Consequence, ...]:
    """Return the consequences that a model's retirement has for routes and agents.

    The result is empty if there are none, or if the model will not be retired soon.
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


# Snapshots are immutable, so the result is cached per snapshot and day.
@lru_cache(maxsize=2)
def _list_endings(state: Snapshot, today: date) -> tuple[ModelEnding, ...]:
    configuration = with_runtime_agents(state, state.configuration)
    return foresee_endings(configuration, today, unusable_providers(state), state.catalogue)
