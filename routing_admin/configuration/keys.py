"""Resolve provider keys: find each key's source, decide which keys are usable, and form key pools from usable keys."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from django.conf import settings

from capabilities.actors import Actor
from capabilities.core.providers.environment import find_overrides, read_variable
from capabilities.core.providers.origins import OriginPolicy, parse_policy, refuse_proxy, refuse_url
from capabilities.core.translatable import translatable
from capabilities.models import StoredKey, VariableOrigin
from capabilities.secrets import KeyUnreadableError, endpoint_origin, key_fingerprint, open_key
from routing_admin.core.configuration.specs import Configuration, KeyKind, KeySpec, ProviderSpec

# Like stored keys, keys in environment variables are bound to an origin (scheme, host and port). It is the origin of
# the provider that first uses the variable.

BINDING_ACTORS = frozenset({"person", "command", "system"})
"""Actors whose first use of a variable binds it: administrators on pages, commands, and the server when it starts.

Agents' keys and tokens are excluded, because their holders could read any variable by adding a provider at a host of
their own.
"""


def read_key_origins() -> Mapping[str, Collection[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for variable, origin in VariableOrigin.objects.order_by("id").values_list("variable", "origin"):
        found[variable].append(origin)
    return found


def bind_first_uses(actor: Actor, before: Configuration, after: Configuration) -> None:
    """Bind each variable that a change uses for the first time to the provider's origin.

    Variables that are already bound keep their origin.
    """
    new = list_variable_origins(after) - list_variable_origins(before)
    if not new:
        return
    known = set(VariableOrigin.objects.values_list("variable", flat=True))
    VariableOrigin.objects.bulk_create(
        VariableOrigin(variable=variable, origin=origin)
        for variable, origin in sorted(new)
        # An unset variable holds no key yet, so any actor may bind it.
        if variable not in known and (actor.kind in BINDING_ACTORS or not os.environ.get(variable))
    )


def list_variable_origins(configuration: Configuration) -> set[tuple[str, str]]:
    """Return each variable that may hold a provider's key, set or not, together with the provider's origin."""
    own = find_overrides({provider.name: provider.env_name for provider in configuration.providers}).variables
    found = set()
    for provider in configuration.providers:
        variables = {key.variable for key in provider.keys if key.kind is KeyKind.ENV} | {own.get(provider.name)}
        found |= {(variable, endpoint_origin(provider.endpoint)) for variable in variables if variable}
    return found


ALLOWED_VARIABLES = ("LLM_API_KEY",)
"""Variables, besides `LLM_PROVIDER_*_API_KEY`, that may hold a provider key."""

KEY_UNSET = translatable("%(name)s has no key: set %(variable)s in the environment, or store a key.")
NO_KEY_ANYWHERE = translatable("%(name)s has no key: store a key.")
KEY_GONE = translatable("%(name)s has no key: enter it again.")
KEY_UNREADABLE = translatable("%(name)s: %(reason)s.")
NONE_ENABLED = translatable("%(name)s has no key that is enabled.")
KEY_BOUND = translatable(
    "%(name)s: the key in %(variable)s is sent to %(known)s only. An administrator can allow %(origin)s on the "
    "provider's page."
)
KEY_UNBOUND = translatable(
    "%(name)s: the key in %(variable)s was never sent to %(origin)s. An administrator can allow it on the provider's "
    "page."
)
"""The templates from `KEY_UNSET` to this one explain why a provider cannot be called."""


class KeyFrom(StrEnum):
    """Source of a provider's key."""

    NOT_NEEDED = "not_needed"
    OVERRIDE = "override"
    ENVIRONMENT = "environment"
    STORED = "stored"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """A provider's resolved key; `reason` says why the provider cannot be called, and is empty if it can be called."""

    source: KeyFrom
    value: str | None = field(default=None, repr=False)
    variable: str = ""
    last_four: str = ""
    reason: str = ""
    unconfirmed: str = ""
    """Origin that may not receive the key in the variable until an administrator allows it, or ""."""

    @property
    def usable(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class NamedKey:
    """One of a provider's resolved keys. `mark` is a digest of the key, or "" if there is no key."""

    name: str
    state: KeyState
    enabled: bool = True
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ProviderKeys:
    """All of a provider's resolved keys.

    If at least two keys are usable, `pool` contains the usable keys. Otherwise `pool` is empty and `first` is used.
    """

    first: KeyState
    every: tuple[NamedKey, ...] = ()
    pool: tuple[NamedKey, ...] = ()


def find_provider_keys(configuration: Configuration) -> dict[str, ProviderKeys]:
    variables = find_overrides({provider.name: provider.env_name for provider in configuration.providers}).variables
    stored = {row.fingerprint: row for row in StoredKey.objects.all()}
    policy, origins = parse_policy(",".join(settings.ALLOWED_ORIGINS)), read_key_origins()
    return {
        provider.name: provider_keys(provider, variables.get(provider.name), stored, origins, policy, os.environ)
        for provider in configuration.providers
    }


def provider_keys(
    provider: ProviderSpec,
    override: str | None,
    stored: Mapping[str, StoredKey],
    origins: Mapping[str, Collection[str]],
    policy: OriginPolicy,
    env: Mapping[str, str],
) -> ProviderKeys:
    """Resolve a provider's keys.

    If the environment variable named `override` is set, its value replaces the first key.
    """
    own_proxy, endpoint = settings.OUTGOING_PROXY, provider.endpoint
    refused = refuse_url(endpoint, policy) or refuse_proxy(provider.proxy, policy, own_proxy, endpoint) or ""
    own = [
        key_state(provider, key, "" if at else override, stored, origins, refused, env)
        for at, key in enumerate(provider.keys)
    ]
    every = tuple(
        NamedKey(key.name, state, key.enabled, _mark(state, provider.endpoint))
        for key, state in zip(provider.keys, own, strict=True)
    )
    enabled = [key for key in every if key.enabled]
    by_mark: dict[str, NamedKey] = {}
    for named_key in enabled:
        if named_key.mark and named_key.state.usable:
            by_mark.setdefault(named_key.mark, named_key)  # Equal keys are counted only once.
    pool = tuple(by_mark.values())
    first = next((key.state for key in (*pool, *enabled)), None)
    if first is None:
        first = replace(
            own[0], source=KeyFrom.MISSING, value=None, reason=translatable(NONE_ENABLED, name=provider.name)
        )
    return ProviderKeys(first, every, pool if len(pool) > 1 else ())


def _mark(state: KeyState, endpoint: str) -> str:
    return key_fingerprint(state.value, endpoint_origin(endpoint))[:16] if state.value else ""


def key_state(
    provider: ProviderSpec,
    key: KeySpec,
    override: str | None,
    stored: Mapping[str, StoredKey],
    origins: Mapping[str, Collection[str]],
    refused: str,
    env: Mapping[str, str],
) -> KeyState:
    """Resolve one key: read the variable named `override` if it is set, otherwise the source that `key` names.

    `refused` says why the provider may not be called, and is empty if it may be called.
    """
    value = read_variable(override, env) if override else None
    if value and override:
        return variable_state(
            provider,
            KeyState(source=KeyFrom.OVERRIDE, value=value, variable=override, last_four=value[-4:], reason=refused),
            origins,
        )
    if key.kind is KeyKind.NONE:
        return KeyState(source=KeyFrom.NOT_NEEDED, reason=refused)
    if key.kind is KeyKind.STORED:
        return stored_key_state(provider, stored.get(key.fingerprint), refused)
    variable = key.variable or override or ""
    value = read_variable(variable, env, allowed=ALLOWED_VARIABLES) if variable else None
    if value:
        return variable_state(
            provider,
            KeyState(source=KeyFrom.ENVIRONMENT, value=value, variable=variable, last_four=value[-4:], reason=refused),
            origins,
        )
    return KeyState(source=KeyFrom.MISSING, value=None, variable=variable, reason=no_key(provider.name, variable))


def variable_state(provider: ProviderSpec, state: KeyState, origins: Mapping[str, Collection[str]]) -> KeyState:
    """Return the key state of an environment variable, without the key if the provider's origin may not receive it."""
    origin, known = endpoint_origin(provider.endpoint), origins.get(state.variable, ())
    if origin in known:
        return state
    facts = {"name": provider.name, "variable": state.variable, "origin": origin}
    reason = translatable(KEY_BOUND, **facts, known=tuple(known)) if known else translatable(KEY_UNBOUND, **facts)
    return KeyState(source=KeyFrom.MISSING, value=None, variable=state.variable, reason=reason, unconfirmed=origin)


def no_key(name: str, variable: str) -> str:
    return (
        translatable(KEY_UNSET, name=name, variable=variable) if variable else translatable(NO_KEY_ANYWHERE, name=name)
    )


def stored_key_state(provider: ProviderSpec, row: StoredKey | None, refused: str) -> KeyState:
    if row is None:
        return KeyState(source=KeyFrom.MISSING, reason=translatable(KEY_GONE, name=provider.name))
    try:
        value = open_key(row, provider.endpoint)
    except KeyUnreadableError as problem:
        return KeyState(
            source=KeyFrom.MISSING, reason=translatable(KEY_UNREADABLE, name=provider.name, reason=problem.reason)
        )
    return KeyState(source=KeyFrom.STORED, value=value, last_four=row.last_four, reason=refused)
