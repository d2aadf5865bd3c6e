"""The configuration in use: one immutable value per process, swapped whole when somebody changes something.

A request takes `current()` once and keeps it. Other processes' changes are seen when the installation's stamp moves;
`newest` looks at it often enough that no call uses what changed more than a second ago.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from django.conf import settings

from capabilities.access import filter_living
from capabilities.core.providers.environment import overrides, read
from capabilities.core.providers.origins import OriginPolicy, policy_of, proxy_refusal, refusal
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.core.worded import worded
from capabilities.models import Agent, StoredKey
from capabilities.secrets import KeyUnreadableError, open_key
from routing_admin.configuration import rows
from routing_admin.configuration.history import newest_number
from routing_admin.configuration.newest import Newest
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, KeyKind, ProviderSpec, ServiceSpec
from routing_admin.core.planning.plan import is_taken
from routing_admin.databases.router import one_moment
from routing_admin.models import Installation

ALLOWED_VARIABLES = ("LLM_API_KEY",)
"""Variables that may hold a key beside `LLM_PROVIDER_*_API_KEY` (decision 13)."""


KEY_UNSET = worded("%(name)s has no key: set %(variable)s in the environment, or store a key.")
NO_KEY_ANYWHERE = worded("%(name)s has no key: store a key.")
KEY_GONE = worded("%(name)s has no key: enter it again.")
KEY_UNREADABLE = worded("%(name)s: %(reason)s.")
"""Why a provider has no key, as templates."""


class KeyFrom(StrEnum):
    """Where a provider's key comes from at this moment."""

    NOT_NEEDED = "not_needed"
    OVERRIDE = "override"
    ENVIRONMENT = "environment"
    STORED = "stored"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class KeyState:
    """A provider's key now, and whether the provider can be called; `reason` is the sentence when it cannot."""

    source: KeyFrom
    value: str | None = field(default=None, repr=False)
    variable: str = ""
    last_four: str = ""
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether nothing stands in the way of calling the provider."""
        return not self.reason


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything a request needs to know, as it was at one moment."""

    stamp: int
    revision: int | None
    configuration: Configuration
    keys: Mapping[str, KeyState] = field(repr=False)
    agents: tuple[AgentProfile, ...]
    record_bodies: bool = False

    @property
    def directory(self) -> AgentDirectory:
        """Who can read what, among all agents that have not expired meanwhile."""
        return self.everybody.select_living(time.time())

    @cached_property
    def everybody(self) -> AgentDirectory:
        """Every agent there was when the snapshot was taken."""
        return AgentDirectory(self.agents)

    @cached_property
    def configured(self) -> AgentDirectory:
        """The agents that administrators keep, which texts that stay in a conversation may name."""
        return self.everybody.select_configured()


def build() -> Snapshot:
    """A snapshot of the rows as they are at one moment, never half of two revisions."""
    with one_moment():
        installation = Installation.current()
        configuration = rows.read()
        revision = newest_number()
        keys = key_states(configuration)
        agents = agent_profiles(configuration, keys)
    return Snapshot(installation.version, revision, configuration, keys, agents, installation.record_bodies)


def stamp() -> int:
    """The number of the last change of anything a snapshot holds."""
    return Installation.current().version


newest = Newest(build, stamp)
"""This process's."""
current, look, refresh, forget = newest.current, newest.look, newest.refresh, newest.forget
unread_since = newest.unread_since


def key_states(configuration: Configuration) -> dict[str, KeyState]:
    """Every provider's key by provider name."""
    variables = overrides({provider.name: provider.env_name for provider in configuration.providers}).variables
    stored = {row.fingerprint: row for row in StoredKey.objects.all()}
    policy = policy_of(",".join(settings.ALLOWED_ORIGINS))
    return {
        provider.name: key_state(provider, variables.get(provider.name), stored, policy, os.environ)
        for provider in configuration.providers
    }


def key_state(
    provider: ProviderSpec,
    override: str | None,
    stored: Mapping[str, StoredKey],
    policy: OriginPolicy,
    env: Mapping[str, str],
) -> KeyState:
    """One provider's key: the variable `override` first, then what the row says (decision 10)."""
    refused = refusal(provider.endpoint, policy) or proxy_refusal(provider.proxy, policy, settings.OUTGOING_PROXY) or ""
    value = read(override, env) if override else None
    if value and override:
        return KeyState(KeyFrom.OVERRIDE, value, override, value[-4:], refused)
    if provider.key.kind is KeyKind.NONE:
        return KeyState(KeyFrom.NOT_NEEDED, reason=refused)
    if provider.key.kind is KeyKind.STORED:
        return stored_key_state(provider, stored.get(provider.key.fingerprint), refused)
    variable = provider.key.variable or override or ""
    value = read(variable, env, allowed=ALLOWED_VARIABLES) if variable else None
    if value:
        return KeyState(KeyFrom.ENVIRONMENT, value, variable, value[-4:], refused)
    return KeyState(KeyFrom.MISSING, None, variable, reason=no_key(provider.name, variable))


def no_key(name: str, variable: str) -> str:
    """Why a provider without a key cannot be called; `variable` is where one could stand."""
    return worded(KEY_UNSET, name=name, variable=variable) if variable else worded(NO_KEY_ANYWHERE, name=name)


def stored_key_state(provider: ProviderSpec, row: StoredKey | None, refused: str) -> KeyState:
    """The state of a key that is stored."""
    if row is None:
        return KeyState(KeyFrom.MISSING, reason=worded(KEY_GONE, name=provider.name))
    try:
        value = open_key(row, provider.endpoint)
    except KeyUnreadableError as problem:
        return KeyState(KeyFrom.MISSING, reason=worded(KEY_UNREADABLE, name=provider.name, reason=problem.reason))
    return KeyState(KeyFrom.STORED, value, "", row.last_four, refused)


def agent_profiles(configuration: Configuration, keys: Mapping[str, KeyState]) -> tuple[AgentProfile, ...]:
    """Every living agent, those made at run time too, with what its model reads and writes."""
    profiles = []
    for row in filter_living(Agent.objects.select_related("service")):
        service_id = row.service.service_id if row.service else None
        service = configuration.service(service_id or "") or first_service(configuration, keys, row.task_type)
        profiles.append(
            AgentProfile(
                id=row.agent_id,
                name=row.name,
                description=row.description,
                service_id=service.id if service else None,
                capabilities=service.effective_capabilities if service and service.enabled else TEXT_ONLY,
                task_type=row.task_type or None,
                expires_at=row.expires_at.timestamp() if row.expires_at else None,
                is_configured=row.origin == Agent.Origin.ADMINISTRATOR,
            )
        )
    return tuple(profiles)


def first_service(configuration: Configuration, keys: Mapping[str, KeyState], task_type: str) -> ServiceSpec | None:
    """The service of a route's first ready candidate: enabled, with a usable key; None where it has no row.

    A route that is disabled counts as not configured, so its requests begin where `default` does (MMR-P5).
    """
    route = configuration.route(task_type) if task_type else None
    if route is not None and not is_taken(route):
        route = configuration.route(DEFAULT_ROUTE)
    for candidate in route.candidates if route else ():
        provider = configuration.provider(candidate.provider)
        if provider is None or not provider.enabled or not keys[provider.name].usable:
            continue
        service = configuration.service_at(provider.name, candidate.model or provider.default_model)
        if service is None or not disabled_there(configuration, service):
            return service
    return None


def disabled_there(configuration: Configuration, service: ServiceSpec) -> bool:
    """Whether every service of that provider and model is disabled, so that a request passes them by."""
    there = (
        each for each in configuration.services if (each.provider, each.model) == (service.provider, service.model)
    )
    return not any(each.enabled for each in there)
