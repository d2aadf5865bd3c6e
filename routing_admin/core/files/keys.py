"""Interpret the key field in a file: decide which key the provider will have after the import."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import (
    KeyNotation,
    classify_key,
    further_variables,
    key_variable,
    may_read,
    read_variable,
    referenced_variable,
)
from capabilities.core.providers.presets import endpoint_protocol
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    NO_KEY,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
)
from routing_admin.core.documents.problem_sentences import forbidden_variable, placeholder, unset_variable

Fingerprint = Callable[[str, str], str]
"""Function that returns the fingerprint of a key for an endpoint. It depends on the key and on the
endpoint's origin.
"""


def key_from_file(
    text: str, endpoint: str, own_variable: str, existing: KeySpec | None, fingerprint: Fingerprint
) -> tuple[KeySpec, str | None]:
    """Return the key that a provider has after an import, and its plaintext if the file contains a new key.

    `existing` is the key that the provider already has for the same origin.
    """
    form = classify_key(text)
    if form is KeyNotation.LITERAL:
        mark = fingerprint(text, endpoint)
        # The file contains the key that is already stored, so there is nothing to encrypt.
        if existing and existing.kind is KeyKind.STORED and existing.fingerprint == mark:
            return existing, None
        return KeySpec(KeyKind.STORED, fingerprint=mark), text
    # Only a different key replaces a stored key; an empty field, a mask, a placeholder or `${…}` does not.
    if existing and existing.kind is KeyKind.STORED:
        return existing, None
    if form is KeyNotation.NOT_NEEDED:
        return NO_KEY, None
    return KeySpec(KeyKind.ENV, referenced_variable(text) or own_variable), None


def further_keys_from_file(
    entries: Sequence[Mapping[str, Any]],
    endpoint: str,
    first_variable: str,
    existing: Sequence[KeySpec],
    fingerprint: Fingerprint,
) -> tuple[tuple[KeySpec, ...], tuple[str, ...]]:
    """Return the additional keys that a provider has after an import, and those that the file contains in plaintext.

    Existing keys are matched by name.
    """
    chosen = (referenced_variable(entry["apiKey"]) or "" for entry in entries)
    by_name, keys, plaintexts = {key.name: key for key in existing}, list[KeySpec](), list[str]()
    for number, (entry, variable) in enumerate(zip(entries, further_variables(first_variable, chosen), strict=True), 2):
        # Unnamed keys are numbered from 2, because the provider's first key is not in this list.
        name = entry.get("name") or str(number)
        key, plaintext = key_from_file(entry["apiKey"], endpoint, variable, by_name.get(name), fingerprint)
        if key.kind is KeyKind.NONE:  # An additional key without a value is read from its environment variable.
            key = KeySpec(KeyKind.ENV, variable)
        keys.append(replace(key, name=name, enabled=entry.get("enabled") is not False))
        plaintexts += [plaintext] if plaintext is not None else []
    return tuple(keys), tuple(plaintexts)


# Warnings about endpoints, and about keys in environment variables.


def never_refused(endpoint: str) -> str | None:
    """Accept every endpoint, because the allowed origins are unknown."""
    return None


@dataclass(frozen=True, slots=True)
class KeyContext:
    """What is known about the environment when keys and endpoints are validated.

    `env` contains the environment variables, or is None if they should not be checked. `allowed` are names of variables
    that may be read in addition to `LLM_PROVIDER_*_API_KEY`. `refusal` and `proxy_refusal` return why an endpoint or a
    proxy may not be used.
    """

    env: Mapping[str, str] | None = None
    allowed: Collection[str] = ()
    refusal: Callable[[str], str | None] = never_refused
    proxy_refusal: Callable[[str], str | None] = never_refused

    def endpoint_warnings(self, path: str, endpoint: str) -> Iterator[Problem]:
        """Yield a warning if this installation does not allow the endpoint."""
        yield from _origin_warning(path, self.refusal(endpoint))

    def proxy_warnings(self, path: str, proxy: str) -> Iterator[Problem]:
        """Yield a warning if this installation does not allow the proxy."""
        yield from _origin_warning(path, self.proxy_refusal(proxy))


def _origin_warning(path: str, sentence: str | None) -> Iterator[Problem]:
    if sentence:
        yield Problem(path, translatable("%(path)s: %(reason)s", path=path, reason=sentence), "enum", "warning")


NOWHERE = KeyContext()


def key_warnings(
    path: str, text: str, key_context: KeyContext, provider: str | None = None, env_name: str | None = None
) -> Iterator[Problem]:
    """Yield a warning if the provider has no key: it is a placeholder, or its variable is forbidden or not set."""
    env = key_context.env or {}
    # In all three cases, the provider's own variable supplies the key if it is set.
    if provider and read_variable(key_variable(provider, env_name), env, key_context.allowed):
        return
    variable = referenced_variable(text)
    if classify_key(text) in (KeyNotation.PLACEHOLDER, KeyNotation.MASKED):
        yield placeholder(path)
    elif variable and not may_read(variable, key_context.allowed):
        yield forbidden_variable(path, variable)
    elif variable and key_context.env is not None and not read_variable(variable, env, key_context.allowed):
        yield unset_variable(path, variable)


OPENAI_URL = "https://api.openai.com/v1/chat/completions"


class MissingConfigurationError(Exception):
    """There is no configuration, and no provider in the environment (MMR-E2); the message names the variable to set."""


def configuration_from_env(env: Mapping[str, str]) -> Configuration:
    """Return a configuration with a provider described by environment variables and a route `default` that uses it.

    The variables are LLM_PROVIDER, LLM_API_KEY, LLM_ENDPOINT and LLM_MODEL. The configuration contains the name of the
    key's variable, not the key. Raise `MissingConfigurationError` if `LLM_API_KEY` is not set.
    """
    if not env.get("LLM_API_KEY"):
        raise MissingConfigurationError(
            "No routing configuration was found and LLM_API_KEY is not set. "
            "Set LLM_ROUTING_CONFIG to a llm-routing.json, or LLM_API_KEY (and LLM_PROVIDER, LLM_ENDPOINT, LLM_MODEL)."
        )
    name, endpoint = env.get("LLM_PROVIDER") or "openai", env.get("LLM_ENDPOINT") or OPENAI_URL
    provider = ProviderSpec(
        name,
        endpoint,
        env.get("LLM_MODEL") or "gpt-4",
        endpoint_protocol(endpoint),
        key=KeySpec(KeyKind.ENV, variable="LLM_API_KEY"),
    )
    return Configuration((provider,), routes=(RouteSpec(DEFAULT_ROUTE, (CandidateSpec(name),)),))
