"""Derive a call URL, a base URL, an origin and a provider's name from an endpoint.

If the endpoint's path already ends in a call path of its protocol (such as `/chat/completions`), the endpoint is used
unchanged. Otherwise the call path is appended. `/v1` is never inserted, because some endpoints end in `/v3` or `/v4`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import KeyNotation, classify_key
from capabilities.core.providers.presets import preset_for_host
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import Configuration, ProviderSpec, ServiceSpec

CALLS = {"openai": "/chat/completions", "openai-responses": "/responses", "anthropic": "/messages"}
GEMINI_HOST = "generativelanguage.googleapis.com"
GEMINI_OPENAI_PATH = "/v1beta/openai/chat/completions"
DEFAULT_PORTS = {"http": 80, "https": 443}
IGNORED_HOST_LABELS = frozenset({"api", "www", "com", "cn", "net", "org", "ai", "io", "dev", "co"})
WORD = re.compile(r"[a-z0-9]+")


def base_url(endpoint: str) -> str:
    """Return the base URL: the endpoint without its call path and trailing slash, but with its query."""
    parts = split_url(endpoint)
    path = parts.path.rstrip("/")
    for call in CALLS.values():
        path = path.removesuffix(call)
    return parts._replace(path=path.rstrip("/")).geturl()


def call_url(endpoint: str, protocol: str) -> str:
    """Return the full URL of a call to an OpenAI or Anthropic endpoint, or to Gemini's OpenAI-compatible API."""
    parts = split_url(endpoint)
    if protocol == "gemini" and parts.hostname == GEMINI_HOST:
        return parts._replace(path=GEMINI_OPENAI_PATH, query="").geturl()
    call = CALLS.get(protocol, "")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(call) else path + call).geturl()


def same_origin(first: str, second: str) -> bool:
    return _origin(first) == _origin(second)


def provider_name(endpoint: str, names: Collection[str]) -> str:
    """Return a name for a new provider, derived from the preset for its host or from the host name."""
    parts = split_url(endpoint)
    preset = preset_for_host(parts.hostname or "")
    name = preset.name if preset else _host_name(parts.hostname or "")
    if name not in names:
        return name
    # If the name is taken, append words from the URL's path, then a number.
    for word in WORD.findall(parts.path.lower()):
        name = f"{name}-{word}"
        if name not in names:
            return name
    number = 2
    while f"{name}-{number}" in names:
        number += 1
    return f"{name}-{number}"


def _host_name(host: str) -> str:
    # For example `api.deepseek.com` becomes `deepseek`.
    words = [word for word in WORD.findall(host.lower()) if word not in IGNORED_HOST_LABELS]
    return "-".join(words[-2:] if len(words) > 2 and not words[-1].isdigit() else words) or "provider"


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL; text that is not a URL is treated as a path."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return SplitResult("", "", url, "", "")
    return parts


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = split_url(url)
    # URLs with and without the scheme's default port have the same origin.
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)


# A service uses its provider's base URL, but a file may spell this URL differently for each service. Only such a
# different spelling is stored with the service. A base URL at another host is never stored, because the provider's key
# would then be used for that host, in exports as well.


def service_base_url(service: ServiceSpec, provider: ProviderSpec | None) -> str:
    return service.base_url or (provider_base_url(provider) if provider else "")


def provider_base_url(provider: ProviderSpec) -> str:
    """Return a provider's base URL as written in a service's entry: its endpoint without the call path."""
    base = base_url(provider.endpoint)
    return provider.endpoint if provider.endpoint.rstrip("/") == base else base


def own_spelling(url: str, provider: ProviderSpec | None) -> str:
    """Return a service's own spelling of its provider's base URL, or "" if the spellings do not differ."""
    if provider is None or url == provider_base_url(provider) or base_url(url) != base_url(provider.endpoint):
        return ""
    return url


def without_foreign_base_urls(configuration: Configuration) -> Configuration:
    """Return the configuration, clearing each service's base URL unless it is a spelling of its provider's base URL."""
    services = tuple(_without_foreign_base_url(service, configuration) for service in configuration.services)
    return replace(configuration, services=services) if services != configuration.services else configuration


def _without_foreign_base_url(service: ServiceSpec, configuration: Configuration) -> ServiceSpec:
    spelling = service.base_url and own_spelling(service.base_url, configuration.provider(service.provider))
    return service if spelling == service.base_url else replace(service, base_url=spelling)


def address_problems(configuration: Configuration, value: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each service in a file whose base URL differs from that of its provider."""
    for index, raw in enumerate(value["services"]):
        provider = configuration.provider(raw.get("providerName") or "")
        if provider is None or base_url(raw["baseURL"]) == base_url(provider.endpoint):
            continue
        # The problem is an error if the entry contains a key: the key would be stored for a provider at another origin.
        has_key = classify_key(raw["apiKey"]) is KeyNotation.LITERAL and not same_origin(
            raw["baseURL"], provider.endpoint
        )
        path = f"services[{index}].baseURL"
        message = translatable(
            "%(path)s is not used: requests go to the provider “%(name)s” at %(url)s. Correct it, or name "
            "another provider.",
            path=path,
            name=provider.name,
            url=provider.endpoint,
        )
        yield Problem(path, message, "reference", "error" if has_key else "warning")
