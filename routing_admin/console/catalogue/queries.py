"""What the page of the catalogue shows of our own rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import lru_cache

from django.db.models import QuerySet
from django.utils import timezone

from capabilities.core.consequence import Consequence
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.consequences import with_runtime_agents
from routing_admin.core.planning.consequences import ModelEnding, foresee_endings
from routing_admin.dispatch.decisions import unusable_of


def list_called_providers() -> list[str]:
    """The names of the providers that can be asked for a list of models."""
    return list(_called().values_list("name", flat=True))


def find_called_provider(name: str) -> Provider | None:
    """The enabled provider of that name; None for none."""
    return _called().filter(name=name).first()


def _called() -> QuerySet[Provider]:
    return Provider.objects.filter(enabled=True).exclude(protocol="echo")


# Which models in use are about to go, or gone? By the catalogue's days, of the newest snapshot.


def list_endings() -> tuple[ModelEnding, ...]:
    """The models of the snapshot in use whose end changes something for a route or an agent, the earliest first."""
    return _list_endings(snapshot.current(), timezone.localdate())


def list_endings_of(task_type: str) -> tuple[ModelEnding, ...]:
    """Those that change something for that route, with what they mean for it alone."""
    found = (_for_route(each, task_type) for each in list_endings())
    return tuple(each for each in found if each.consequences)


def foresee_ending(provider: str, model: str) -> tuple[Consequence, ...]:
    """What the end of a model means for routes and agents; nothing where it is not near or nobody is concerned."""
    return next(
        (each.consequences for each in list_endings() if (each.end.provider, each.end.model) == (provider, model)), ()
    )


def _for_route(ending: ModelEnding, task_type: str) -> ModelEnding:
    own = tuple(each for each in ending.consequences if (each.kind, each.name) == ("route", task_type))
    return replace(ending, consequences=own)


@lru_cache(maxsize=2)
def _list_endings(state: Snapshot, today: date) -> tuple[ModelEnding, ...]:
    configuration = with_runtime_agents(state, state.configuration)
    return foresee_endings(configuration, today, unusable_of(state), state.catalogue)
