"""Match services with providers: by the provider's name, otherwise by base URL and key.

The first choice is a provider with the same base URL and key. The second choice is the provider that the same services
used before; the last is a new provider, named after the host. This way, repeating an import gives the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.providers.environment import KeyNotation, classify_key, key_variable, referenced_variable
from capabilities.core.providers.presets import endpoint_protocol
from routing_admin.core.configuration.as_json import same_value
from routing_admin.core.configuration.specs import EMPTY, NO_KEY, Configuration, KeyKind, ProviderSpec, ServiceSpec
from routing_admin.core.documents.kept_fields import merge_items
from routing_admin.core.files.endpoints import base_url, provider_name, service_base_url
from routing_admin.core.files.keys import Fingerprint, key_from_file
from routing_admin.core.files.llm_routing import key_text, list_variables
from routing_admin.core.files.llmservices import read_service


@dataclass(frozen=True, slots=True)
class KeyedAddress:
    """A base URL, and the name of a key's variable or the key's fingerprint, but never the key itself."""

    base: str
    form: KeyNotation
    mark: str = ""


def keyed_address(raw: Mapping[str, Any], fingerprint: Fingerprint) -> KeyedAddress:
    """Return the base URL and the key's variable or fingerprint.

    All placeholders and masks count as the same unknown key.
    """
    text, base = raw["apiKey"], base_url(raw["baseURL"])
    form = classify_key(text)
    if form is KeyNotation.LITERAL:
        return KeyedAddress(base, form, fingerprint(text, raw["baseURL"]))
    if form is KeyNotation.REFERENCE:
        return KeyedAddress(base, form, referenced_variable(text) or "")
    return KeyedAddress(base, KeyNotation.PLACEHOLDER if form is KeyNotation.MASKED else form)


def merge_services(
    current: Configuration,
    value: Mapping[str, Any],
    prune: bool,
    fingerprint: Fingerprint,
    keep: Collection[str] = (),
) -> tuple[Configuration, dict[str, str]]:
    """Merge a valid `llmservices.json`; return the configuration and the keys in the file.

    `keep` names providers that pruning must not remove.
    """
    groups: dict[KeyedAddress | str, list[Mapping[str, Any]]] = {}
    for raw in value["services"]:
        groups.setdefault(raw.get("providerName") or keyed_address(raw, fingerprint), []).append(raw)
    names = _names(current, {address: found for address, found in groups.items() if isinstance(address, KeyedAddress)})
    providers = {provider.name: provider for provider in current.providers}
    keys: dict[str, str] = {}
    found: dict[str, ServiceSpec] = {}
    for address, entries in groups.items():
        name = address if isinstance(address, str) else names[address]
        providers[name], plaintext = _provider_at(address, name, entries[0], current, fingerprint)
        if plaintext is not None:
            keys[name] = plaintext
        found |= {raw["id"]: read_service(raw, providers[name], current.service(raw["id"])) for raw in entries}
    # Grouping has changed the order of the services, so restore the order of the file.
    found = {raw["id"]: found[raw["id"]] for raw in value["services"]}
    result = replace(
        current,
        providers=tuple(providers.values()),
        services=tuple(found.values()) if prune else merge_items(current.services, found, _id),
        extra_services=({} if prune else dict(current.extra_services))
        | {key: item for key, item in value.items() if key != "services"},
    )
    return (drop_orphans(result, keep) if prune else result), keys


def _provider_at(
    address: KeyedAddress | str, name: str, raw: Mapping[str, Any], current: Configuration, fingerprint: Fingerprint
) -> tuple[ProviderSpec, str | None]:
    existing = current.provider(name)
    old = existing or _new_provider(name, raw)
    is_known = (
        # If an entry names an existing provider, that provider changes only if the entry contains another key.
        _matches(old, address)
        if isinstance(address, KeyedAddress)
        else classify_key(raw["apiKey"]) != KeyNotation.LITERAL
    )
    variable = key_variable(name, old.env_name)
    key, plaintext = key_from_file(
        raw["apiKey"], old.endpoint, variable, existing.key if existing else None, fingerprint
    )
    if existing and is_known:
        return existing, plaintext
    return replace(old, key=replace(key, name=old.key.name, enabled=old.key.enabled)), plaintext


def drop_orphans(configuration: Configuration, keep: Collection[str] = ()) -> Configuration:
    """Return the configuration without unused providers that were created for services."""
    used = set(keep) | {service.provider for service in configuration.services}
    used |= {candidate.provider for route in configuration.routes for candidate in route.candidates}
    rest = tuple(item for item in configuration.providers if item.in_routing_file or item.name in used)
    return replace(configuration, providers=rest)


def _id(service: ServiceSpec) -> str:
    return service.id


def _new_provider(name: str, raw: Mapping[str, Any]) -> ProviderSpec:
    url = raw["baseURL"]
    return ProviderSpec(name, url, raw["model"], endpoint_protocol(url), NO_KEY, in_routing_file=False)


def _names(current: Configuration, groups: Mapping[KeyedAddress, list[Mapping[str, Any]]]) -> dict[KeyedAddress, str]:
    names: dict[KeyedAddress, str] = {}
    # Find the exact matches of all groups first, so that a weaker match cannot claim a provider that another group
    # matches exactly.
    for find in (_find_by_key, _find_previous, _find_by_stored_key):
        for address, entries in groups.items():
            found = None if address in names else find(current, address, entries, set(names.values()))
            if found:
                names[address] = found
    taken = {provider.name for provider in current.providers} | set(names.values())
    for address, entries in groups.items():
        if address not in names:
            names[address] = provider_name(entries[0]["baseURL"], taken)
            taken.add(names[address])
    return {address: names[address] for address in groups}


def _matches(provider: ProviderSpec, address: KeyedAddress) -> bool:
    if base_url(provider.endpoint) != address.base:
        return False
    key, own = provider.key, key_variable(provider.name, provider.env_name)
    return {
        KeyNotation.LITERAL: key.kind is KeyKind.STORED and key.fingerprint == address.mark,
        KeyNotation.REFERENCE: (key.kind is KeyKind.ENV and key.variable == address.mark)
        # In exports, a stored key is written as a reference to its provider's variable.
        or (key.kind is KeyKind.STORED and address.mark == own),
        KeyNotation.PLACEHOLDER: key.kind is KeyKind.ENV and key.variable == own,
        KeyNotation.NOT_NEEDED: key.kind is KeyKind.NONE,
    }.get(address.form, False)


def _find_by_key(
    current: Configuration, address: KeyedAddress, entries: list[Mapping[str, Any]], names: set[str]
) -> str | None:
    before = _providers_before(current, entries)
    found = [item.name for item in current.providers if item.name not in names and _matches(item, address)]
    return next((name for name in before if name in found), found[0] if found else None)


def _find_previous(
    current: Configuration, address: KeyedAddress, entries: list[Mapping[str, Any]], names: set[str]
) -> str | None:
    """Return the provider at this base URL that one of these services used before; its key may have changed."""
    for name in _providers_before(current, entries):
        provider = current.provider(name)
        if provider and name not in names and base_url(provider.endpoint) == address.base:
            return name
    return None


def _find_by_stored_key(
    current: Configuration, address: KeyedAddress, entries: list[Mapping[str, Any]], names: set[str]
) -> str | None:
    """Return a provider with a stored key at the same base URL, for an entry whose key is only a placeholder."""
    if address.form is not KeyNotation.PLACEHOLDER:
        return None
    stored = (item for item in current.providers if item.key.kind is KeyKind.STORED and item.name not in names)
    return next((item.name for item in stored if base_url(item.endpoint) == address.base), None)


def _providers_before(current: Configuration, entries: list[Mapping[str, Any]]) -> list[str]:
    ids = {raw["id"] for raw in entries}
    return list(dict.fromkeys(service.provider for service in current.services if service.id in ids))


# An import of an export must recognise every provider and service. The original programs identify a service's provider
# only by base URL and key. Where that is not sufficient (two providers at one base URL, or settings that no service's
# entry contains), exports name the provider.


@dataclass(frozen=True, slots=True)
class WrittenIdentity:
    """The providers that an export must list, and the providers that its services must refer to by name."""

    providers: tuple[ProviderSpec, ...]
    with_names: frozenset[str] = frozenset()


def written_identity(configuration: Configuration) -> WrittenIdentity:
    """Return the minimum that an export must contain for an import to restore every provider and service.

    If base URLs and keys do not identify the providers uniquely, list all of them, and name the provider in each
    service whose provider is ambiguous.
    """
    used = {candidate.provider for route in configuration.routes for candidate in route.candidates}
    listed = tuple(item for item in configuration.providers if item.in_routing_file or item.name in used)
    if _are_distinct(configuration, listed):
        return WrittenIdentity(listed)
    counts = Counter((base_url(provider.endpoint), key_text(provider)) for provider in configuration.providers)
    twins = (
        provider.name
        for provider in configuration.providers
        if counts[base_url(provider.endpoint), key_text(provider)] > 1
    )
    return WrittenIdentity(configuration.providers, frozenset(twins))


def _are_distinct(configuration: Configuration, providers: tuple[ProviderSpec, ...]) -> bool:
    # Import the services without provider names, together with these providers, and compare the result.
    start = without_stored_keys(replace(EMPTY, providers=providers))
    value = {"services": [write_bare(service, configuration) for service in configuration.services]}
    made, _ = merge_services(start, value, False, lambda key, _endpoint: key)
    owners = [service.provider for service in configuration.services]
    return owners == [service.provider for service in made.services] and same_value(
        without_stored_keys(configuration).providers, made.providers
    )


def without_stored_keys(configuration: Configuration) -> Configuration:
    """Return the configuration as an installation without the stored keys would import it."""
    return replace(configuration, providers=tuple(map(_as_imported, configuration.providers)))


def _as_imported(provider: ProviderSpec) -> ProviderSpec:
    keys = (
        replace(key, kind=KeyKind.ENV, variable=key.variable or variable, fingerprint="", token="")
        if key.kind is KeyKind.STORED
        else key
        for key, variable in zip((provider.key, *provider.more_keys), list_variables(provider), strict=True)
    )
    first, *rest = keys
    return replace(provider, key=first, more_keys=tuple(rest))


def write_bare(service: ServiceSpec, configuration: Configuration) -> dict[str, Any]:
    """Return the fields of a service's entry that identify its provider, with placeholders for the other fields."""
    provider = configuration.provider(service.provider)
    assert provider is not None  # noqa: S101 - checked with every change
    names = {"id": service.id, "name": service.name, "model": service.model, "description": "", "capabilityTags": []}
    return {**names, "baseURL": service_base_url(service, provider), "apiKey": key_text(provider)}
