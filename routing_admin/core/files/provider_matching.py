"""Where services meet providers: each distinct base URL and key of `llmservices.json` is one provider (decision 9).

Stable from import to import: a provider with that base and that key is used before one that the same services had,
and that before a new one. The new one is named after its host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.providers.environment import KeyNotation, form_of, key_variable, referenced_variable
from capabilities.core.providers.presets import protocol_of
from routing_admin.core.configuration.specs import NO_KEY, Configuration, KeyKind, ProviderSpec, ServiceSpec
from routing_admin.core.documents.kept_fields import merge_items
from routing_admin.core.files.endpoints import base_of, provider_name
from routing_admin.core.files.keys import Fingerprint, key_from_file
from routing_admin.core.files.llm_routing import key_text
from routing_admin.core.files.llmservices import read_service


@dataclass(frozen=True, slots=True)
class KeyedAddress:
    """One base URL with one key: `mark` is the variable's name or the fingerprint, never the key."""

    base: str
    form: KeyNotation
    mark: str = ""


def place_of(raw: Mapping[str, Any], fingerprint: Fingerprint) -> KeyedAddress:
    """Where a service of the file is; all placeholders and masks are one unknown key."""
    text, base = raw["apiKey"], base_of(raw["baseURL"])
    form = form_of(text)
    if form is KeyNotation.LITERAL:
        return KeyedAddress(base, form, fingerprint(text, raw["baseURL"]))
    if form is KeyNotation.REFERENCE:
        return KeyedAddress(base, form, referenced_variable(text) or "")
    return KeyedAddress(base, KeyNotation.PLACEHOLDER if form is KeyNotation.MASKED else form)


def merge_services(
    current: Configuration, value: Mapping[str, Any], prune: bool, fingerprint: Fingerprint
) -> tuple[Configuration, dict[str, str]]:
    """The configuration after a valid `llmservices.json`, and the keys that stood in it."""
    groups: dict[KeyedAddress, list[Mapping[str, Any]]] = {}
    for raw in value["services"]:
        groups.setdefault(place_of(raw, fingerprint), []).append(raw)
    names = _names(current, groups)
    providers = {provider.name: provider for provider in current.providers}
    keys: dict[str, str] = {}
    for place, entries in groups.items():
        name = names[place]
        old = providers.get(name) or _new_provider(name, entries[0])
        held = current.provider(name)
        variable = key_variable(name, old.env_name)
        key, plaintext = key_from_file(
            entries[0]["apiKey"], old.endpoint, variable, held.key if held else None, fingerprint
        )
        providers[name] = old if held and _matches(held, place) else replace(old, key=key)
        if plaintext is not None:
            keys[name] = plaintext
    found = {raw["id"]: _service(raw, providers[names[place_of(raw, fingerprint)]]) for raw in value["services"]}
    services = tuple(found.values()) if prune else merge_items(current.services, found, _id)
    extra = {key: item for key, item in value.items() if key != "services"}
    result = replace(
        current,
        providers=tuple(providers.values()),
        services=services,
        extra_services=({} if prune else dict(current.extra_services)) | extra,
    )
    return (drop_orphans(result) if prune else result), keys


def drop_orphans(configuration: Configuration) -> Configuration:
    """The configuration without providers that only services brought in and that nothing uses any more."""
    used = {service.provider for service in configuration.services}
    used |= {candidate.provider for route in configuration.routes for candidate in route.candidates}
    kept = tuple(item for item in configuration.providers if item.in_routing_file or item.name in used)
    return replace(configuration, providers=kept)


def _id(service: ServiceSpec) -> str:
    return service.id


def _service(raw: Mapping[str, Any], provider: ProviderSpec) -> ServiceSpec:
    return read_service(raw, provider.name, key_text(provider))


def _new_provider(name: str, raw: Mapping[str, Any]) -> ProviderSpec:
    url = raw["baseURL"]
    return ProviderSpec(name, url, raw["model"], protocol_of(url), NO_KEY, in_routing_file=False)


def _names(current: Configuration, groups: Mapping[KeyedAddress, list[Mapping[str, Any]]]) -> dict[KeyedAddress, str]:
    names: dict[KeyedAddress, str] = {}
    for find in (_find_by_key, _find_former, _find_by_stored_key):
        for place, entries in groups.items():
            found = None if place in names else find(current, place, entries, set(names.values()))
            if found:
                names[place] = found
    taken = {provider.name for provider in current.providers} | set(names.values())
    for place, entries in groups.items():
        if place not in names:
            names[place] = provider_name(entries[0]["baseURL"], taken)
            taken.add(names[place])
    return {place: names[place] for place in groups}


def _matches(provider: ProviderSpec, place: KeyedAddress) -> bool:
    """Whether the provider has exactly that base and that key."""
    if base_of(provider.endpoint) != place.base:
        return False
    key, own = provider.key, key_variable(provider.name, provider.env_name)
    return {
        KeyNotation.LITERAL: key.kind is KeyKind.STORED and key.fingerprint == place.mark,
        KeyNotation.REFERENCE: (key.kind is KeyKind.ENV and key.variable == place.mark)
        or (key.kind is KeyKind.STORED and place.mark == own),
        KeyNotation.PLACEHOLDER: key.kind is KeyKind.ENV and key.variable == own,
        KeyNotation.NOT_NEEDED: key.kind is KeyKind.NONE,
    }.get(place.form, False)


def _find_by_key(
    current: Configuration, place: KeyedAddress, entries: list[Mapping[str, Any]], names: set[str]
) -> str | None:
    before = _providers_before(current, entries)
    found = [item.name for item in current.providers if item.name not in names and _matches(item, place)]
    return next((name for name in before if name in found), found[0] if found else None)


def _find_former(
    current: Configuration, place: KeyedAddress, entries: list[Mapping[str, Any]], names: set[str]
) -> str | None:
    """The provider that one of these services had at the same base: its key has changed, or is kept."""
    for name in _providers_before(current, entries):
        provider = current.provider(name)
        if provider and name not in names and base_of(provider.endpoint) == place.base:
            return name
    return None


def _find_by_stored_key(
    current: Configuration, place: KeyedAddress, entries: list[Mapping[str, Any]], names: set[str]
) -> str | None:
    """For an entry whose key is only a placeholder: a provider there that has a key already."""
    if place.form is not KeyNotation.PLACEHOLDER:
        return None
    stored = (item for item in current.providers if item.key.kind is KeyKind.STORED and item.name not in names)
    return next((item.name for item in stored if base_of(item.endpoint) == place.base), None)


def _providers_before(current: Configuration, entries: list[Mapping[str, Any]]) -> list[str]:
    ids = {raw["id"] for raw in entries}
    return list(dict.fromkeys(service.provider for service in current.services if service.id in ids))
