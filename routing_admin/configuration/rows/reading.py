"""Read the configuration from the database rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from django.db import models

from capabilities.core.exchange import ExchangeRate
from capabilities.core.vocabulary import Capabilities, Source
from capabilities.models import Agent, AgentKey, Provider, ProviderKey, Service, ServiceCapability
from routing_admin.core.configuration.specs import (
    AgentSpec,
    AliasSpec,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    LabelBudgetSpec,
    LanguageSpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.files.endpoints import without_foreign_base_urls
from routing_admin.models import Alias, Candidate, Installation, LabelBudget, Language, TaskRoute

M = TypeVar("M", bound=models.Model)


def read() -> Configuration:
    """Return the configuration stored in the rows, with the same number of queries regardless of its size."""
    installation = Installation.current()
    # Read whole tables and joins. Django's prefetching would instead select related rows by a list of ids: SQLite
    # accepts only a thousand of them, and building the lists takes a third of the time.
    providers = list(Provider.objects.select_related("stored_key"))
    more_keys = group_by("provider_id", ProviderKey.objects.select_related("stored_key").order_by("position", "id"))
    services = list(Service.objects.select_related("provider"))
    cells = group_by("service_id", ServiceCapability.objects.all())
    routes = list(TaskRoute.objects.all())
    candidates = group_by("route_id", Candidate.objects.select_related("provider").order_by("position"))
    agents = list(Agent.objects.filter(origin=Agent.Origin.ADMINISTRATOR).select_related("service"))
    limited = AgentKey.objects.filter(agent__origin=Agent.Origin.ADMINISTRATOR).exclude(terms={}, issued_terms={})
    limited_keys = group_by("agent_id", limited.order_by())
    found = Configuration(
        providers=tuple(provider_spec(row, more_keys[row.pk]) for row in providers),
        services=tuple(service_spec(row, cells[row.pk]) for row in services),
        routes=tuple(route_spec(row, candidates[row.pk]) for row in routes),
        aliases=tuple(AliasSpec(row.name, row.target) for row in Alias.objects.all()),
        agents=tuple(agent_spec(row, limited_keys[row.pk]) for row in agents),
        languages=tuple(LanguageSpec(row.code, row.directive) for row in Language.objects.all()),
        label_budgets=tuple(LabelBudgetSpec(row.label, row.limits) for row in LabelBudget.objects.all()),
        default_language=installation.default_language or None,
        content_policy=installation.content_policy or None,
        content_text=installation.content_text or None,
        content_html=installation.content_html or None,
        catalogue=installation.catalogue or None,
        exchange_rates=tuple(ExchangeRate(**rate) for rate in installation.exchange_rates),
        extra_routing=installation.routing_extra,
        extra_services=installation.services_extra,
    )
    return without_foreign_base_urls(found)


def group_by(parent: str, rows: Iterable[M]) -> Mapping[int, list[M]]:
    """Group the rows by the field `parent`, keeping their order. Looking up any other key gives an empty list."""
    groups: Mapping[int, list[M]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, parent)].append(row)
    return groups


def provider_spec(row: Provider, more_keys: Iterable[ProviderKey]) -> ProviderSpec:
    return ProviderSpec(
        name=row.name,
        endpoint=row.endpoint,
        default_model=row.default_model,
        protocol=row.protocol,
        key=key_spec(row, row.key_name, row.key_enabled),
        display_name=row.display_name,
        env_name=row.env_name or None,
        enabled=row.enabled,
        quirks=row.quirks,
        timeouts=row.timeouts,
        proxy=row.proxy,
        vendor_tools=None if row.vendor_tools is None else tuple(row.vendor_tools),
        in_routing_file=row.in_routing_file,
        extra=row.extra,
        more_keys=tuple(key_spec(key, key.name, key.enabled) for key in more_keys),
    )


def key_spec(row: Provider | ProviderKey, name: str, enabled: bool) -> KeySpec:
    fingerprint = row.stored_key.fingerprint if row.stored_key else ""
    return KeySpec(KeyKind(row.key_source), row.key_variable, fingerprint=fingerprint, name=name, enabled=enabled)


def service_spec(row: Service, cells: Sequence[ServiceCapability]) -> ServiceSpec:
    return ServiceSpec(
        id=row.service_id,
        name=row.name,
        provider=row.provider.name,
        model=row.model,
        base_url=row.base_url,
        capabilities=build_capabilities(cells) if row.declares_capabilities else None,
        sources={
            f"{c.side}:{c.name}": Source(c.source) for c in cells if not c.supported or c.source != Source.DECLARED
        },
        capability_tags=tuple(row.capability_tags),
        description=row.description,
        limits=row.limits,
        price=row.price,
        content=row.content,
        timeouts=row.timeouts,
        extra_body=row.extra_body,
        routed=row.routed,
        enabled=row.enabled,
        extra=row.extra,
    )


def build_capabilities(cells: Iterable[ServiceCapability]) -> Capabilities:
    sides: Mapping[str, list[str]] = defaultdict(list)
    for cell in cells:
        if cell.supported:
            sides[cell.side].append(cell.name)
    return Capabilities(tuple(sides["input"]), tuple(sides["output"]))


def route_spec(row: TaskRoute, candidates: Iterable[Candidate] | None = None) -> RouteSpec:
    """Return a route's specification. Pass `candidates` if they are already loaded; this saves a query."""
    chain = row.candidates.all() if candidates is None else candidates
    return RouteSpec(
        task_type=row.task_type,
        candidates=tuple(candidate_spec(candidate) for candidate in chain),
        temperature=row.temperature,
        max_tokens=row.max_tokens,
        on_error=row.on_error,
        retries=row.retries,
        deadline=row.deadline,
        first_content=row.first_content,
        content=row.content,
        enabled=row.enabled,
        extra=row.extra,
        on_drop=row.on_drop,
        on_overflow=row.on_overflow,
        directive=row.directive,
        allow_n=row.allow_n,
        keep_alive_seconds=row.keep_alive_seconds,
    )


def candidate_spec(row: Candidate) -> CandidateSpec:
    return CandidateSpec(
        row.provider.name,
        row.model or None,
        row.temperature,
        row.max_tokens,
        extra_body=row.extra_body,
        extra=row.extra,
    )


def agent_spec(row: Agent, limited_keys: Iterable[AgentKey]) -> AgentSpec:
    service_id = row.service.service_id if row.service else None
    # Include only keys whose terms were changed after they were issued.
    keys = {key.public_id: key.terms for key in sorted(limited_keys, key=by_public_id) if key.terms != key.issued_terms}
    return AgentSpec(row.agent_id, row.name, row.description, service_id, row.task_type or None, row.limits, keys)


def by_public_id(key: AgentKey) -> str:
    return key.public_id
