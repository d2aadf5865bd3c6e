"""Changing providers and their keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.providers.environment import (
    KeyNotation,
    form_of,
    further_variables,
    key_variable,
    readable,
    referenced_variable,
)
from capabilities.errors import InvalidError
from capabilities.models import Provider, StoredKey
from capabilities.secrets import origin_of, store_key
from routing_admin.configuration.guards import check_unused, check_version, save_fields, save_row
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.positions import next_position
from routing_admin.console.base.results import BulkChange


class KeyAct(StrEnum):
    """What becomes of a provider's key when the provider is saved."""

    KEEP = "keep"
    SET = "set"
    ENVIRONMENT = "env"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change of key: `text` is the new key, or `${NAME}`; an empty text keeps what is there."""

    act: KeyAct = KeyAct.KEEP
    text: str = ""

    def __repr__(self) -> str:
        return f"KeyChange({self.act.value})"


def save_provider(
    actor: Actor, row: Provider, *, key: KeyChange | None = None, expected: int | None = None
) -> AuditedAction:
    """Writes a provider, new or changed. A stored key does not follow to another origin (security by origin)."""
    new = row.pk is None
    act = AuditedAction("provider.add" if new else "provider.change", "provider", row.name)
    with ledger.change(actor, act):
        if new:
            row.position = next_position(Provider)
        change_key(row, key or KeyChange())
        save_row(row, expected)
        leave_keys_behind(row)
    return act


def change_key(row: Provider, change: KeyChange) -> None:
    """Applies a key change to the row; a key for another origin than the endpoint's is taken away."""
    if change.act is KeyAct.SET and change.text:
        take_key(row, change.text)
    elif change.act is KeyAct.ENVIRONMENT:
        row.key_source, row.stored_key = Provider.KeySource.ENVIRONMENT, None
        row.key_variable = referenced_variable(change.text) or ""
    elif change.act is KeyAct.NONE:
        row.key_source, row.stored_key, row.key_variable = Provider.KeySource.NONE, None, ""
    elif row.stored_key and row.stored_key.origin != origin_of(row.endpoint):
        row.key_source, row.stored_key = Provider.KeySource.ENVIRONMENT, None


def leave_keys_behind(row: Provider) -> None:
    """Takes stored further keys away that were given for another origin than the endpoint's is now."""
    further = list(row.more_keys.select_related("stored_key"))
    variables = further_variables(key_variable(row.name, row.env_name), [each.key_variable for each in further])
    for key, variable in zip(further, variables, strict=True):
        if key.stored_key is not None and key.stored_key.origin != origin_of(row.endpoint):
            key.key_source, key.key_variable, key.stored_key = Provider.KeySource.ENVIRONMENT, variable, None
            key.save()


def take_key(row: Provider, text: str) -> None:
    """Sets the key from what was typed: a literal is stored encrypted, `${NAME}` names a variable.

    Raises `InvalidError` for a variable that may hold no key, a placeholder, a mask, or what no header can carry.
    """
    variable = to_variable(text)
    if variable is not None:
        row.key_source, row.stored_key, row.key_variable = Provider.KeySource.ENVIRONMENT, None, variable
    elif form_of(text) is KeyNotation.NOT_NEEDED:
        row.key_source, row.stored_key, row.key_variable = Provider.KeySource.NONE, None, ""
    else:
        row.key_source, row.key_variable = Provider.KeySource.STORED, ""
        row.stored_key = find_stored(text, row.endpoint)


def to_variable(text: str) -> str | None:
    """The variable that was typed as `${NAME}`, None for another text.

    Raises `InvalidError` for one that may hold no key.
    """
    variable = referenced_variable(text)
    if variable is not None and not readable(variable):
        message = _("Only variables named LLM_PROVIDER_…_API_KEY may hold a provider key.")
        raise InvalidError([Problem("apiKey", message, "range")])
    return variable


def find_stored(text: str, endpoint: str) -> StoredKey:
    """A literal key as it is stored. Raises `InvalidError` for a placeholder, a mask, or what no header can carry."""
    if form_of(text) is not KeyNotation.LITERAL:
        message = _(
            "This is not a key: it is a placeholder, masked, or contains characters not allowed in HTTP headers."
        )
        raise InvalidError([Problem("apiKey", message, "type")])
    return store_key(text, endpoint)


def enable_providers(actor: Actor, rows: Iterable[Provider], *, enabled: bool) -> BulkChange:
    """Switches several providers on or off as one revision."""
    changed = [row for row in rows if row.enabled != enabled]
    names = ", ".join(row.name for row in changed)
    act = AuditedAction("provider.enable" if enabled else "provider.disable", "provider", names[:300])
    with ledger.change(actor, act):
        for row in changed:
            row.enabled = enabled
            save_fields(row, "enabled")
    return BulkChange(len(changed), act.revision)


def check_can_delete_provider(row: Provider) -> None:
    """Raises `InUseError` naming the routes and services that use the provider."""
    routes = sorted({candidate.route.task_type for candidate in row.candidates.select_related("route")})
    check_unused(routes, _("Task routes still use this provider: %(users)s. Remove it from their chains first."))
    services = [service.service_id for service in row.services.all()]
    check_unused(services, _("Services still belong to this provider: %(users)s. Delete them first."))


def delete_provider(actor: Actor, row: Provider, *, expected: int | None = None) -> AuditedAction:
    """Deletes a provider that nothing uses; Undo brings it back, its stored key included."""
    with ledger.change(actor, AuditedAction("provider.delete", "provider", row.name)) as act:
        check_version(Provider.objects.filter(pk=row.pk).first(), expected)
        check_can_delete_provider(row)
        row.delete()
    return act
