"""The address of a service: its provider's, written as its file wrote it; never another one.

A base URL that does not lead to the provider would pair one provider's key with another host, in our own export too.
So what is not only another way of writing the provider's address is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import KeyNotation, form_of
from capabilities.core.worded import worded
from routing_admin.core.configuration.specs import Configuration, ProviderSpec, ServiceSpec
from routing_admin.core.files.endpoints import base_of, same_origin


def base_url_of(service: ServiceSpec, provider: ProviderSpec | None) -> str:
    """The base URL that a file has for the service."""
    return service.base_url or (own_base(provider) if provider else "")


def own_base(provider: ProviderSpec) -> str:
    """The base URL of a provider as a service's entry has it: its endpoint, without a call at its end."""
    base = base_of(provider.endpoint)
    return provider.endpoint if provider.endpoint.rstrip("/") == base else base


def spelling_of(url: str, provider: ProviderSpec | None) -> str:
    """What a service keeps of its base URL: how it writes the provider's address, empty for the provider's own way."""
    if provider is None or url == own_base(provider) or base_of(url) != base_of(provider.endpoint):
        return ""
    return url


def with_own_addresses(configuration: Configuration) -> Configuration:
    """The configuration in which no service has the address of another provider than its own."""
    services = tuple(_with_own_address(service, configuration) for service in configuration.services)
    return replace(configuration, services=services) if services != configuration.services else configuration


def _with_own_address(service: ServiceSpec, configuration: Configuration) -> ServiceSpec:
    kept = service.base_url and spelling_of(service.base_url, configuration.provider(service.provider))
    return service if kept == service.base_url else replace(service, base_url=kept)


def address_problems(configuration: Configuration, value: Mapping[str, Any]) -> Iterator[Problem]:
    """Where services of a file name a provider that is at another address than their own; an error where a key stands
    there, which would be stored for that provider.
    """
    for index, raw in enumerate(value["services"]):
        provider = configuration.provider(raw.get("providerName") or "")
        if provider is None or base_of(raw["baseURL"]) == base_of(provider.endpoint):
            continue
        has_key = form_of(raw["apiKey"]) is KeyNotation.LITERAL and not same_origin(raw["baseURL"], provider.endpoint)
        path = f"services[{index}].baseURL"
        words = worded(
            "%(path)s is not used: requests go to the provider “%(name)s” at %(url)s. Correct it, or name "
            "another provider.",
            path=path,
            name=provider.name,
            url=provider.endpoint,
        )
        yield Problem(path, words, "reference", "error" if has_key else "warning")
