"""The configuration in use: one immutable value per process, replaced whole by each change.

A request takes `current()` once and keeps it. Other processes' changes are seen when the installation's stamp moves;
`newest` looks at it often enough that no call uses what changed more than a second ago.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from capabilities.access import filter_living
from capabilities.core.exchange import ExchangeTable
from capabilities.core.providers.catalogue import Catalogue, default_catalogue
from capabilities.core.services.agents import AgentDirectory, AgentProfile
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.models import Agent
from capabilities.runtime import owned
from routing_admin.configuration import rows
from routing_admin.configuration.catalogue_versions import find_catalogue
from routing_admin.configuration.drills import find_open_drill
from routing_admin.configuration.history import newest_number
from routing_admin.configuration.keys import KeyState, ProviderKeys, keys_of
from routing_admin.configuration.stamped_cache import StampedCache
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, ServiceSpec
from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.core.planning.plan import is_taken
from routing_admin.models import Installation
from routing_admin.platform.databases.router import one_moment


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """Everything a request needs to know, as it was at one moment."""

    stamp: int
    revision: int | None
    configuration: Configuration
    provider_keys: Mapping[str, ProviderKeys] = field(repr=False)
    agents: tuple[AgentProfile, ...]
    record_bodies: bool = False
    catalogue: Catalogue = field(default_factory=default_catalogue, repr=False)
    drill: DrillWindow | None = None
    """The newest fire drill as long as nobody has noted its end."""

    @cached_property
    def keys(self) -> Mapping[str, KeyState]:
        """The key that each provider is called with, by its name; of several that can be used the first."""
        return {name: keys.first for name, keys in self.provider_keys.items()}

    @cached_property
    def exchange(self) -> ExchangeTable:
        """The exchange rates that an administrator set."""
        return ExchangeTable(self.configuration.exchange_rates)

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
        keys = keys_of(configuration)
        agents = agent_profiles(configuration, {name: each.first for name, each in keys.items()})
        catalogue = find_catalogue(configuration.catalogue)
        drill = find_open_drill()
    recording = installation.record_bodies
    return Snapshot(
        stamp=installation.version,
        revision=revision,
        configuration=configuration,
        provider_keys=keys,
        agents=agents,
        record_bodies=recording,
        catalogue=catalogue,
        drill=drill,
    )


def stamp() -> int:
    """The number of the last change of anything a snapshot holds."""
    return Installation.current().version


newest = owned(lambda: StampedCache(build, stamp))


def current() -> Snapshot:
    """Return the newest snapshot. Raise what reading it raises as long as none is known at all."""
    return newest().current()


def look() -> None:
    """Look now whether there is a newer one."""
    newest().look()


def refresh() -> Snapshot:
    """Read the rows whatever their stamp says."""
    return newest().refresh()


def unread_since() -> datetime | None:
    """Return since when the rows cannot be read; None while they can."""
    return newest().unread_since()


def is_usable() -> bool:
    """Return whether calls may go on without asking the rows."""
    return newest().is_usable()


def check_read() -> None:
    """Raise `LookupError` while the configuration cannot be read and an older one is in use."""
    if since := unread_since():
        raise LookupError(f"the configuration cannot be read since {since:%H:%M:%S} UTC; an older one is in use")


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
