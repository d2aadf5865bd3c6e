"""Which routes and models have a name of their own in metrics and sums: callers make up names, and those count as one.

Only what is configured has its own, by the newest configuration: a model that becomes a service has its name at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice

from django.conf import settings

from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.planning.model_names import provider_and_model


class CountedNames:
    """The names of one configuration; any other is `other`."""

    def __init__(self, configuration: Configuration, other: str, agents: tuple[str, ...] = ()) -> None:
        self._other, self.agents = other, agents
        self._providers = {"", *(each.name for each in configuration.providers)}
        self._models = {*_models_in(configuration), ("", "")}
        self._routes = {
            "",
            *(each.task_type for each in configuration.routes),
            *(each.id for each in configuration.services),
            *(each.name for each in configuration.aliases),
            *(f"{provider}/{model}" for provider, model in self._models),
        }

    def model(self, provider: str, model: str) -> str:
        """Return the name under which a provider's model is counted."""
        return model if not model or (provider, model) in self._models else self._other

    def place(self, provider: str, model: str) -> tuple[str, str]:
        """Return the names under which a provider and its model are counted."""
        return (provider, self.model(provider, model)) if provider in self._providers else (self._other, self._other)

    def route(self, task_type: str) -> str:
        """Return the name under which a route, or what was called without one, is counted."""
        return task_type if task_type in self._routes else self._other

    def agent(self, name: str) -> str:
        """Return the name under which an agent is counted, where agents are."""
        return name if name in self.agents else self._other

    def is_known(self, route: str, provider: str, model: str) -> bool:
        """Whether something could be counted under these names."""
        return self.route(route) == route and self.place(provider, model) == (provider, model)


def _models_in(configuration: Configuration) -> Iterator[tuple[str, str]]:
    yield from ((each.provider, each.model) for each in configuration.services)
    yield from ((each.name, each.default_model) for each in configuration.providers)
    for route in configuration.routes:
        yield from ((each.provider, each.model) for each in route.candidates if each.model)
    for alias in configuration.aliases:
        if pair := provider_and_model(configuration, alias.target):
            yield pair


def _build(state: Snapshot, other: str) -> CountedNames:
    agents = islice((each.id for each in state.configured), settings.METRICS_AGENTS)
    return CountedNames(state.configuration, other, tuple(agents))


_names_of: Callable[[Snapshot, str], CountedNames] = lru_cache(maxsize=4)(_build)


def names_now(other: str) -> CountedNames:
    """Return the names of the newest configuration. Raises what reading it raises as long as none is known at all."""
    return _names_of(snapshot.current(), other)
