"""The providers' keys as they are at one moment: where each comes from, which can be used, which make a pool."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from django.conf import settings

from capabilities.acts import Actor
from capabilities.core.providers.environment import overrides, read
from capabilities.core.providers.origins import OriginPolicy, policy_of, proxy_refusal, refusal
from capabilities.core.translatable import translatable
from capabilities.models import StoredKey, VariableOrigin
from capabilities.secrets import KeyUnreadableError, fingerprint_of, open_key, origin_of
from routing_admin.core.configuration.specs import Configuration, KeyKind, KeySpec, ProviderSpec

# Where the keys in environment variables may be sent: bound at their first use, as stored keys are.

BINDING_ACTORS = frozenset({"person", "command", "system"})
"""Whose first use of a variable that is set binds it: administrators on the page, on the machine, and its start.

Agents' keys and tokens are not among them: with a new provider at a host of theirs they would read any variable.
"""


def read_key_origins() -> Mapping[str, Collection[str]]:
    """Return the origins that each variable's key may be sent to; one query."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for variable, origin in VariableOrigin.objects.order_by("id").values_list("variable", "origin"):
        found[variable].append(origin)
    return found


def bind_first_uses(actor: Actor, before: Configuration, after: Configuration) -> None:
    """Bind variables that a change uses first to the origins it uses them with; bound ones keep what they have."""
    new = uses_of(after) - uses_of(before)
    if not new:
        return
    known = set(VariableOrigin.objects.values_list("variable", flat=True))
    VariableOrigin.objects.bulk_create(
        VariableOrigin(variable=variable, origin=origin)
        for variable, origin in sorted(new)
        if variable not in known and (actor.kind in BINDING_ACTORS or not os.environ.get(variable))
    )


def uses_of(configuration: Configuration) -> set[tuple[str, str]]:
    """Return each variable that may hold a provider's key, set or not, with the origin of that provider."""
    own = overrides({provider.name: provider.env_name for provider in configuration.providers}).variables
    found = set()
    for provider in configuration.providers:
        variables = {key.variable for key in provider.keys if key.kind is KeyKind.ENV} | {own.get(provider.name)}
        found |= {(variable, origin_of(provider.endpoint)) for variable in variables if variable}
    return found


ALLOWED_VARIABLES = ("LLM_API_KEY",)
"""Variables that may hold a key beside `LLM_PROVIDER_*_API_KEY` (decision 13)."""

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
"""Why a provider has no key, as templates."""


class KeyFrom(StrEnum):
    """Where a provider's key comes from at this moment."""

    NOT_NEEDED = "not_needed"
    OVERRIDE = "override"
    ENVIRONMENT = "environment"
    STORED = "stored"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """A provider's key now, and whether the provider can be called; `reason` is the sentence when it cannot."""

    source: KeyFrom
    value: str | None = field(default=None, repr=False)
    variable: str = ""
    last_four: str = ""
    reason: str = ""
    unconfirmed: str = ""
    """The origin that the variable's key may be sent to once an administrator says so."""

    @property
    def usable(self) -> bool:
        """Whether nothing stands in the way of calling the provider."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class NamedKey:
    """One of a provider's keys now; `mark` changes with the key and does not tell it, and is empty without one."""

    name: str
    state: KeyState
    enabled: bool = True
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ProviderKeys:
    """What a provider is called with: the first key that can be used, every key, and those that take turns.

    `pool` is empty where fewer than two can: then `first` is the one.
    """

    first: KeyState
    every: tuple[NamedKey, ...] = ()
    pool: tuple[NamedKey, ...] = ()


def keys_of(configuration: Configuration) -> dict[str, ProviderKeys]:
    """Every provider's keys by provider name."""
    variables = overrides({provider.name: provider.env_name for provider in configuration.providers}).variables
    stored = {row.fingerprint: row for row in StoredKey.objects.all()}
    policy, origins = policy_of(",".join(settings.ALLOWED_ORIGINS)), read_key_origins()
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
    """One provider's keys; the variable `override` comes before what the row says of the first (decision 10)."""
    own_proxy, endpoint = settings.OUTGOING_PROXY, provider.endpoint
    refused = refusal(endpoint, policy) or proxy_refusal(provider.proxy, policy, own_proxy, endpoint) or ""
    own = [
        key_state(provider, key, "" if at else override, stored, origins, refused, env)
        for at, key in enumerate(provider.keys)
    ]
    every = tuple(
        NamedKey(key.name, state, key.enabled, _mark(state, provider.endpoint))
        for key, state in zip(provider.keys, own, strict=True)
    )
    enabled = [each for each in every if each.enabled]
    by_mark: dict[str, NamedKey] = {}
    for each in enabled:
        if each.mark and each.state.usable:
            by_mark.setdefault(each.mark, each)  # a key that is there twice takes one turn
    pool = tuple(by_mark.values())
    first = next((each.state for each in (*pool, *enabled)), None)
    if first is None:
        first = replace(
            own[0], source=KeyFrom.MISSING, value=None, reason=translatable(NONE_ENABLED, name=provider.name)
        )
    return ProviderKeys(first, every, pool if len(pool) > 1 else ())


def _mark(state: KeyState, endpoint: str) -> str:
    return fingerprint_of(state.value, origin_of(endpoint))[:16] if state.value else ""


def key_state(
    provider: ProviderSpec,
    key: KeySpec,
    override: str | None,
    stored: Mapping[str, StoredKey],
    origins: Mapping[str, Collection[str]],
    refused: str,
    env: Mapping[str, str],
) -> KeyState:
    """One key: the variable `override` first, then what the row says; `refused` is why its address is not called."""
    value = read(override, env) if override else None
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
    value = read(variable, env, allowed=ALLOWED_VARIABLES) if variable else None
    if value:
        return variable_state(
            provider,
            KeyState(source=KeyFrom.ENVIRONMENT, value=value, variable=variable, last_four=value[-4:], reason=refused),
            origins,
        )
    return KeyState(source=KeyFrom.MISSING, value=None, variable=variable, reason=no_key(provider.name, variable))


def variable_state(provider: ProviderSpec, state: KeyState, origins: Mapping[str, Collection[str]]) -> KeyState:
    """The state of a key in a variable: without its value where it was never used with the provider's origin."""
    origin, known = origin_of(provider.endpoint), origins.get(state.variable, ())
    if origin in known:
        return state
    facts = {"name": provider.name, "variable": state.variable, "origin": origin}
    reason = translatable(KEY_BOUND, **facts, known=tuple(known)) if known else translatable(KEY_UNBOUND, **facts)
    return KeyState(source=KeyFrom.MISSING, value=None, variable=state.variable, reason=reason, unconfirmed=origin)


def no_key(name: str, variable: str) -> str:
    """Why a provider without a key cannot be called; `variable` is where one could stand."""
    return (
        translatable(KEY_UNSET, name=name, variable=variable) if variable else translatable(NO_KEY_ANYWHERE, name=name)
    )


def stored_key_state(provider: ProviderSpec, row: StoredKey | None, refused: str) -> KeyState:
    """The state of a key that is stored."""
    if row is None:
        return KeyState(source=KeyFrom.MISSING, reason=translatable(KEY_GONE, name=provider.name))
    try:
        value = open_key(row, provider.endpoint)
    except KeyUnreadableError as problem:
        return KeyState(
            source=KeyFrom.MISSING, reason=translatable(KEY_UNREADABLE, name=provider.name, reason=problem.reason)
        )
    return KeyState(source=KeyFrom.STORED, value=value, last_four=row.last_four, reason=refused)
