"""Actions on providers and their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.providers.environment import (
    FIRST_KEY,
    KeyNotation,
    classify_key,
    further_variables,
    key_variable,
    may_read,
    referenced_variable,
)
from capabilities.errors import ConflictError, InvalidError, NotFoundError
from capabilities.models import KeyTest, Provider, ProviderKey, ProviderTest, StoredKey, VariableOrigin
from capabilities.secrets import endpoint_origin, store_key
from routing_admin.configuration.guards import check_unused, check_version, save_fields, save_row
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.keyset import next_position
from routing_admin.console.base.page_responses import BulkChange
from routing_admin.dispatch.provider_checks import CheckResult


class KeyAct(StrEnum):
    """What happens to a provider's key when the provider is saved."""

    KEEP = "keep"
    SET = "set"
    ENVIRONMENT = "env"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change to a provider's key. `text` is the new key, or `${NAME}` for an environment variable.

    If `text` is empty, the current key is kept.
    """

    act: KeyAct = KeyAct.KEEP
    text: str = ""

    def __repr__(self) -> str:
        # The key is omitted, because it must not appear in logs or tracebacks.
        return f"KeyChange({self.act.value})"


def save_provider(
    actor: Actor, row: Provider, *, key: KeyChange | None = None, expected: int | None = None
) -> AuditedAction:
    """Save a new or changed provider, and discard the result of its last connection test.

    If the origin of the endpoint changes, the provider's stored keys are removed.
    """
    new = row.pk is None
    act = AuditedAction("provider.add" if new else "provider.change", "provider", row.name)
    with ledger.change(actor, act):
        if new:
            row.position = next_position(Provider)
        change_key(row, key or KeyChange())
        save_row(row, expected)
        detach_stored_keys(row)
        ProviderTest.objects.filter(name=row.name).delete()
    return act


def change_key(row: Provider, change: KeyChange) -> None:
    """Apply a key change to a provider's row without saving the row."""
    if change.act is KeyAct.SET and change.text:
        set_key_from_text(row, change.text)
    elif change.act is KeyAct.ENVIRONMENT:
        row.key_source, row.stored_key = Provider.KeySource.ENVIRONMENT, None
        row.key_variable = referenced_variable(change.text) or ""
    elif change.act is KeyAct.NONE:
        row.key_source, row.stored_key, row.key_variable = Provider.KeySource.NONE, None, ""
    # A stored key was entered for one origin, so it must not be sent to another.
    elif row.stored_key and row.stored_key.origin != endpoint_origin(row.endpoint):
        row.key_source, row.stored_key = Provider.KeySource.ENVIRONMENT, None


def detach_stored_keys(row: Provider) -> None:
    """Detach the provider's additional stored keys if they were entered for an origin other than the endpoint's."""
    more_keys = list(row.more_keys.select_related("stored_key"))
    variables = further_variables(key_variable(row.name, row.env_name), [key.key_variable for key in more_keys])
    for key, variable in zip(more_keys, variables, strict=True):
        if key.stored_key is not None and key.stored_key.origin != endpoint_origin(row.endpoint):
            # From now on, this key is expected in an environment variable whose name ends with the key's number.
            key.key_source, key.key_variable, key.stored_key = Provider.KeySource.ENVIRONMENT, variable, None
            key.save()


def set_key_from_text(row: Provider, text: str) -> None:
    """Set a provider's key from typed text: `${NAME}` names an environment variable, other text is a literal key.

    A literal key is encrypted. Raise `InvalidError` for a variable that may not hold a key, or if `store_literal_key`
    rejects the text.
    """
    variable = parse_variable(text)
    if variable is not None:
        row.key_source, row.stored_key, row.key_variable = Provider.KeySource.ENVIRONMENT, None, variable
    elif classify_key(text) is KeyNotation.NOT_NEEDED:
        row.key_source, row.stored_key, row.key_variable = Provider.KeySource.NONE, None, ""
    else:
        row.key_source, row.key_variable = Provider.KeySource.STORED, ""
        row.stored_key = store_literal_key(text, row.endpoint)


def parse_variable(text: str) -> str | None:
    """Return the variable named by `${NAME}`, or None for other text.

    Raise `InvalidError` if this variable may not hold a key.
    """
    variable = referenced_variable(text)
    if variable is not None and not may_read(variable):
        message = _("Only variables named LLM_PROVIDER_…_API_KEY may hold a provider key.")
        raise InvalidError([Problem("apiKey", message, "range")])
    return variable


def store_literal_key(text: str, endpoint: str) -> StoredKey:
    """Encrypt and store a key that was typed literally, and return its row.

    Raise `InvalidError` for a placeholder, a masked key, or characters that HTTP headers do not allow.
    """
    if classify_key(text) is not KeyNotation.LITERAL:
        message = _(
            "This is not a key: it is a placeholder, masked, or contains characters not allowed in HTTP headers."
        )
        raise InvalidError([Problem("apiKey", message, "type")])
    return store_key(text, endpoint)


def enable_providers(actor: Actor, rows: Iterable[Provider], *, enabled: bool) -> BulkChange:
    changed = [row for row in rows if row.enabled != enabled]
    names = ", ".join(row.name for row in changed)
    act = AuditedAction("provider.enable" if enabled else "provider.disable", "provider", names[:300])
    with ledger.change(actor, act):
        for row in changed:
            row.enabled = enabled
            save_fields(row, "enabled")
    return BulkChange(len(changed), act.revision)


def check_can_delete_provider(row: Provider) -> None:
    """Raise `InUseError` with the names of the routes and services that use the provider."""
    routes = sorted({candidate.route.task_type for candidate in row.candidates.select_related("route")})
    check_unused(
        "route", routes, _("Task routes still use this provider: %(users)s. Remove it from their chains first.")
    )
    services = [service.service_id for service in row.services.all()]
    check_unused("service", services, _("Services still belong to this provider: %(users)s. Delete them first."))


def delete_provider(actor: Actor, row: Provider, *, expected: int | None = None) -> AuditedAction:
    """Delete a provider that nothing uses. Undo restores it with its stored key."""
    with ledger.change(actor, AuditedAction("provider.delete", "provider", row.name)) as act:
        check_version(Provider.objects.filter(pk=row.pk).first(), expected)
        check_can_delete_provider(row)
        row.delete()
    return act


# A provider has a first key and may have further keys. All of them are used in rotation.


def add_provider_key(actor: Actor, row: Provider, name: str, key: KeyChange) -> AuditedAction:
    """Add a key to a provider's rotation. An empty name is replaced with the next free number.

    Raise `InvalidError` for a name or key that the provider already has, and for text that is not a key.
    """
    act = AuditedAction("provider.key_add", "provider", row.name)
    with ledger.change(actor, act):
        more_keys = list(row.more_keys.select_related("stored_key"))
        new = ProviderKey(provider=row, name=name or _free_number(row, more_keys), position=_next_position(more_keys))
        _check_name(row, more_keys, new.name)
        if key.act is KeyAct.SET:
            _set_key(new, row, key.text)
        else:
            _set_variable(new, row, more_keys, referenced_variable(key.text) or "")
        _check_duplicate(row, more_keys, new)
        new.save()
        save_fields(row)
    return act


def change_provider_key(actor: Actor, row: Provider, name: str, *, new_name: str, enabled: bool) -> AuditedAction:
    """Rename, enable or disable a provider's key.

    Raise `NotFoundError` for an unknown key, and `InvalidError` for a name that another key has.
    """
    act = AuditedAction("provider.key_change", "provider", row.name)
    with ledger.change(actor, act):
        more_keys = list(row.more_keys.all())
        key = next((key for key in more_keys if key.name == name), None)
        if new_name != name:
            _check_name(row, more_keys, new_name)
        if key is not None:
            key.name, key.enabled = new_name, enabled
            key.save(update_fields=["name", "enabled"])
        # The first key is stored in the provider's row, and each further key in its own row.
        elif name == first_key_name(row):
            row.key_name, row.key_enabled = ("" if new_name == FIRST_KEY else new_name), enabled
        else:
            raise NotFoundError(_("This key no longer exists."))
        save_fields(row, "key_name", "key_enabled")
    return act


def remove_provider_key(actor: Actor, row: Provider, name: str) -> AuditedAction:
    """Remove a provider's key. If it was the first key, the next key becomes the first.

    Raise `NotFoundError` for an unknown key, and `InvalidError` for the only key, which must be changed in the
    provider's form.
    """
    act = AuditedAction("provider.key_remove", "provider", row.name)
    with ledger.change(actor, act):
        more_keys = list(row.more_keys.select_related("stored_key"))
        key = next((key for key in more_keys if key.name == name), None)
        if key is None and name != first_key_name(row):
            raise NotFoundError(_("This key no longer exists."))
        if key is None and not more_keys:
            raise InvalidError([Problem("name", _("This is the only key. Change it in the form."), "range")])
        if key is None:
            key = more_keys[0]
            # The provider's row always holds the first key, so the next key is moved into this row.
            row.key_source, row.key_variable, row.stored_key = key.key_source, key.key_variable, key.stored_key
            row.key_name, row.key_enabled = key.name, key.enabled
        key.delete()
        save_fields(row, "key_source", "key_variable", "stored_key", "key_name", "key_enabled")
    return act


def confirm_key_origin(actor: Actor, row: Provider, variable: str, origin: str) -> AuditedAction:
    """Allow the key in an environment variable to be sent to the origin of a provider's endpoint.

    Raise `ConflictError` if the origin is no longer `origin`, which the page showed.
    """
    act = AuditedAction("provider.key_origin", "provider", row.name, {"variable": variable, "origin": origin})
    with ledger.audit(actor, act):
        # Lock the row, so that the endpoint cannot change between this check and the permission.
        current = Provider.objects.select_for_update().filter(pk=row.pk).first()
        if current is None or endpoint_origin(current.endpoint) != origin:
            raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))
        VariableOrigin.objects.get_or_create(variable=variable, origin=origin)
    return act


def first_key_name(row: Provider) -> str:
    return row.key_name or FIRST_KEY


def _check_name(row: Provider, more_keys: list[ProviderKey], name: str) -> None:
    if name in (first_key_name(row), *(key.name for key in more_keys)):
        message = _("This provider already has a key named %(name)s.") % {"name": name}
        raise InvalidError([Problem("name", message, "duplicate")])


def _free_number(row: Provider, more_keys: list[ProviderKey]) -> str:
    taken = {first_key_name(row), *(key.name for key in more_keys)}
    return next(str(number) for number in range(2, len(more_keys) + 4) if str(number) not in taken)


def _next_position(more_keys: list[ProviderKey]) -> int:
    return max((key.position for key in more_keys), default=1) + 1


def _set_key(new: ProviderKey, row: Provider, text: str) -> None:
    variable = parse_variable(text)
    if variable is not None:
        new.key_source, new.key_variable = Provider.KeySource.ENVIRONMENT, variable
    else:
        new.key_source, new.stored_key = Provider.KeySource.STORED, store_literal_key(text, row.endpoint)


def _set_variable(new: ProviderKey, row: Provider, more_keys: list[ProviderKey], variable: str) -> None:
    # If no variable is given, its name is built from the provider's name and the next free number.
    variables = [*(key.key_variable for key in more_keys), variable]
    new.key_source = Provider.KeySource.ENVIRONMENT
    new.key_variable = further_variables(key_variable(row.name, row.env_name), variables)[-1]


def _check_duplicate(row: Provider, more_keys: list[ProviderKey], new: ProviderKey) -> None:
    # A duplicate key would be used twice per rotation without adding any quota.
    other_keys: list[tuple[str, Provider | ProviderKey]] = [
        (first_key_name(row), row),
        *((key.name, key) for key in more_keys),
    ]
    for name, existing in other_keys:
        is_stored = new.stored_key is not None and existing.stored_key == new.stored_key
        if is_stored or (new.key_variable and existing.key_variable == new.key_variable):
            message = _("This key already exists as %(name)s.") % {"name": name}
            raise InvalidError([Problem("apiKey", message, "duplicate")])


# The results of connection tests are stored, so that pages can show them without testing again.


def record_tests(answers: Mapping[str, CheckResult]) -> None:
    now = timezone.now()
    rows = [ProviderTest(name=name, at=now, ms=result.ms, fault=result.fault[:40]) for name, result in answers.items()]
    ProviderTest.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["name"], update_fields=["at", "ms", "fault"]
    )


def record_key_tests(provider: str, answers: Mapping[str, CheckResult]) -> None:
    now = timezone.now()
    rows = [
        KeyTest(provider=provider, key=name, at=now, ms=result.ms, fault=result.fault[:40])
        for name, result in answers.items()
    ]
    KeyTest.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["provider", "key"], update_fields=["at", "ms", "fault"]
    )
