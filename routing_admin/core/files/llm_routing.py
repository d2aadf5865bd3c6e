"""Read and write the objects of `llm-routing.json` (seed 003).

Objects must pass `llm_routing_checks.validate` before they are read. Fields that the original programs (seeds) lack are
written only if they differ from their default, so that a file from these programs is exported unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.providers.environment import further_variables, key_variable, reference
from capabilities.core.providers.presets import endpoint_protocol
from routing_admin.core.configuration.as_json import same_value
from routing_admin.core.configuration.specs import (
    NO_DIRECTIVE,
    REFUSE,
    SKIP,
    CandidateSpec,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
)
from routing_admin.core.documents.kept_fields import drop_absent, find_leftovers, plain_number, write_fields

ROOT_KEYS = (
    *("providers", "routing", "defaultLanguage", "contentPolicy", "contentText", "contentHtml"),
    *("aliases", "agents", "languages", "labelBudgets", "exchangeRates", "catalogue"),
)
PROVIDER_SEED_KEYS = ("providerName", "apiKey", "endpoint", "defaultModel")
KEY_KEYS = ("keyName", "keyEnabled", "keys")
PROVIDER_OWN_KEYS = (
    *("displayName", "protocol", "enabled", "envName", "quirks", "timeouts", "proxy", "fromServices"),
    "vendorTools",
    *KEY_KEYS,
)
PROVIDER_KEYS = PROVIDER_SEED_KEYS + PROVIDER_OWN_KEYS
ROUTE_SEED_KEYS = ("provider", "model", "temperature", "maxTokens", "fallback")
ROUTE_OWN_KEYS = (
    *("primary", "onError", "retries", "deadline", "content", "onDrop", "onOverflow", "directive", "keepAliveSeconds"),
    *("allowN", "enabled"),
)
ROUTE_KEYS = ROUTE_SEED_KEYS + ROUTE_OWN_KEYS
PARAMETER_KEYS = ("temperature", "maxTokens", "extraBody")
CANDIDATE_KEYS = ("provider", "model", *PARAMETER_KEYS)


def key_text(provider: ProviderSpec) -> str:
    """Return the key field for an export: `NOT_NEEDED` or `${…}`, never a key."""
    if provider.key.kind is KeyKind.NONE:
        return "NOT_NEEDED"
    return reference(provider.key.variable or key_variable(provider.name, provider.env_name))


def list_variables(provider: ProviderSpec) -> tuple[str, ...]:
    """Return the name of each key's environment variable, even for keys that are not read from the environment."""
    first = key_variable(provider.name, provider.env_name)
    return (first, *further_variables(first, (key.variable for key in provider.more_keys)))


def further_keys_json(provider: ProviderSpec) -> list[dict[str, Any]]:
    """Return the value of `keys` for an export: each additional key's name, and `${…}` in place of the key."""
    return [
        {"name": key.name, "apiKey": reference(variable), **({} if key.enabled else {"enabled": False})}
        for key, variable in zip(provider.more_keys, list_variables(provider)[1:], strict=True)
    ]


def read_provider(raw: Mapping[str, Any], key: KeySpec, more_keys: tuple[KeySpec, ...] = ()) -> ProviderSpec:
    """Return the provider described by an item of `providers`; `key` and `more_keys` are its keys after the import."""
    provider = replace(_provider_fields(raw, key), more_keys=more_keys)
    return replace(provider, extra=find_leftovers(raw, _provider_canonical(provider)))


def write_provider(provider: ProviderSpec) -> dict[str, Any]:
    """Return the item of `providers` that describes this provider, with keys as `${…}`."""

    def same(raw: Mapping[str, Any]) -> bool:
        # Do not restore an empty key field from the imported file if the provider has a key now.
        if raw["apiKey"] == "" and provider.key.kind is not KeyKind.NONE:
            return False
        if bool(raw.get("keys")) != bool(provider.more_keys):
            return False
        read = replace(_provider_fields(raw, provider.key), extra=provider.extra, more_keys=provider.more_keys)
        return same_value(read, provider)

    return write_fields(_provider_canonical(provider), provider.extra, PROVIDER_KEYS, same)


def _provider_fields(raw: Mapping[str, Any], key: KeySpec) -> ProviderSpec:
    enabled = raw.get("enabled")
    return ProviderSpec(
        name=raw["providerName"],
        endpoint=raw["endpoint"],
        default_model=raw["defaultModel"],
        protocol=raw.get("protocol") or endpoint_protocol(raw["endpoint"]),
        key=replace(key, name=raw.get("keyName") or "", enabled=raw.get("keyEnabled") is not False),
        display_name=raw.get("displayName") or "",
        env_name=raw.get("envName") or None,
        enabled=True if enabled is None else enabled,
        quirks=raw.get("quirks") or {},
        timeouts=raw.get("timeouts") or {},
        proxy=raw.get("proxy") or "default",
        vendor_tools=None if raw.get("vendorTools") is None else tuple(raw["vendorTools"]),
        in_routing_file=not raw.get("fromServices"),
    )


def _provider_canonical(provider: ProviderSpec) -> dict[str, Any]:
    detected = endpoint_protocol(provider.endpoint)
    return {
        "providerName": provider.name,
        "apiKey": key_text(provider),
        "endpoint": provider.endpoint,
        "defaultModel": provider.default_model,
    } | drop_absent(
        {
            "displayName": provider.display_name or None,
            "protocol": None if provider.protocol == detected else provider.protocol,
            "enabled": None if provider.enabled else False,
            "envName": provider.env_name,
            "quirks": provider.quirks or None,
            "timeouts": provider.timeouts or None,
            "proxy": None if provider.proxy == "default" else provider.proxy,
            "vendorTools": None if provider.vendor_tools is None else list(provider.vendor_tools),
            "fromServices": None if provider.in_routing_file else True,
            "keyName": provider.key.name or None,
            "keyEnabled": None if provider.key.enabled else False,
            "keys": further_keys_json(provider) or None,
        }
    )


def read_route(task_type: str, raw: Mapping[str, Any], providers: Collection[str]) -> RouteSpec:
    """Return the route described by an entry of `routing`; its fallbacks may name any of `providers`."""
    route = _route_fields(task_type, raw, providers)
    return replace(route, extra=find_leftovers(raw, _route_canonical(route, providers)))


def write_route(route: RouteSpec, providers: Collection[str]) -> dict[str, Any]:
    def same(raw: Mapping[str, Any]) -> bool:
        return same_value(replace(_route_fields(route.task_type, raw, providers), extra=route.extra), route)

    return write_fields(_route_canonical(route, providers), route.extra, ROUTE_KEYS, same)


def _route_fields(task_type: str, raw: Mapping[str, Any], providers: Collection[str]) -> RouteSpec:
    deadline = raw.get("deadline")
    times = deadline if isinstance(deadline, Mapping) else {"total": deadline}
    fallback = tuple(read_candidate(entry, providers) for entry in raw.get("fallback") or ())
    enabled = raw.get("enabled")
    return RouteSpec(
        task_type=task_type,
        candidates=(_read_primary(raw), *fallback),
        temperature=plain_number(raw.get("temperature")),
        max_tokens=plain_number(raw.get("maxTokens")),
        on_error=raw.get("onError") or {},
        retries=plain_number(raw.get("retries")),
        deadline=plain_number(times.get("total")),
        first_content=plain_number(times.get("firstContent")),
        content=raw.get("content") or {},
        enabled=True if enabled is None else enabled,
        on_drop=REFUSE if raw.get("onDrop") == REFUSE else "",
        on_overflow=SKIP if raw.get("onOverflow") == SKIP else "",
        directive=NO_DIRECTIVE if raw.get("directive") == NO_DIRECTIVE else "",
        allow_n=raw.get("allowN") is True,
        keep_alive_seconds=plain_number(raw.get("keepAliveSeconds")),
    )


def _route_canonical(route: RouteSpec, providers: Collection[str]) -> dict[str, Any]:
    times = drop_absent({"total": plain_number(route.deadline), "firstContent": plain_number(route.first_content)})
    return {"provider": route.primary.provider} | drop_absent(
        {
            "model": route.primary.model,
            "temperature": plain_number(route.temperature),
            "maxTokens": plain_number(route.max_tokens),
            "fallback": [write_candidate(item, providers) for item in route.candidates[1:]] or None,
            "primary": _write_primary(route.primary) or None,
            "onError": route.on_error or None,
            "retries": plain_number(route.retries),
            "deadline": times.get("total") if times.keys() <= {"total"} else times,
            "content": route.content or None,
            "onDrop": route.on_drop or None,
            "onOverflow": route.on_overflow or None,
            "directive": route.directive or None,
            "allowN": route.allow_n or None,
            "keepAliveSeconds": plain_number(route.keep_alive_seconds),
            "enabled": None if route.enabled else False,
        }
    )


def resolve_candidate(text: str, providers: Collection[str]) -> tuple[str, str | None]:
    """Split a fallback's text into provider and model at the first `/`.

    The model is None if the text is a provider's name.
    """
    head, slash, tail = text.partition("/")
    if text not in providers and slash and tail and head in providers:
        return head, tail
    return text, None


def read_candidate(entry: str | Mapping[str, Any], providers: Collection[str]) -> CandidateSpec:
    if isinstance(entry, str):
        return CandidateSpec(*resolve_candidate(entry, providers))
    candidate = _candidate_fields(entry)
    return replace(candidate, extra=find_leftovers(entry, _candidate_canonical(candidate)))


def write_candidate(candidate: CandidateSpec, providers: Collection[str]) -> str | dict[str, Any]:
    """Return the item of `fallback` for a candidate: a string if that is sufficient, otherwise an object."""
    text = candidate.provider if candidate.model is None else f"{candidate.provider}/{candidate.model}"
    bare = CandidateSpec(candidate.provider, candidate.model)
    if candidate == bare and resolve_candidate(text, providers) == (candidate.provider, candidate.model):
        return text

    def same(raw: Mapping[str, Any]) -> bool:
        return same_value(replace(_candidate_fields(raw), extra=candidate.extra), candidate)

    return write_fields(_candidate_canonical(candidate), candidate.extra, CANDIDATE_KEYS, same)


def _read_primary(raw: Mapping[str, Any]) -> CandidateSpec:
    # The provider and model of the first candidate are fields of the route itself; its parameters are in `primary`.
    named = {key: raw[key] for key in ("provider", "model") if raw.get(key)}
    return read_candidate({**(raw.get("primary") or {}), **named}, ())


def _write_primary(candidate: CandidateSpec) -> dict[str, Any]:
    entry = write_candidate(candidate, ())
    parts = {} if isinstance(entry, str) else entry
    return {key: item for key, item in parts.items() if key not in ("provider", "model")}


def _candidate_fields(raw: Mapping[str, Any]) -> CandidateSpec:
    return CandidateSpec(
        provider=raw["provider"],
        model=raw.get("model") or None,
        temperature=plain_number(raw.get("temperature")),
        max_tokens=plain_number(raw.get("maxTokens")),
        extra_body=raw.get("extraBody") or {},
    )


def _candidate_canonical(candidate: CandidateSpec) -> dict[str, Any]:
    return {"provider": candidate.provider} | drop_absent(
        {
            "model": candidate.model,
            "temperature": plain_number(candidate.temperature),
            "maxTokens": plain_number(candidate.max_tokens),
            "extraBody": candidate.extra_body or None,
        }
    )
