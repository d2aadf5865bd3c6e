"""A provider's further keys: added, named, switched off and on, removed (decision 20)."""

from __future__ import annotations

from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.core.providers.environment import (
    FIRST_KEY,
    further_variables,
    key_variable,
    referenced_variable,
)
from capabilities.errors import ConflictError, InvalidError, NotFoundError
from capabilities.models import Provider, ProviderKey, VariableOrigin
from capabilities.secrets import origin_of
from routing_admin.configuration.guards import save_fields
from routing_admin.configuration.revisions import ledger
from routing_admin.console.providers.actions import KeyAct, KeyChange, find_stored, to_variable


def add_provider_key(actor: Actor, row: Provider, name: str, key: KeyChange) -> AuditedAction:
    """One more key that takes turns with the others; an empty name is the next free number.

    Raises `InvalidError` for a name or a key that is there already, and for what is no key.
    """
    act = AuditedAction("provider.key_add", "provider", row.name)
    with ledger.change(actor, act):
        further = list(row.more_keys.select_related("stored_key"))
        new = ProviderKey(provider=row, name=name or _free_number(row, further), position=_next_place(further))
        _check_name(row, further, new.name)
        if key.act is KeyAct.SET:
            _give(new, row, key.text)
        else:
            _read_from(new, row, further, referenced_variable(key.text) or "")
        _check_other(row, further, new)
        new.save()
        save_fields(row)
    return act


def change_provider_key(actor: Actor, row: Provider, name: str, *, new_name: str, enabled: bool) -> AuditedAction:
    """Names a key otherwise, and switches it off or on. Raises `NotFoundError`, and `InvalidError` for a name taken."""
    act = AuditedAction("provider.key_change", "provider", row.name)
    with ledger.change(actor, act):
        further = list(row.more_keys.all())
        key = next((each for each in further if each.name == name), None)
        if new_name != name:
            _check_name(row, further, new_name)
        if key is not None:
            key.name, key.enabled = new_name, enabled
            key.save(update_fields=["name", "enabled"])
        elif name == first_name(row):
            row.key_name, row.key_enabled = ("" if new_name == FIRST_KEY else new_name), enabled
        else:
            raise NotFoundError(_("This key no longer exists."))
        save_fields(row, "key_name", "key_enabled")
    return act


def remove_provider_key(actor: Actor, row: Provider, name: str) -> AuditedAction:
    """Takes a key out; where it was the first, the next one becomes the first. Undo brings it back.

    Raises `NotFoundError`, and `InvalidError` for the only one, which the provider's form changes.
    """
    act = AuditedAction("provider.key_remove", "provider", row.name)
    with ledger.change(actor, act):
        further = list(row.more_keys.select_related("stored_key"))
        key = next((each for each in further if each.name == name), None)
        if key is None and name != first_name(row):
            raise NotFoundError(_("This key no longer exists."))
        if key is None and not further:
            raise InvalidError([Problem("name", _("This is the only key. Change it in the form."), "range")])
        if key is None:
            key = further[0]
            row.key_source, row.key_variable, row.stored_key = key.key_source, key.key_variable, key.stored_key
            row.key_name, row.key_enabled = key.name, key.enabled
        key.delete()
        save_fields(row, "key_source", "key_variable", "stored_key", "key_name", "key_enabled")
    return act


def confirm_key_origin(actor: Actor, row: Provider, variable: str, origin: str) -> AuditedAction:
    """Allow the key in a variable to be sent to the provider's origin, which has to be the one that was shown.

    Raises `ConflictError` where the address was changed meanwhile.
    """
    act = AuditedAction("provider.key_origin", "provider", row.name, {"variable": variable, "origin": origin})
    with ledger.audit(actor, act):
        now = Provider.objects.select_for_update().filter(pk=row.pk).first()
        if now is None or origin_of(now.endpoint) != origin:
            raise ConflictError(_("Someone else changed this in the meantime. Check the new version, then save again."))
        VariableOrigin.objects.get_or_create(variable=variable, origin=origin)
    return act


def first_name(row: Provider) -> str:
    """What the key in the provider's own row is called."""
    return row.key_name or FIRST_KEY


def _check_name(row: Provider, further: list[ProviderKey], name: str) -> None:
    if name in (first_name(row), *(each.name for each in further)):
        message = _("This provider already has a key named %(name)s.") % {"name": name}
        raise InvalidError([Problem("name", message, "duplicate")])


def _free_number(row: Provider, further: list[ProviderKey]) -> str:
    taken = {first_name(row), *(each.name for each in further)}
    return next(str(number) for number in range(2, len(further) + 4) if str(number) not in taken)


def _next_place(further: list[ProviderKey]) -> int:
    return max((each.position for each in further), default=1) + 1


def _give(new: ProviderKey, row: Provider, text: str) -> None:
    variable = to_variable(text)
    if variable is not None:
        new.key_source, new.key_variable = Provider.KeySource.ENVIRONMENT, variable
    else:
        new.key_source, new.stored_key = Provider.KeySource.STORED, find_stored(text, row.endpoint)


def _read_from(new: ProviderKey, row: Provider, further: list[ProviderKey], variable: str) -> None:
    """A variable of its own where none is named: the next free number."""
    chosen = [*(each.key_variable for each in further), variable]
    new.key_source = Provider.KeySource.ENVIRONMENT
    new.key_variable = further_variables(key_variable(row.name, row.env_name), chosen)[-1]


def _check_other(row: Provider, further: list[ProviderKey], new: ProviderKey) -> None:
    """The same key twice would only take two turns."""
    others: list[tuple[str, Provider | ProviderKey]] = [
        (first_name(row), row),
        *((each.name, each) for each in further),
    ]
    for name, other in others:
        is_stored = new.stored_key is not None and other.stored_key == new.stored_key
        if is_stored or (new.key_variable and other.key_variable == new.key_variable):
            message = _("This key already exists as %(name)s.") % {"name": name}
            raise InvalidError([Problem("apiKey", message, "duplicate")])
