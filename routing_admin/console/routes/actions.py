"""Actions on aliases, and on task routes with their chains."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.problems import Problem
from capabilities.errors import InUseError, InvalidError
from capabilities.models import Agent, Provider
from routing_admin.configuration.guards import check_unused, check_version, save_row
from routing_admin.configuration.revisions import ledger
from routing_admin.configuration.rows import write_chain
from routing_admin.configuration.rows.writing import route_fields
from routing_admin.console.base.keyset import next_position
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, CandidateSpec, RouteSpec
from routing_admin.core.planning.model_names import task_name
from routing_admin.models import Alias, TaskRoute


def save_route_as(
    actor: Actor, row: TaskRoute | None, spec: RouteSpec, *, expected: int | None = None
) -> AuditedAction:
    """Save the route and chain that a spec describes, as one revision. If `row` is None, create a new route.

    Raise `ConflictError` if the stored version is no longer `expected`, and `InvalidError` with all problems in the
    spec.
    """
    # A spec does not contain the route's position in the list, so the position is taken from the row.
    row = row or TaskRoute(task_type=spec.task_type)
    for name, value in route_fields(spec, row.position).items():
        setattr(row, name, value)
    return save_route(actor, row, spec.candidates, expected=expected)


def save_route(
    actor: Actor, row: TaskRoute, chain: Sequence[CandidateSpec] | None = None, *, expected: int | None = None
) -> AuditedAction:
    """Save a route as one revision. If `chain` is given, it replaces the route's candidates."""
    new = row.pk is None
    with ledger.change(actor, AuditedAction("route.add" if new else "route.change", "route", row.task_type)) as act:
        if new:
            row.position = next_position(TaskRoute)
        save_row(row, expected)
        if chain is not None:
            write_chain(row, chain, load_providers(chain))
            row.refresh_from_db()
    return act


def load_providers(chain: Sequence[CandidateSpec]) -> dict[str, Provider]:
    """Load the providers in a chain, by name. Raise `InvalidError` with the names of all unknown providers."""
    providers = Provider.objects.in_bulk([candidate.provider for candidate in chain], field_name="name")
    message = _("There is no provider %(name)s. Add it, or choose another.")
    problems = [
        Problem(f"candidates[{index}].provider", message % {"name": candidate.provider}, "reference")
        for index, candidate in enumerate(chain)
        if candidate.provider not in providers
    ]
    if problems:
        raise InvalidError(problems)
    return dict(providers)


def check_can_delete_route(row: TaskRoute) -> None:
    """Raise `InUseError` for a route that agents or aliases use, and for the default route if others exist."""
    # Requests whose task type has no route use the default route, so it can be deleted only if it is the last route.
    if row.task_type == DEFAULT_ROUTE and TaskRoute.objects.exclude(pk=row.pk).exists():
        raise InUseError(_("The default route takes every task type without its own route, so it must stay."))
    agents = [agent.agent_id for agent in Agent.objects.filter(task_type=row.task_type)]
    check_unused("agent", agents, _("Agents still use this task route: %(users)s. Give them another one first."))
    aliases = [alias.name for alias in Alias.objects.filter(target__in=[row.task_type, task_name(row.task_type)])]
    check_unused("alias", aliases, _("Aliases still lead to this task route: %(users)s. Change them first."))


def delete_route(actor: Actor, row: TaskRoute, *, expected: int | None = None) -> AuditedAction:
    """Delete a route. Requests of its task type then use the default route."""
    with ledger.change(actor, AuditedAction("route.delete", "route", row.task_type)) as act:
        check_version(TaskRoute.objects.filter(pk=row.pk).first(), expected)
        check_can_delete_route(row)
        write_chain(row, (), {})
        row.delete()
    return act


def save_alias(actor: Actor, name: str, target: str) -> AuditedAction:
    """Create an alias or change its target. An empty target removes the alias."""
    with ledger.change(actor, AuditedAction("alias.change" if target else "alias.delete", "alias", name)) as act:
        if target:
            Alias.objects.update_or_create(name=name, defaults={"target": target})
        else:
            Alias.objects.filter(name=name).delete()
    return act
