"""What an export has to say, so that an import finds each provider and the provider of each service again.

The seeds' files say nothing of it: a service's base URL and key tell its provider. Where they do not (two providers at
one address, a provider that has more than its services would bring in), ours say it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from routing_admin.core.configuration.as_json import same_value
from routing_admin.core.configuration.specs import EMPTY, Configuration, KeyKind, ProviderSpec, ServiceSpec
from routing_admin.core.files.addresses import base_url_of
from routing_admin.core.files.endpoints import base_of
from routing_admin.core.files.llm_routing import key_text, variables_of
from routing_admin.core.files.provider_matching import merge_services


@dataclass(frozen=True, slots=True)
class WrittenIdentity:
    """What the two files have to say of providers, so that an import finds each again: the providers to list, and those
    whose services name them.
    """

    providers: tuple[ProviderSpec, ...]
    with_names: frozenset[str] = frozenset()


def identity_of(configuration: Configuration) -> WrittenIdentity:
    """As little as the seeds' files say where that tells every provider and service, else everything."""
    used = {candidate.provider for route in configuration.routes for candidate in route.candidates}
    listed = tuple(item for item in configuration.providers if item.in_routing_file or item.name in used)
    if _tell_all(configuration, listed):
        return WrittenIdentity(listed)
    places = Counter((base_of(each.endpoint), key_text(each)) for each in configuration.providers)
    twins = (each.name for each in configuration.providers if places[base_of(each.endpoint), key_text(each)] > 1)
    return WrittenIdentity(configuration.providers, frozenset(twins))


def _tell_all(configuration: Configuration, providers: tuple[ProviderSpec, ...]) -> bool:
    """Whether importing services that name no provider beside these would give back exactly what there is."""
    start = without_stored_keys(replace(EMPTY, providers=providers))
    value = {"services": [write_bare(service, configuration) for service in configuration.services]}
    made, _ = merge_services(start, value, False, lambda key, _endpoint: key)
    owners = [service.provider for service in configuration.services]
    return owners == [service.provider for service in made.services] and same_value(
        without_stored_keys(configuration).providers, made.providers
    )


def without_stored_keys(configuration: Configuration) -> Configuration:
    """What an installation makes of its files that has none of the stored keys."""
    return replace(configuration, providers=tuple(map(_as_imported, configuration.providers)))


def _as_imported(provider: ProviderSpec) -> ProviderSpec:
    """The provider in an installation without its stored keys."""
    keys = (
        replace(key, kind=KeyKind.ENV, variable=key.variable or variable, fingerprint="", token="")
        if key.kind is KeyKind.STORED
        else key
        for key, variable in zip((provider.key, *provider.more_keys), variables_of(provider), strict=True)
    )
    first, *more = keys
    return replace(provider, key=first, more_keys=tuple(more))


def write_bare(service: ServiceSpec, configuration: Configuration) -> dict[str, Any]:
    """What of a service's entry its provider is known by."""
    provider = configuration.provider(service.provider)
    assert provider is not None  # noqa: S101 - checked with every change
    names = {"id": service.id, "name": service.name, "model": service.model, "description": "", "capabilityTags": []}
    return {**names, "baseURL": base_url_of(service, provider), "apiKey": key_text(provider)}
