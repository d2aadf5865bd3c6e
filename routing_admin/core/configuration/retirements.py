"""Which models of a configuration are no longer served, or will not be soon?"""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.providers.catalogue import Catalogue, Retirement, default_catalogue
from routing_admin.core.configuration.specs import Configuration


@dataclass(frozen=True, slots=True)
class ModelEnd:
    """A model that a provider stops serving, and when; `provider` is the provider's name."""

    provider: str
    model: str
    retirement: Retirement


def list_ends(configuration: Configuration, catalogue: Catalogue | None = None) -> tuple[ModelEnd, ...]:
    """The models with a known last day that providers, services or chains name, the earliest first; by that catalogue,
    else by the shipped one.
    """
    known = catalogue or default_catalogue()
    endpoints = {provider.name: provider.endpoint for provider in configuration.providers}
    defaults = {provider.name: provider.default_model for provider in configuration.providers}
    places = [
        *defaults.items(),
        *((service.provider, service.model) for service in configuration.services),
        *(
            (candidate.provider, candidate.model or defaults.get(candidate.provider, ""))
            for route in configuration.routes
            for candidate in route.candidates
        ),
    ]
    found = (
        ModelEnd(provider, model, retirement)
        for provider, model in dict.fromkeys(places)
        if (retirement := known.retirement_at(provider, endpoints.get(provider, ""), model))
    )
    return tuple(sorted(found, key=lambda end: (end.retirement.day, end.provider, end.model)))
