"""Export files for the original programs (seeds), and list what their format cannot express.

In their files, an endpoint is the full call URL, a fallback is a provider's name, and a provider has only one model.
Therefore each (provider, model) that a fallback uses becomes a separate provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from capabilities.core.providers.environment import NOT_IN_NAME
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, ProviderSpec, RouteSpec
from routing_admin.core.documents.kept_fields import drop_absent, plain_number
from routing_admin.core.files.endpoints import base_url, call_url
from routing_admin.core.files.llm_routing import PROVIDER_KEYS, ROUTE_KEYS, key_text, list_variables
from routing_admin.core.files.llmservices import SERVICE_OWN_KEYS, write_service
from routing_admin.core.planning.plan import is_taken

SEED_PROTOCOLS = ("openai", "anthropic", "gemini")
"""Protocols that the original programs can build requests for; for Gemini, only at its OpenAI-compatible URL."""

UNSUPPORTED_SERVICE_FIELDS: Mapping[str, Any] = MappingProxyType(
    {"limits": {}, "price": {}, "content": {}, "timeouts": {}, "extra_body": {}, "routed": False}
)
"""Service fields that the original format lacks, with their defaults."""

UNSUPPORTED_PROVIDER_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "display_name": translatable("display name"),
        "quirks": translatable("quirks"),
        "timeouts": translatable("timeouts"),
        "env_name": translatable("env name"),
        "proxy": translatable("proxy"),
        "more_keys": translatable("further keys"),
        "vendor_tools": translatable("the vendor's own tools"),
    }
)
UNSUPPORTED_ROUTE_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "on_error": translatable("error policy"),
        "retries": translatable("retries"),
        "deadline": translatable("deadline"),
        "first_content": translatable("first content"),
        "content": translatable("content rules"),
        "on_drop": translatable("rule on what may be left out"),
        "on_overflow": translatable("rule on requests that are too long"),
        "directive": translatable("rule on the language of answers"),
        "allow_n": translatable("rule on several answers"),
        "keep_alive_seconds": translatable("seconds until keep-alive comments"),
    }
)
"""Route fields that the original format lacks, with the names that users see."""
UNSUPPORTED_SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "agents": translatable("agents"),
        "languages": translatable("languages"),
        "label_budgets": translatable("label budgets"),
        "exchange_rates": translatable("exchange rates"),
        "catalogue": translatable("refreshed catalogue"),
    }
)

Written = tuple[dict[str, Any], tuple[str, ...]]


def seed_routing(configuration: Configuration) -> Written:
    """Return `llm-routing.json` in the original format, and a sentence for everything that it cannot express."""
    expressible = (item for item in configuration.providers if item.enabled and item.protocol in SEED_PROTOCOLS)
    providers = {item.name: found for item in expressible if (found := with_enabled_key(item))}
    chains = {
        route.task_type: [item for item in _drop_repeats(route.candidates) if item.provider in providers]
        for route in configuration.routes
        if is_taken(route)
    }
    entries = _entries(configuration, providers, chains)
    value = {
        "providers": [_provider(providers[name], model, entry) for (name, model), entry in entries.items()],
        "routing": {
            route.task_type: _route(route, chains[route.task_type], providers, entries)
            for route in configuration.routes
            if chains.get(route.task_type)
        },
        **drop_absent({"defaultLanguage": configuration.default_language}),
        **configuration.extra_routing,
    }
    return value, tuple(_list_losses(configuration, providers, chains))


def seed_services(configuration: Configuration) -> Written:
    """Return `llmservices.json` with only the original fields, and a sentence for each omitted setting."""
    providers = {item.name: item for item in configuration.providers}
    entries, left_out = [], []
    for service in configuration.services:
        provider = providers[service.provider]
        usable_provider = with_enabled_key(provider)
        if service.enabled and provider.enabled and provider.protocol == "openai" and usable_provider:
            bare = replace(service, base_url=base_url(provider.endpoint), sources={}, **UNSUPPORTED_SERVICE_FIELDS)
            entries.append(_drop_our_keys(write_service(bare, usable_provider), SERVICE_OWN_KEYS))
        else:
            left_out.append(_service_left_out(service.id, provider, is_usable=usable_provider is not None))
        own_rules = [field for field in UNSUPPORTED_SERVICE_FIELDS if getattr(service, field)]
        if own_rules:
            rules = translatable(
                "Model service “%(name)s”: its own rules are left out (%(rules)s).",
                name=service.id,
                rules=tuple(own_rules),
            )
            left_out.append(rules)
    return {"services": entries, **configuration.extra_services}, tuple(left_out)


def with_enabled_key(provider: ProviderSpec) -> ProviderSpec | None:
    """Return the provider with only its first enabled key, or None if all of its keys are disabled."""
    pairs = zip((provider.key, *provider.more_keys), list_variables(provider), strict=True)
    found = next(((key, variable) for key, variable in pairs if key.enabled), None)
    if found is None:
        return None
    key, variable = found
    return replace(provider, key=replace(key, variable=key.variable or variable))


def _service_left_out(name: str, provider: ProviderSpec, *, is_usable: bool) -> str:
    if provider.protocol != "openai":
        return translatable(
            "Model service “%(name)s” is left out: it uses the protocol %(protocol)s.",
            name=name,
            protocol=provider.protocol,
        )
    if not is_usable:
        return translatable(
            "Model service “%(name)s” is left out: every key of %(provider)s is disabled.",
            name=name,
            provider=provider.name,
        )
    return translatable("Model service “%(name)s” is left out: it is disabled.", name=name)


def _drop_our_keys(entry: Mapping[str, Any], own_keys: Collection[str]) -> dict[str, Any]:
    return {key: item for key, item in entry.items() if key not in own_keys}


def _drop_repeats(candidates: tuple[CandidateSpec, ...]) -> list[CandidateSpec]:
    # If a candidate is repeated, keep only the first occurrence, because requests would skip the others.
    return list({(item.provider, item.model): item for item in reversed(candidates)}.values())[::-1]


def _entries(
    configuration: Configuration, providers: Mapping[str, ProviderSpec], chains: Mapping[str, list[CandidateSpec]]
) -> dict[tuple[str, str], str]:
    used = {item.provider for chain in chains.values() for item in chain}
    listed = [item for item in providers.values() if item.in_routing_file or item.name in used]
    # A provider's own entry contains its default model. Each further model needs an entry of its own.
    names = {(item.name, item.default_model): item.name for item in listed}
    taken = {item.name for item in configuration.providers}
    for candidate in (item for chain in chains.values() for item in chain[1:]):
        model = candidate.model or providers[candidate.provider].default_model
        if (candidate.provider, model) not in names:
            name = _find_free_name(f"{candidate.provider}-{NOT_IN_NAME.sub('-', model.upper()).lower()}", taken)
            names[candidate.provider, model] = name
            taken.add(name)
    return names


def _find_free_name(name: str, names: Collection[str]) -> str:
    number, free = 2, name
    while free in names:
        free, number = f"{name}-{number}", number + 1
    return free


def _provider(provider: ProviderSpec, model: str, entry: str) -> dict[str, Any]:
    return {
        "providerName": entry,
        "apiKey": key_text(provider),
        "endpoint": call_url(provider.endpoint, provider.protocol),
        "defaultModel": model,
    } | {key: item for key, item in provider.extra.items() if key not in PROVIDER_KEYS}


def _route(
    route: RouteSpec,
    chain: list[CandidateSpec],
    providers: Mapping[str, ProviderSpec],
    entries: Mapping[tuple[str, str], str],
) -> dict[str, Any]:
    fallback = [entries[item.provider, item.model or providers[item.provider].default_model] for item in chain[1:]]
    # The first candidate's parameters become those of the route, because the original format has no others.
    temperature = route.temperature if chain[0].temperature is None else chain[0].temperature
    max_tokens = route.max_tokens if chain[0].max_tokens is None else chain[0].max_tokens
    return (
        {"provider": chain[0].provider}
        | drop_absent(
            {
                "model": chain[0].model,
                "temperature": plain_number(temperature),
                "maxTokens": plain_number(max_tokens),
                "fallback": fallback or None,
            }
        )
        | {key: item for key, item in route.extra.items() if key not in ROUTE_KEYS}
    )


def _list_losses(
    configuration: Configuration, providers: Mapping[str, ProviderSpec], chains: Mapping[str, list[CandidateSpec]]
) -> Iterator[str]:
    for provider in configuration.providers:
        if provider.name not in providers:
            yield _provider_left_out(provider)
        for field in (
            key for key in UNSUPPORTED_PROVIDER_FIELDS if getattr(provider, key) not in (None, "", {}, (), "default")
        ):
            yield translatable(
                "Provider “%(name)s”: its %(what)s cannot be expressed.",
                name=provider.name,
                what=UNSUPPORTED_PROVIDER_FIELDS[field],
            )
    for route in configuration.routes:
        yield from _list_route_losses(route, chains.get(route.task_type, []))
    yield from (
        translatable("Alias “%(name)s” cannot be expressed.", name=alias.name) for alias in configuration.aliases
    )
    parts = tuple(part for field, part in UNSUPPORTED_SECTIONS.items() if getattr(configuration, field))
    if parts:
        yield translatable("Not in this file: %(what)s.", what=parts)
    if configuration.content_policy or configuration.content_text or configuration.content_html:
        yield translatable("The content policy of the installation cannot be expressed.")


def _provider_left_out(provider: ProviderSpec) -> str:
    if not provider.enabled:
        return translatable("Provider “%(name)s” is left out: it is disabled.", name=provider.name)
    if provider.protocol in SEED_PROTOCOLS:
        return translatable("Provider “%(name)s” is left out: all its keys are disabled.", name=provider.name)
    return translatable(
        "Provider “%(name)s” is left out: it uses the protocol %(protocol)s.",
        name=provider.name,
        protocol=provider.protocol,
    )


def _list_route_losses(route: RouteSpec, chain: list[CandidateSpec]) -> Iterator[str]:
    if not chain:
        if is_taken(route):
            yield translatable(
                "Route “%(name)s” is left out: none of its candidates can be expressed.", name=route.task_type
            )
        else:
            yield translatable("Route “%(name)s” is left out: it is disabled.", name=route.task_type)
        return
    if chain[0] != route.primary:
        yield translatable(
            "Route “%(name)s” starts with %(provider)s: %(primary)s is left out.",
            name=route.task_type,
            provider=chain[0].provider,
            primary=route.primary.provider,
        )
    chosen = {key: getattr(route, key) for key in UNSUPPORTED_ROUTE_FIELDS}
    for field in (key for key, value in chosen.items() if value is not False and value not in (None, "", {})):
        yield translatable(
            "Route “%(name)s”: its %(what)s cannot be expressed.",
            name=route.task_type,
            what=UNSUPPORTED_ROUTE_FIELDS[field],
        )
    if _is_primary_cut(route, chain):
        yield translatable(
            "Route “%(name)s”: %(provider)s's own parameters as the first candidate cannot be expressed.",
            name=route.task_type,
            provider=chain[0].provider,
        )
    for item in chain[1:]:
        if item != CandidateSpec(item.provider, item.model):
            yield translatable(
                "Route “%(name)s”: %(provider)s's own parameters as a fallback cannot be expressed.",
                name=route.task_type,
                provider=item.provider,
            )


def _is_primary_cut(route: RouteSpec, chain: list[CandidateSpec]) -> bool:
    first = chain[0]
    # In the original format, parameters belong to the route and apply to all of its candidates.
    own = [(first.temperature, route.temperature), (first.max_tokens, route.max_tokens)]
    would_spread = len(chain) > 1 and any(
        candidate_value is not None and candidate_value != route_value for candidate_value, route_value in own
    )
    return bool(first.extra_body or first.extra or would_spread)
