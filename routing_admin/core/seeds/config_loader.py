"""`ConfigLoader` for the routing file, with the original names in Python spelling (seed 003).

`RoutingConfig` is the file's content, including keys. Unlike `Configuration` in core/configuration/specs.py, it does
not contain everything that is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import find_overrides, read_variable
from routing_admin.core.documents.json_path import read_document, write_document
from routing_admin.core.documents.kept_fields import drop_absent, plain_number
from routing_admin.core.documents.problem_sentences import InvalidConfigurationError, errors
from routing_admin.core.files import llm_routing_checks
from routing_admin.core.files.llm_routing import CANDIDATE_KEYS, PROVIDER_OWN_KEYS, ROUTE_OWN_KEYS

Fallback = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """A provider in the file; `options` contains optional fields that the original program lacks."""

    provider_name: str
    api_key: str = field(repr=False)
    endpoint: str
    default_model: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskRoute:
    """A route in the file; `fallback` lists provider names, `provider/model`, or objects with parameters."""

    provider: str
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    fallback: tuple[Fallback, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """The content of the file: providers, routes by task type, and the default language.

    Without a default language, `en` is used.
    """

    providers: tuple[ProviderConfig, ...]
    routing: Mapping[str, TaskRoute]
    default_language: str | None = None


class ConfigLoader:
    """Load, check and write `llm-routing.json` (seed 003)."""

    @staticmethod
    def load(path: Path | str) -> RoutingConfig | None:
        """Load the file, or return None if it does not exist. Raise `InvalidConfigurationError` (MMR-E3)."""
        file = Path(path)
        return _parse(file.read_bytes(), file.name) if file.is_file() else None

    @staticmethod
    def validate(value: object) -> list[Problem]:
        """Return every problem in a JSON value, or an empty list if it is valid (MMR-P3, MMR-P4)."""
        return llm_routing_checks.validate(value)

    @staticmethod
    def serialize(config: RoutingConfig) -> str:
        """Return the text of the file for a configuration, including its keys."""
        return write_document(_value(config))

    @staticmethod
    def parse(json: str | bytes) -> RoutingConfig:
        """Parse JSON text, ignoring unknown fields (MMR-P2). Raise `InvalidConfigurationError` if it is invalid."""
        return _parse(json, "the configuration")

    @staticmethod
    def apply_env_overrides(config: RoutingConfig, env: Mapping[str, str]) -> RoutingConfig:
        """Replace the key of each provider whose `LLM_PROVIDER_{NAME}_API_KEY` is set and not empty (MMR-E1)."""
        names = {item.provider_name: item.options.get("envName") for item in config.providers}
        keys = {name: read_variable(variable, env) for name, variable in find_overrides(names).variables.items()}
        return replace(
            config,
            providers=tuple(
                # An empty variable does not replace the key in the file.
                replace(item, api_key=keys.get(item.provider_name) or item.api_key)
                for item in config.providers
            ),
        )


def _parse(data: str | bytes, source: str) -> RoutingConfig:
    document = read_document(data)
    problems = document.problems or tuple(llm_routing_checks.validate(document.value))
    if errors(problems):
        raise InvalidConfigurationError(errors(problems), source)
    value = document.value
    return RoutingConfig(
        tuple(_provider(raw) for raw in value["providers"]),
        {task_type: _route(raw) for task_type, raw in value["routing"].items()},
        value.get("defaultLanguage"),
    )


def _options(raw: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: raw[key] for key in keys if raw.get(key) is not None}


def _provider(raw: Mapping[str, Any]) -> ProviderConfig:
    options = _options(raw, PROVIDER_OWN_KEYS)
    return ProviderConfig(
        provider_name=raw["providerName"],
        api_key=raw["apiKey"],
        endpoint=raw["endpoint"],
        default_model=raw["defaultModel"],
        options=options,
    )


def _route(raw: Mapping[str, Any]) -> TaskRoute:
    return TaskRoute(
        provider=raw["provider"],
        model=raw.get("model") or None,
        temperature=plain_number(raw.get("temperature")),
        max_tokens=plain_number(raw.get("maxTokens")),
        fallback=tuple(_fallback(item) for item in raw.get("fallback") or ()),
        options=_options(raw, ROUTE_OWN_KEYS),
    )


def _fallback(item: Fallback) -> Fallback:
    return item if isinstance(item, str) else _options(item, CANDIDATE_KEYS)


def _value(config: RoutingConfig) -> dict[str, Any]:
    return {
        "providers": [_provider_value(item) for item in config.providers],
        "routing": {task_type: _route_value(route) for task_type, route in config.routing.items()},
        **drop_absent({"defaultLanguage": config.default_language}),
    }


def _provider_value(item: ProviderConfig) -> dict[str, Any]:
    return {
        "providerName": item.provider_name,
        "apiKey": item.api_key,
        "endpoint": item.endpoint,
        "defaultModel": item.default_model,
        **item.options,
    }


def _route_value(route: TaskRoute) -> dict[str, Any]:
    seed = {
        "provider": route.provider,
        "model": route.model,
        "temperature": plain_number(route.temperature),
        "maxTokens": plain_number(route.max_tokens),
        "fallback": list(route.fallback) or None,
    }
    return drop_absent(seed) | dict(route.options)
