"""Write a configuration to the database rows, changing only rows that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from django.db import models
from django.utils.translation import gettext as _

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import further_variables, key_variable
from capabilities.core.vocabulary import Capabilities
from capabilities.errors import InvalidError
from capabilities.models import Agent, AgentKey, Provider, ProviderKey, Service, StoredKey
from routing_admin.configuration.rows.reading import candidate_spec, key_spec, read
from routing_admin.core.configuration.as_json import same_value
from routing_admin.core.configuration.diff import Change, diff
from routing_admin.core.configuration.specs import (
    AgentSpec,
    CandidateSpec,
    Configuration,
    KeyKind,
    KeySpec,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.documents.kept_fields import same_json
from routing_admin.models import Alias, Candidate, Installation, LabelBudget, Language, TaskRoute

M = TypeVar("M", bound=models.Model)

KEY_FIELDS = ("key", "more_keys", "keys")
"""Path prefixes of the fields that describe a key."""


def write(new: Configuration) -> None:
    """Make the rows equal to a configuration by creating, changing and deleting rows that differ.

    Call it inside `ledger.change`. A stored key is found by its fingerprint; if it no longer exists, the provider's key
    is read from the environment.
    """
    delete_removed_chains(new)
    providers = sync(
        Provider, "name", {spec.name: provider_fields(spec, at) for at, spec in enumerate(new.providers)}, delete=False
    )
    for provider in new.providers:
        write_more_keys(providers[provider.name], provider)
    services = {spec.id: service_fields(spec, at, providers[spec.provider]) for at, spec in enumerate(new.services)}
    delete_removed_agents(new)
    rows = sync(Service, "service_id", services)
    for spec in new.services:
        write_cells(rows[spec.id], spec)
    routes = sync(
        TaskRoute, "task_type", {spec.task_type: route_fields(spec, at) for at, spec in enumerate(new.routes)}
    )
    for route in new.routes:
        write_chain(routes[route.task_type], route.candidates, providers)
    # Run-time agents are not part of the configuration, so they stay unchanged.
    sync(Agent, "agent_id", {spec.id: agent_fields(spec, rows) for spec in new.agents}, delete=False)
    write_key_terms(new)
    sync(Alias, "name", {spec.name: {"target": spec.target} for spec in new.aliases})
    sync(Language, "code", {spec.code: {"directive": spec.directive} for spec in new.languages})
    sync(LabelBudget, "label", {spec.id: {"limits": dict(spec.limits)} for spec in new.label_budgets})
    # Delete providers last, because services and candidates reference them.
    Provider.objects.exclude(name__in=providers).delete()
    installation = Installation.current()
    installation.default_language = new.default_language or ""
    installation.content_policy = new.content_policy or ""
    installation.content_text = new.content_text or ""
    installation.content_html = new.content_html or ""
    installation.catalogue = new.catalogue or ""
    installation.exchange_rates = [asdict(rate) for rate in new.exchange_rates]
    installation.routing_extra, installation.services_extra = dict(new.extra_routing), dict(new.extra_services)
    installation.save()
    check_written(new)


def check_written(new: Configuration) -> None:
    """Raise `InvalidError`, which rolls the change back, if the written rows differ from the configuration."""
    problems = [
        Problem(
            change.field or change.kind,
            _("This cannot be stored: %(what)s") % {"what": describe_path(change)},
            "range",
        )
        for change in diff(new, read())
        # Accept differences in keys: a key without a ciphertext cannot be written, and neither can a deleted agent
        # key's terms.
        if not change.field.startswith(KEY_FIELDS)
    ]
    if problems:
        raise InvalidError(problems)


def describe_path(change: Change) -> str:
    return " ".join(filter(None, (change.kind, change.name, change.field)))


def delete_removed_chains(new: Configuration) -> None:
    removed = Candidate.objects.exclude(route__task_type__in=[route.task_type for route in new.routes])
    # Delete candidates from the end of each chain, because the database refuses gaps between positions.
    for candidate in removed.order_by("-position"):
        candidate.delete()


def delete_removed_agents(new: Configuration) -> None:
    """Delete configured agents that `new` lacks, and detach agents from services that will be deleted."""
    remaining_ids = [agent.id for agent in new.agents]
    Agent.objects.filter(origin=Agent.Origin.ADMINISTRATOR).exclude(agent_id__in=remaining_ids).delete()
    services = [service.id for service in new.services]
    Agent.objects.exclude(service__service_id__in=services).filter(service__isnull=False).update(service=None)


def sync(model: type[M], key: str, values: Mapping[str, dict[str, Any]], *, delete: bool = True) -> dict[str, M]:
    """Create, change and delete the rows of a Django model until they equal `values`; return the rows by key."""
    found = {getattr(row, key): row for row in model._default_manager.all()}
    if delete:
        model._default_manager.filter(pk__in=[row.pk for name, row in found.items() if name not in values]).delete()
    rows: dict[str, M] = {}
    for name, fields in values.items():
        row = found.get(name)
        if row is None:
            row = model._default_manager.create(**{key: name}, **fields)
        elif not all(is_stored(getattr(row, field), value) for field, value in fields.items()):
            update_row(row, fields)
        rows[name] = row
    return rows


def is_stored(stored: Any, value: Any) -> bool:
    is_json = isinstance(value, Mapping | list)
    # In JSON, 1 and true differ, but in Python they are equal.
    return same_json(stored, value) if is_json else bool(stored == value)


def update_row(row: models.Model, fields: Mapping[str, Any]) -> None:
    for field, value in fields.items():
        setattr(row, field, value)
    if hasattr(row, "version"):
        row.version += 1
    row.save()


def provider_fields(spec: ProviderSpec, position: int) -> dict[str, Any]:
    return {
        **key_fields(spec.key),
        "key_name": spec.key.name,
        "key_enabled": spec.key.enabled,
        "endpoint": spec.endpoint,
        "default_model": spec.default_model,
        "protocol": spec.protocol,
        "display_name": spec.display_name,
        "env_name": spec.env_name or "",
        "enabled": spec.enabled,
        "quirks": dict(spec.quirks),
        "timeouts": dict(spec.timeouts),
        "proxy": spec.proxy,
        "vendor_tools": None if spec.vendor_tools is None else list(spec.vendor_tools),
        "in_routing_file": spec.in_routing_file,
        "extra": dict(spec.extra),
        "position": position,
    }


def key_fields(key: KeySpec, variable: str = "") -> dict[str, Any]:
    """Return the values of the database columns that describe a provider's key.

    If the key's ciphertext no longer exists, the key is read from the environment: from its own variable, else
    `variable`.
    """
    stored = StoredKey.objects.filter(fingerprint=key.fingerprint).first() if key.fingerprint else None
    source = key.kind if stored or key.kind != KeyKind.STORED else KeyKind.ENV
    own = key.variable or (variable if source is KeyKind.ENV else "")
    return {"key_source": source.value, "key_variable": own, "stored_key": stored}


def write_more_keys(row: Provider, spec: ProviderSpec) -> None:
    found = tuple(key_spec(key, key.name, key.enabled) for key in row.more_keys.select_related("stored_key"))
    if found == spec.more_keys:
        return
    row.more_keys.all().delete()
    variables = further_variables(key_variable(spec.name, spec.env_name), (key.variable for key in spec.more_keys))
    for position, (key, variable) in enumerate(zip(spec.more_keys, variables, strict=True), start=2):
        # Positions start at 2, because the first key is stored in the provider's row.
        named = {"name": key.name, "enabled": key.enabled, "position": position}
        ProviderKey.objects.create(provider=row, **key_fields(key, variable), **named)
    update_row(row, {})


def service_fields(spec: ServiceSpec, position: int, provider: Provider) -> dict[str, Any]:
    return {
        "name": spec.name,
        "provider": provider,
        "model": spec.model,
        "base_url": spec.base_url,
        "declares_capabilities": spec.capabilities is not None,
        "capability_tags": list(spec.capability_tags),
        "description": spec.description,
        "limits": dict(spec.limits),
        "price": dict(spec.price),
        "content": dict(spec.content),
        "timeouts": dict(spec.timeouts),
        "extra_body": dict(spec.extra_body),
        "routed": spec.routed,
        "enabled": spec.enabled,
        "extra": dict(spec.extra),
        "position": position,
    }


def route_fields(spec: RouteSpec, position: int) -> dict[str, Any]:
    return {
        "temperature": spec.temperature,
        "max_tokens": spec.max_tokens,
        "on_error": spec.on_error if isinstance(spec.on_error, str) else dict(spec.on_error),
        "retries": spec.retries,
        "deadline": spec.deadline,
        "first_content": spec.first_content,
        "content": dict(spec.content),
        "on_drop": spec.on_drop,
        "on_overflow": spec.on_overflow,
        "directive": spec.directive,
        "allow_n": spec.allow_n,
        "keep_alive_seconds": spec.keep_alive_seconds,
        "enabled": spec.enabled,
        "extra": dict(spec.extra),
        "position": position,
    }


def agent_fields(spec: AgentSpec, services: Mapping[str, Service]) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "service": services.get(spec.service_id or ""),
        "task_type": spec.task_type or "",
        "limits": dict(spec.limits),
        "origin": Agent.Origin.ADMINISTRATOR,
    }


def write_key_terms(new: Configuration) -> None:
    terms_by_key = {public_id: terms for agent in new.agents for public_id, terms in agent.keys.items()}
    for row in AgentKey.objects.filter(agent__origin=Agent.Origin.ADMINISTRATOR):
        # A key that the configuration does not mention keeps the terms that it was issued with.
        terms = terms_by_key.get(row.public_id, row.issued_terms)
        if not same_json(row.terms, terms):
            row.terms = terms
            row.save(update_fields=["terms"])


def write_cells(row: Service, spec: ServiceSpec) -> None:
    """Make a service's capability rows equal to the configuration; if they change, increment the service's version."""
    expected = {cell: (at, True) for at, cell in enumerate(list_capabilities(spec.capabilities))}
    for cell in spec.sources:
        side, _, name = cell.partition(":")
        # List the capabilities that the model has before those that it lacks.
        expected.setdefault((side, name), (len(expected), False))
    found = {(cell.side, cell.name): cell for cell in row.capabilities.all()}
    removed = [cell.pk for key, cell in found.items() if key not in expected]
    row.capabilities.filter(pk__in=removed).delete()
    has_changed = bool(removed)
    for (side, name), (position, supported) in expected.items():
        source = spec.source(side, name)
        values = {"supported": supported, "source": source.value, "position": position}
        existing = found.get((side, name))
        if existing is None:
            row.capabilities.create(side=side, name=name, **values)
            has_changed = True
        elif any(getattr(existing, field) != value for field, value in values.items()):
            update_row(existing, values)
            has_changed = True
    if has_changed:
        update_row(row, {})


def list_capabilities(capabilities: Capabilities | None) -> list[tuple[str, str]]:
    if capabilities is None:
        return []
    return [("input", name) for name in capabilities.input] + [("output", name) for name in capabilities.output]


def write_chain(route: TaskRoute, chain: Sequence[CandidateSpec], providers: Mapping[str, Provider]) -> None:
    """Replace a route's chain if it differs, and increment the route's version."""
    rows = list(route.candidates.select_related("provider").order_by("position"))
    if same_value([candidate_spec(row) for row in rows], chain):
        return
    # Delete candidates from the end of the chain, because the database refuses gaps between positions.
    for row in reversed(rows):
        row.delete()
    for position, spec in enumerate(chain, start=1):
        Candidate.objects.create(
            route=route,
            position=position,
            provider=providers[spec.provider],
            model=spec.model or "",
            temperature=spec.temperature,
            max_tokens=spec.max_tokens,
            extra_body=dict(spec.extra_body),
            extra=dict(spec.extra),
        )
    if rows:
        update_row(route, {})
