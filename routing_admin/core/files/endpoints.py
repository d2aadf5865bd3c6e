"""What an endpoint says of itself: its call, its base, its origin, and a name for who is there.

An endpoint whose path ends in its protocol's call is used as it is, else the call is appended; `/v1` is never
inserted, since some end in `/v3` or `/v4` (decision 9).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import KeyNotation, form_of
from capabilities.core.providers.presets import preset_for_host
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import Configuration, ProviderSpec, ServiceSpec

CALLS = {"openai": "/chat/completions", "openai-responses": "/responses", "anthropic": "/messages"}
GEMINI_HOST = "generativelanguage.googleapis.com"
GEMINI_OPENAI_PATH = "/v1beta/openai/chat/completions"
DEFAULT_PORTS = {"http": 80, "https": 443}
HOST_NOISE = frozenset({"api", "www", "com", "cn", "net", "org", "ai", "io", "dev", "co"})
WORD = re.compile(r"[a-z0-9]+")


def base_of(endpoint: str) -> str:
    """The base URL: no final slash and no protocol's call at its end; a query stays where it was."""
    parts = split(endpoint)
    path = parts.path.rstrip("/")
    for call in CALLS.values():
        path = path.removesuffix(call)
    return parts._replace(path=path.rstrip("/")).geturl()


def call_of(endpoint: str, protocol: str) -> str:
    """The full call URL of an OpenAI or Anthropic endpoint; Gemini's is its OpenAI-compatible one."""
    parts = split(endpoint)
    if protocol == "gemini" and parts.hostname == GEMINI_HOST:
        return parts._replace(path=GEMINI_OPENAI_PATH, query="").geturl()
    call = CALLS.get(protocol, "")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(call) else path + call).geturl()


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    return _origin(one) == _origin(other)


def provider_name(endpoint: str, names: Collection[str]) -> str:
    """A new provider's name: its preset's or of its host, words of the path and then numbers added while taken."""
    parts = split(endpoint)
    preset = preset_for_host(parts.hostname or "")
    name = preset.name if preset else _host_name(parts.hostname or "")
    if name not in names:
        return name
    for word in WORD.findall(parts.path.lower()):
        name = f"{name}-{word}"
        if name not in names:
            return name
    number = 2
    while f"{name}-{number}" in names:
        number += 1
    return f"{name}-{number}"


def _host_name(host: str) -> str:
    words = [word for word in WORD.findall(host.lower()) if word not in HOST_NOISE]
    return "-".join(words[-2:] if len(words) > 2 and not words[-1].isdigit() else words) or "provider"


def split(url: str) -> SplitResult:
    """The URL's parts; a text that is no URL is all path."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return SplitResult("", "", url, "", "")
    return parts


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = split(url)
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)


# The address of a service: its provider's, written as its file wrote it; never another one.
#
# A base URL that does not lead to the provider would pair one provider's key with another host, in our own export
# too. So what is not only another way of writing the provider's address is dropped.


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
        words = translatable(
            "%(path)s is not used: requests go to the provider “%(name)s” at %(url)s. Correct it, or name "
            "another provider.",
            path=path,
            name=provider.name,
            url=provider.endpoint,
        )
        yield Problem(path, words, "reference", "error" if has_key else "warning")
