"""The configuration in use: each process has one immutable snapshot, which each change replaces as a whole.

A request calls `current()` once and uses that snapshot until it ends. A number in the database, the stamp, changes with
every change by any process. `newest` checks it often enough that no request starts with a snapshot that was replaced
more than a second ago.
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
from routing_admin.configuration.history import newest_change
from routing_admin.configuration.installation import RetentionSettings, retention_settings
from routing_admin.configuration.keys import KeyState, ProviderKeys, find_provider_keys
from routing_admin.configuration.stamped_cache import StampedCache
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, ServiceSpec
from routing_admin.core.fallback.scripts import DrillWindow
from routing_admin.core.planning.plan import is_taken
from routing_admin.models import FireDrill, Installation
from routing_admin.platform.databases.router import one_moment


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """All configuration data that a request needs, as of one moment."""

    stamp: int
    revision: int | None
    changed_by: str = ""
    changed_at: datetime | None = None
    """Author and time of the newest revision."""
    configuration: Configuration
    provider_keys: Mapping[str, ProviderKeys] = field(repr=False)
    agents: tuple[AgentProfile, ...]
    record_bodies: bool = False
    retention: RetentionSettings
    has_demo: bool = False
    catalogue: Catalogue = field(default_factory=default_catalogue, repr=False)
    drill: DrillWindow | None = None
    """The newest fire drill, until its end is recorded in the audit log."""

    @cached_property
    def keys(self) -> Mapping[str, KeyState]:
        """Each provider's first usable key or, if it has none, the reason for this; by provider name."""
        return {name: keys.first for name, keys in self.provider_keys.items()}

    @cached_property
    def exchange(self) -> ExchangeTable:
        return ExchangeTable(self.configuration.exchange_rates)

    @property
    def directory(self) -> AgentDirectory:
        # Agents can expire after the snapshot was taken.
        return self.all_agents.select_living(time.time())

    @cached_property
    def all_agents(self) -> AgentDirectory:
        return AgentDirectory(self.agents)

    @cached_property
    def configured(self) -> AgentDirectory:
        """The agents that administrators configured.

        Text that becomes part of a conversation names only these agents, because run-time agents expire.
        """
        return self.all_agents.select_configured()


def build() -> Snapshot:
    """Build a snapshot from rows read within one transaction, so that it never mixes two revisions."""
    with one_moment():
        installation = Installation.current()
        configuration = rows.read()
        number, actor, moment = newest_change() or (None, "", None)
        keys = find_provider_keys(configuration)
        agents = agent_profiles(configuration, {name: resolved.first for name, resolved in keys.items()})
        catalogue = find_catalogue(configuration.catalogue)
        drill = find_open_drill()
    return Snapshot(
        stamp=installation.version,
        revision=number,
        changed_by=actor,
        changed_at=moment,
        configuration=configuration,
        provider_keys=keys,
        agents=agents,
        record_bodies=installation.record_bodies,
        retention=retention_settings(installation),
        has_demo=installation.has_demo,
        catalogue=catalogue,
        drill=drill,
    )


def stamp() -> int:
    """Return the number of the last change to any data that a snapshot contains."""
    return Installation.current().version


newest = owned(lambda: StampedCache(build, stamp))


def current() -> Snapshot:
    """Return the newest snapshot. The first call reads it, and raises an error if that fails."""
    return newest().current()


def look() -> None:
    newest().look()


def refresh() -> Snapshot:
    return newest().refresh()


def unread_since() -> datetime | None:
    return newest().unread_since()


def is_usable() -> bool:
    return newest().is_usable()


def check_read() -> None:
    """Raise `LookupError` if the current configuration cannot be read and an older one is in use."""
    if since := unread_since():
        raise LookupError(f"the configuration cannot be read since {since:%H:%M:%S} UTC; an older one is in use")


def agent_profiles(configuration: Configuration, keys: Mapping[str, KeyState]) -> tuple[AgentProfile, ...]:
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
    """Return the service of a route's first usable candidate, or None if there is none."""
    route = configuration.route(task_type) if task_type else None
    if route is not None and not is_taken(route):
        # A disabled route is treated as missing, so its requests use the route `default` (MMR-P5).
        route = configuration.route(DEFAULT_ROUTE)
    for candidate in route.candidates if route else ():
        provider = configuration.provider(candidate.provider)
        if provider is None or not provider.enabled or not keys[provider.name].usable:
            continue
        service = configuration.service_at(provider.name, candidate.model or provider.default_model)
        if service is None or not is_model_disabled(configuration, service):
            return service
    return None


def is_model_disabled(configuration: Configuration, service: ServiceSpec) -> bool:
    same_model = (
        candidate
        for candidate in configuration.services
        if (candidate.provider, candidate.model) == (service.provider, service.model)
    )
    return not any(candidate.enabled for candidate in same_model)


def find_open_drill() -> DrillWindow | None:
    """Return the newest drill whose end is not in the audit log yet, or None."""
    row = FireDrill.objects.filter(noted_at=None).order_by("-id").first()
    return None if row is None else build_drill_window(row)


def build_drill_window(row: FireDrill) -> DrillWindow:
    return DrillWindow(
        number=row.pk,
        provider=row.provider,
        actor=row.actor,
        began=row.started_at.timestamp(),
        ends=row.ends_at.timestamp(),
    )
