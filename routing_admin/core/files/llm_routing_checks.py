"""Check `llm-routing.json`: accept any JSON value, and return all problems instead of raising (MMR-P3, MMR-P4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from capabilities.core.delivery.reader import HTML_FORMS, POLICY_WORDS
from capabilities.core.problems import Problem
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.environment import FIRST_KEY, find_overrides
from capabilities.core.providers.origins import DEFAULT_PROXY
from capabilities.core.storable import is_storable, unreadable_text
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import NO_DIRECTIVE, REFUSE, SKIP
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import (
    dropped_field,
    duplicate_name,
    errors,
    invalid_choice,
    missing_field,
    no_override,
    repeated,
    unknown_provider,
    wrong_type,
)
from routing_admin.core.files import field_rules as rule
from routing_admin.core.files.field_rules import Rule, broken
from routing_admin.core.files.keys import NOWHERE, KeyContext, key_warnings
from routing_admin.core.files.llm_routing import resolve_candidate
from routing_admin.core.files.own_sections import OWN_RULES, languages_in

LANGUAGES = ("en", "zh")

PROVIDER_RULES = (
    Rule("providerName", rule.filled, required=True),
    Rule("apiKey", rule.key, required=True),
    Rule("endpoint", rule.url, required=True),
    Rule("defaultModel", rule.filled, required=True),
    Rule("displayName", rule.text),
    Rule("protocol", rule.choice(tuple(PROTOCOLS))),
    Rule("enabled", rule.flag),
    Rule("envName", rule.text),
    Rule("quirks", rule.quirks),
    Rule("timeouts", rule.seconds_table),
    Rule("proxy", rule.proxy),
    Rule("vendorTools", rule.filled_texts),
    Rule("fromServices", rule.flag),
    Rule("keyName", rule.key_name),
    Rule("keyEnabled", rule.flag),
    Rule("keys", rule.listing),
)
FURTHER_KEY_RULES = (
    Rule("name", rule.key_name),
    Rule("apiKey", rule.key, required=True),
    Rule("enabled", rule.flag),
)
KEY_FIELDS = frozenset(key_rule.key for key_rule in FURTHER_KEY_RULES)
PARAMETER_RULES = (
    Rule("temperature", rule.temperature),
    Rule("maxTokens", rule.max_tokens),
    Rule("extraBody", rule.mapping),
)
CANDIDATE_RULES = (
    Rule("provider", rule.filled, required=True),
    Rule("model", rule.text),
    *PARAMETER_RULES,
)


def _primary(path: str, value: Any) -> Iterator[Problem]:
    yield from rule.mapping(path, value)
    if isinstance(value, Mapping):
        yield from broken(PARAMETER_RULES, value, path)
        # The provider and model of the first candidate are fields of the route itself.
        for key in ("provider", "model"):
            if key in value:
                message = translatable("%(path)s belongs into the route itself. Move it there.", path=child(path, key))
                yield Problem(child(path, key), message, "range")


ROUTE_RULES = (
    *CANDIDATE_RULES[:4],
    Rule("primary", _primary),
    Rule("fallback", rule.listing),
    Rule("onError", rule.on_error),
    Rule("retries", rule.retries),
    Rule("deadline", rule.deadline),
    Rule("content", rule.content),
    Rule("onDrop", rule.choice(("drop", REFUSE))),
    Rule("onOverflow", rule.choice(("send", SKIP))),
    Rule("directive", rule.choice(("language", NO_DIRECTIVE))),
    Rule("allowN", rule.flag),
    Rule("keepAliveSeconds", rule.keep_alive),
    Rule("enabled", rule.flag),
)


@dataclass(frozen=True, slots=True)
class ExistingNames:
    """Names in the configuration that a file will be merged into: providers with their `envName`, and task types.

    With `may_have_no_route`, a configuration without routes is valid.
    """

    providers: Mapping[str, str | None] = field(default_factory=dict)
    task_types: frozenset[str] = frozenset()
    may_have_no_route: bool = False

    def with_names_in(self, value: object) -> ExistingNames:
        """Return these names together with those of the providers and task types in another file."""
        if not isinstance(value, Mapping):
            return self
        routing = value.get("routing")
        task_types = frozenset(routing) if isinstance(routing, Mapping) else frozenset()
        known = {**dict.fromkeys(_names(value)), **self.providers}
        return replace(self, providers=known, task_types=self.task_types | task_types)


NO_NAMES = ExistingNames()
CONTENT_RULES = (
    Rule("contentPolicy", rule.choice(POLICY_WORDS)),
    Rule("contentText", rule.text_limit),
    Rule("contentHtml", rule.choice(HTML_FORMS)),
)


def validate(
    value: object,
    *,
    languages: Collection[str] = LANGUAGES,
    key_context: KeyContext = NOWHERE,
    existing: ExistingNames = NO_NAMES,
) -> list[Problem]:
    """Return every problem in a parsed `llm-routing.json`; `languages` are codes of languages that have a directive.

    A file need not repeat what is in `existing`, so it may consist of a single route.
    """
    if not isinstance(value, Mapping):
        return [Problem("", translatable("The file must contain an object with providers and routing."), "type")]
    return [
        *_providers(value, key_context, existing),
        *_routing(value, _names(value) | existing.providers.keys(), existing),
        *_default_language(value, (*languages, *languages_in(value))),
        *broken((*CONTENT_RULES, *OWN_RULES), value, ""),
    ]


def _names(value: Mapping[str, Any]) -> frozenset[str]:
    providers = value.get("providers")
    entries = providers if isinstance(providers, list) else []
    names = (entry.get("providerName") for entry in entries if isinstance(entry, Mapping))
    return frozenset(name for name in names if isinstance(name, str))


def _providers(value: Mapping[str, Any], key_context: KeyContext, existing: ExistingNames) -> Iterator[Problem]:
    yield from broken((Rule("providers", rule.listing, required=not existing.providers),), value, "")
    found = value.get("providers")
    name_paths: dict[str, str] = {}
    env_names: dict[str, str | None] = {}
    for index, entry in enumerate(found if isinstance(found, list) else []):
        path = f"providers[{index}]"
        if not isinstance(entry, Mapping):
            yield wrong_type(path, translatable("an object"))
            continue
        problems = [*broken(PROVIDER_RULES, entry, path), *_further_keys(f"{path}.keys", entry, key_context)]
        yield from problems
        name = entry.get("providerName")
        if isinstance(name, str) and name in name_paths:
            yield duplicate_name(f"{path}.providerName", "name", name)
        elif isinstance(name, str):
            name_paths[name] = f"{path}.providerName"
            env_names[name] = entry.get("envName") if isinstance(entry.get("envName"), str) else None
        if not errors(problems):
            yield from key_warnings(f"{path}.apiKey", entry["apiKey"], key_context, name, entry.get("envName"))
            yield from key_context.endpoint_warnings(f"{path}.endpoint", entry["endpoint"])
            yield from key_context.proxy_warnings(f"{path}.proxy", entry.get("proxy") or DEFAULT_PROXY)
    yield from _name_problems({**existing.providers, **env_names}, name_paths)


def _further_keys(path: str, entry: Mapping[str, Any], key_context: KeyContext) -> Iterator[Problem]:
    found = entry.get("keys")
    names: list[object] = [entry.get("keyName") or FIRST_KEY]
    for index, item in enumerate(found if isinstance(found, list) else []):
        item_path = f"{path}[{index}]"
        if not isinstance(item, Mapping):
            yield wrong_type(item_path, translatable("an object"))
            continue
        problems = list(broken(FURTHER_KEY_RULES, item, item_path))
        yield from problems
        yield from (dropped_field(child(item_path, key)) for key in item if key not in KEY_FIELDS)
        name = item.get("name") or str(index + 2)
        if name in names:
            yield duplicate_name(f"{item_path}.name", "name", str(name))
        names.append(name)
        if not errors(problems):
            yield from key_warnings(f"{item_path}.apiKey", item["apiKey"], key_context)


def _name_problems(env_names: Mapping[str, str | None], name_paths: Mapping[str, str]) -> Iterator[Problem]:
    found = find_overrides(env_names)
    for name in found.nameless:
        if name in name_paths:
            yield no_override(name_paths[name], [name])
    for names in found.colliding:
        for name in names[1:]:
            if name in name_paths:
                yield no_override(name_paths[name], names)


def _routing(value: Mapping[str, Any], names: Collection[str], existing: ExistingNames) -> Iterator[Problem]:
    yield from broken((Rule("routing", rule.mapping, required=not existing.task_types),), value, "")
    routing = value.get("routing")
    if not isinstance(routing, Mapping):
        return
    is_allowed_empty = existing.may_have_no_route and not routing and not existing.task_types
    if "default" not in routing and "default" not in existing.task_types and not is_allowed_empty:
        yield missing_field("routing.default")
    for task_type, entry in routing.items():
        path = child("routing", task_type)
        if not task_type.strip():
            yield missing_field(path)
        elif not is_storable(task_type):
            yield unreadable_text(path)
        if isinstance(entry, Mapping):
            yield from _route(path, entry, names)
        else:
            yield wrong_type(path, translatable("an object"))


def _route(path: str, entry: Mapping[str, Any], names: Collection[str]) -> Iterator[Problem]:
    yield from broken(ROUTE_RULES, entry, path)
    provider, fallback = entry.get("provider"), entry.get("fallback")
    seen: set[tuple[str, str | None]] = set()
    if isinstance(provider, str) and provider.strip():
        model = entry.get("model")
        seen.add((provider, model if isinstance(model, str) and model else None))
        if provider not in names:
            yield unknown_provider(f"{path}.provider", provider)
    for index, item in enumerate(fallback if isinstance(fallback, list) else []):
        yield from _fallback(f"{path}.fallback[{index}]", item, names, seen)


def _fallback(path: str, item: object, names: Collection[str], pairs: set[tuple[str, str | None]]) -> Iterator[Problem]:
    if isinstance(item, Mapping):
        problems = list(broken(CANDIDATE_RULES, item, path))
        candidate = (item.get("provider"), item.get("model") or None)
        provider_path = f"{path}.provider"
    else:
        problems = list(rule.filled(path, item))
        candidate = resolve_candidate(item, names) if isinstance(item, str) else (None, None)
        provider_path = path
    yield from problems
    if errors(problems) or not isinstance(candidate[0], str):
        return
    known = (candidate[0], candidate[1])
    if known[0] not in names:
        yield unknown_provider(provider_path, known[0])
    elif known in pairs:
        yield repeated(path, "/".join(part for part in known if part))
    pairs.add(known)


def _default_language(value: Mapping[str, Any], languages: Collection[str]) -> Iterator[Problem]:
    if "defaultLanguage" not in value:
        return
    code = value["defaultLanguage"]
    if not isinstance(code, str):
        yield wrong_type("defaultLanguage", translatable("a language code such as en or zh"))
    elif code not in languages and code.split("-")[0].split("_")[0].lower() not in languages:
        yield invalid_choice("defaultLanguage", languages)
