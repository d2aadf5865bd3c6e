"""Where the keys in environment variables may be sent: bound at their first use, as stored keys are."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping

from capabilities.acts import Actor
from capabilities.core.providers.environment import overrides
from capabilities.models import VariableOrigin
from capabilities.secrets import origin_of
from routing_admin.core.configuration.specs import Configuration, KeyKind

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
