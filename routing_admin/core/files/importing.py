"""Merge files into a configuration: return the result, the keys in the files, and every problem.

This module stores nothing; its caller shows the changes and applies them. A single error leaves the configuration
unchanged (MMR-E3). Keys from files are returned in `keys`, by provider, never inside the configuration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from itertools import islice
from typing import Any

from capabilities.core.problems import MAX_PROBLEMS, Problem
from capabilities.core.providers.environment import key_variable
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.removals import broken_references
from routing_admin.core.configuration.specs import Configuration, KeyKind, ProviderSpec, RouteSpec
from routing_admin.core.documents.json_path import child, read_document
from routing_admin.core.documents.kept_fields import merge_items
from routing_admin.core.documents.problem_sentences import errors
from routing_admin.core.files.endpoints import address_problems, same_origin, without_foreign_base_urls
from routing_admin.core.files.keys import NOWHERE, Fingerprint, KeyContext, further_keys_from_file, key_from_file
from routing_admin.core.files.llm_routing import (
    CANDIDATE_KEYS,
    KEY_KEYS,
    PROVIDER_KEYS,
    ROOT_KEYS,
    ROUTE_KEYS,
    list_variables,
    read_provider,
    read_route,
)
from routing_admin.core.files.llm_routing_checks import LANGUAGES, NO_NAMES, ExistingNames, validate
from routing_admin.core.files.llmservices import SERVICE_KEYS, validate_services
from routing_admin.core.files.own_sections import languages_in, lost_aliases, merge_own_sections
from routing_admin.core.files.provider_matching import merge_services


class FileFormat(StrEnum):
    ROUTING = "llm-routing"
    SERVICES = "llmservices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Result of an import; `configuration` is unchanged if `problems` contains an error.

    `keys` maps providers to their first key in plaintext, `further_keys` to their additional keys in plaintext.
    `kept_unknown` lists the paths of unknown fields, which are preserved.
    """

    configuration: Configuration
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    kept_unknown: tuple[str, ...] = ()
    further_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def accepted(self) -> bool:
        return not errors(self.problems)


def sha256(key: str) -> str:
    """Return an unkeyed hash of a key, as the default fingerprint.

    Installations use an HMAC instead.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def detect_format(value: object) -> FileFormat | None:
    """Return the file format of a JSON value, determined from its top-level fields, or None if it has neither."""
    if isinstance(value, Mapping):
        if "providers" in value or "routing" in value:
            return FileFormat.ROUTING
        if "services" in value:
            return FileFormat.SERVICES
    return None


def import_files(
    current: Configuration,
    files: Iterable[bytes | str],
    *,
    prune: bool = False,
    fingerprint: Callable[[str], str] = sha256,
    fingerprint_at: Fingerprint | None = None,
    key_context: KeyContext = NOWHERE,
    languages: Collection[str] = LANGUAGES,
) -> Imported:
    """Import the contents of files in either format; with `prune`, remove everything that the files do not mention."""
    documents = [read_document(data) for data in files]
    unreadable = tuple(problem for document in documents for problem in document.problems)
    values = [document.value for document in documents if document.readable]
    outcome = import_values(
        current,
        values,
        prune=prune,
        fingerprint=fingerprint,
        fingerprint_at=fingerprint_at,
        key_context=key_context,
        languages=languages,
    )
    if not unreadable:
        return outcome
    return Imported(
        configuration=current, keys={}, problems=unreadable + outcome.problems, kept_unknown=outcome.kept_unknown
    )


def import_values(
    current: Configuration,
    values: Iterable[Any],
    *,
    prune: bool = False,
    fingerprint: Callable[[str], str] = sha256,
    fingerprint_at: Fingerprint | None = None,
    key_context: KeyContext = NOWHERE,
    languages: Collection[str] = LANGUAGES,
) -> Imported:
    """Import parsed JSON values in the same way as `import_files`.

    `fingerprint_at(key, endpoint)` takes precedence over `fingerprint`, because the fingerprint of a stored key depends
    on the provider's origin.
    """
    mark = fingerprint_at or (lambda key, _endpoint: fingerprint(key))
    # Import files with providers first, so that providers exist when services refer to them.
    sorted_values = sorted(values, key=_import_order)
    current_codes = (language.code for language in current.languages)
    # A file may use languages that another file in the same import adds.
    known = (*languages, *current_codes, *(code for value in sorted_values for code in languages_in(value)))
    # With pruning, files may refer only to each other, because everything that they do not mention will be removed.
    context, existing = (
        with_stored_keys(current, key_context),
        _existing_names(Configuration() if prune else current, sorted_values),
    )
    all_problems = (item for value in sorted_values for item in find_problems(value, context, known, existing))
    problems = _first_problems(all_problems)
    unknown = tuple(path for value in sorted_values for path in unknown_fields(value))
    if errors(problems):
        return Imported(configuration=current, keys={}, problems=tuple(problems), kept_unknown=unknown)
    result, keys, further_keys = current, dict[str, str](), dict[str, tuple[str, ...]]()
    listed: set[str] = set()
    for value in sorted_values:
        if detect_format(value) is FileFormat.ROUTING:
            result, new_keys, new_further_keys = merge_routing(result, value, prune, mark)
            further_keys |= new_further_keys
            listed |= {raw["providerName"] for raw in value.get("providers") or ()}
        else:
            result, new_keys = merge_services(result, value, prune, mark, listed)
            problems += address_problems(result, value)
        keys |= new_keys
    result = without_foreign_base_urls(result)
    problems += [*broken_references(result), *lost_aliases(result, sorted_values)]
    if errors(problems):
        return Imported(configuration=current, keys={}, problems=tuple(problems), kept_unknown=unknown)
    # Drop keys whose provider was pruned.
    remaining_keys = {name: key for name, key in keys.items() if result.provider(name)}
    return Imported(
        configuration=result,
        keys=remaining_keys,
        problems=tuple(problems),
        kept_unknown=unknown,
        further_keys=further_keys,
    )


def _first_problems(problems: Iterable[Problem]) -> list[Problem]:
    # If there are very many problems, report only the first ones, and an error that says so.
    first = list(islice(problems, MAX_PROBLEMS))
    if len(first) == MAX_PROBLEMS:
        first.append(
            Problem("", translatable("There are more problems than are looked for. Put these right first."), "range")
        )
    return first


def _import_order(value: object) -> int:
    # Import files with providers first, then files that contain only routes, and files with services last.
    if detect_format(value) is not FileFormat.ROUTING:
        return 2
    return 0 if isinstance(value, Mapping) and "providers" in value else 1


def _existing_names(current: Configuration, values: Collection[Any]) -> ExistingNames:
    stored = ExistingNames(
        {provider.name: provider.env_name or None for provider in current.providers},
        frozenset(route.task_type for route in current.routes),
        may_have_no_route=True,
    )
    routings = [value for value in values if detect_format(value) is FileFormat.ROUTING]
    return reduce(ExistingNames.with_names_in, routings, stored) if len(routings) > 1 else stored


def find_problems(
    value: object,
    key_context: KeyContext = NOWHERE,
    languages: Collection[str] = LANGUAGES,
    existing: ExistingNames = NO_NAMES,
) -> list[Problem]:
    """Return every problem in a file's JSON value; `existing` are the names to which the file may refer."""
    match detect_format(value):
        case FileFormat.ROUTING:
            return validate(value, languages=languages, key_context=key_context, existing=existing)
        case FileFormat.SERVICES:
            return validate_services(value, key_context=key_context)
    message = translatable(
        "This is neither file: llm-routing.json has providers and routing, llmservices.json has services."
    )
    return [Problem("", message, "type")]


def with_stored_keys(configuration: Configuration, key_context: KeyContext) -> KeyContext:
    """Return the context with a placeholder value for the environment variable of each stored key.

    Without these values, the stored keys would be reported as missing.
    """
    if key_context.env is None:
        return key_context
    variables = {
        variable: "stored"
        for provider in configuration.providers
        for key, variable in zip(provider.keys, list_variables(provider), strict=True)
        if key.kind is KeyKind.STORED
    }
    return replace(key_context, env={**variables, **{name: item for name, item in key_context.env.items() if item}})


def unknown_fields(value: object) -> Iterator[str]:
    """Yield the paths of unknown fields, which are preserved."""
    if not isinstance(value, Mapping):
        return
    kind = detect_format(value)
    yield from _unknown("", value, ROOT_KEYS if kind is FileFormat.ROUTING else ("services",))
    if kind is FileFormat.SERVICES:
        yield from _unknown_in_list("services", value["services"], SERVICE_KEYS)
        return
    yield from _unknown_in_list("providers", value.get("providers"), PROVIDER_KEYS)
    routing = value.get("routing")
    for task_type, entry in routing.items() if isinstance(routing, Mapping) else ():
        path = child("routing", task_type)
        yield from _unknown(path, entry, ROUTE_KEYS)
        if isinstance(entry, Mapping):
            yield from _unknown(f"{path}.primary", entry.get("primary"), CANDIDATE_KEYS)
            yield from _unknown_in_list(f"{path}.fallback", entry.get("fallback"), CANDIDATE_KEYS)


def _unknown(path: str, value: object, fields: Collection[str]) -> Iterator[str]:
    keys = value if isinstance(value, Mapping) else ()
    return (child(path, key) for key in keys if key not in fields)


def _unknown_in_list(path: str, value: object, fields: Collection[str]) -> Iterator[str]:
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        yield from _unknown(f"{path}[{index}]", entry, fields)


def merge_routing(
    current: Configuration, value: Mapping[str, Any], prune: bool, fingerprint: Fingerprint
) -> tuple[Configuration, dict[str, str], dict[str, tuple[str, ...]]]:
    """Merge a valid `llm-routing.json` into the configuration.

    Return the result, and the keys that the file contains in plain text: each provider's first key, and its additional
    keys.
    """
    keys: dict[str, str] = {}
    further_keys: dict[str, tuple[str, ...]] = {}
    providers: dict[str, ProviderSpec] = {}
    for raw in value.get("providers") or ():
        old = current.provider(raw["providerName"])
        # Reuse a stored key only if the endpoint's origin is unchanged, so that the key is never sent to another host.
        unmoved = old if old and same_origin(old.endpoint, raw["endpoint"]) else None
        variable = key_variable(raw["providerName"], raw.get("envName"))
        key, plaintext = key_from_file(
            raw["apiKey"], raw["endpoint"], variable, unmoved.key if unmoved else None, fingerprint
        )
        if plaintext is not None:
            keys[raw["providerName"]] = plaintext
        existing_keys = unmoved.more_keys if unmoved else ()
        # If a file without `keys` is merged, such as a file of the original programs, the additional keys stay
        # unchanged.
        if "keys" not in raw and not prune:
            more_keys = existing_keys
        else:
            more_keys, plaintexts = further_keys_from_file(
                raw.get("keys") or (), raw["endpoint"], variable, existing_keys, fingerprint
            )
            further_keys[raw["providerName"]] = plaintexts
        provider = read_provider(raw, key, more_keys)
        if unmoved and more_keys and not prune and not raw.keys() & set(KEY_KEYS):
            own = replace(provider.key, name=unmoved.key.name, enabled=unmoved.key.enabled)
            provider = replace(provider, key=own)
        providers[raw["providerName"]] = provider
    names = providers.keys() if prune else {*providers, *(provider.name for provider in current.providers)}
    routes = {name: read_route(name, raw, names) for name, raw in (value.get("routing") or {}).items()}
    return (
        replace(
            merge_own_sections(current, value, prune),
            providers=_prune(current, providers) if prune else merge_items(current.providers, providers, _name),
            routes=tuple(routes.values()) if prune else merge_items(current.routes, routes, _task_type),
            default_language=value.get("defaultLanguage") or (None if prune else current.default_language),
            content_policy=value.get("contentPolicy") or (None if prune else current.content_policy),
            content_text=value.get("contentText") or (None if prune else current.content_text),
            content_html=value.get("contentHtml") or (None if prune else current.content_html),
            extra_routing=({} if prune else dict(current.extra_routing)) | _root_extra(value),
        ),
        keys,
        further_keys,
    )


def _root_extra(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in ROOT_KEYS}


def _name(provider: ProviderSpec) -> str:
    return provider.name


def _task_type(route: RouteSpec) -> str:
    return route.task_type


def _prune(current: Configuration, mentioned: Mapping[str, ProviderSpec]) -> tuple[ProviderSpec, ...]:
    # List the providers in the file first, then the other providers that services still use.
    used = {service.provider for service in current.services} - mentioned.keys()
    rest = (replace(item, in_routing_file=False) for item in current.providers if item.name in used)
    return (*mentioned.values(), *rest)
