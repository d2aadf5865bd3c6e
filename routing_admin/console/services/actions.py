"""Changing model services and what they can do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.utils.translation import gettext as _

from capabilities.acts import Actor, AuditedAction
from capabilities.core.vocabulary import Capabilities, Cell, Source
from capabilities.models import Service, ServiceCapability
from routing_admin.configuration.guards import check_unused, check_version, save_fields, save_row
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.positions import next_position
from routing_admin.console.routes.queries import list_aliases_of


def save_service(
    actor: Actor,
    row: Service,
    *,
    capabilities: Capabilities | None = None,
    cells: Mapping[Cell, bool] = MappingProxyType({}),
    expected: int | None = None,
) -> AuditedAction:
    """Writes a service, new or changed, as one revision; with what an administrator declares it can do.

    `capabilities` are exactly what it can do from now on, `cells` the switches that changed.
    """
    new = row.pk is None
    with ledger.change(
        actor, AuditedAction("service.add" if new else "service.change", "service", row.service_id)
    ) as act:
        if row.pk is None:
            row.position = next_position(Service)
        save_row(row, expected)
        if capabilities is not None:
            declare(row, capabilities)
        if cells:
            write_cells(row, cells, Source.DECLARED)
            row.save(update_fields=["declares_capabilities"])
    return act


def declare(row: Service, capabilities: Capabilities) -> None:
    """Makes exactly these capabilities the service's own; a cell whose value stays keeps where it came from."""
    wanted = [("input", name) for name in capabilities.input] + [("output", name) for name in capabilities.output]
    kept = {(cell.side, cell.name): cell for cell in row.capabilities.all()}
    for (side, name), cell in kept.items():
        if cell.supported and (side, name) not in wanted:
            cell.delete()
    for position, (side, name) in enumerate(wanted):
        found = kept.get((side, name))
        if found is not None and found.supported:
            ServiceCapability.objects.filter(pk=found.pk).update(position=position)
        else:
            write_cell(row, (side, name), supported=True, source=Source.DECLARED, position=position)
    if not row.declares_capabilities:
        row.declares_capabilities = True
        row.save(update_fields=["declares_capabilities"])


def set_cell(
    actor: Actor, row: Service, cell: Cell, *, supported: bool, source: Source = Source.DECLARED
) -> AuditedAction:
    """Switches one cell of the matrix."""
    return set_capabilities(actor, {row: {cell: supported}}, source=source)


def set_capabilities(
    actor: Actor,
    cells_by_service: Mapping[Service, Mapping[Cell, bool]],
    *,
    source: Source = Source.DECLARED,
    action: str = "service.capabilities",
) -> AuditedAction:
    """Switches several cells, of one service or of many, as one revision; `action` is what the audit log calls it."""
    return set_sourced_capabilities(actor, {row: {source: cells} for row, cells in cells_by_service.items()}, action)


def set_sourced_capabilities(
    actor: Actor,
    cells_by_service: Mapping[Service, Mapping[Source, Mapping[Cell, bool]]],
    action: str = "service.capabilities",
) -> AuditedAction:
    """The same for cells that come from several sources."""
    names = ", ".join(row.service_id for row in cells_by_service)
    with ledger.change(actor, AuditedAction(action, "service", names[:300])) as act:
        for row, cells_by_source in cells_by_service.items():
            for source, cells in cells_by_source.items():
                write_cells(row, cells, source)
            save_fields(row, "declares_capabilities")
    return act


def keep_default_text(row: Service) -> None:
    """A service that declared nothing counts as text in, text out; its first declared cell must not take that away."""
    if row.declares_capabilities:
        return
    row.declares_capabilities = True
    for side in ServiceCapability.Side.values:
        write_cell(row, (side, "text"), supported=True, source=Source.UNKNOWN)


def write_cells(row: Service, cells: Mapping[Cell, bool], source: Source) -> None:
    """Writes some cells of a row; that it declares its capabilities from now on is not yet saved with it."""
    keep_default_text(row)
    for cell, on in cells.items():
        write_cell(row, cell, supported=on, source=source)


def write_cell(row: Service, cell: Cell, *, supported: bool, source: Source, position: int | None = None) -> None:
    """Writes one cell; a new one goes to the end of its side."""
    side, name = cell
    values: dict[str, object] = {"supported": supported, "source": source.value}
    if position is not None:
        values["position"] = position
    last = row.capabilities.filter(side=side).count()
    ServiceCapability.objects.update_or_create(
        service=row, side=side, name=name, defaults=values, create_defaults={"position": last, **values}
    )


def check_can_delete_service(row: Service) -> None:
    """Raises `InUseError` naming the agents that use the service, or the aliases that lead to it."""
    agents = [agent.agent_id for agent in row.agents.all()]
    check_unused(agents, _("Agents still use this service: %(users)s. Give them another one first."))
    aliases = list_aliases_of(row.service_id)
    check_unused(aliases, _("Aliases still lead to this service: %(users)s. Change them first."))


def delete_service(actor: Actor, row: Service, *, expected: int | None = None) -> AuditedAction:
    """Deletes a service that no agent and no alias uses. Its provider and model stay callable, as text only."""
    with ledger.change(actor, AuditedAction("service.delete", "service", row.service_id)) as act:
        check_version(Service.objects.filter(pk=row.pk).first(), expected)
        check_can_delete_service(row)
        row.delete()
    return act
