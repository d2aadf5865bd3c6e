"""Actions on model services: save, set capabilities, fill them in from the catalogue, record and settle drifts.

A drift is evidence that a model cannot read something that its service says it can, or that what the model can read has
changed. A cell of the capability matrix is one capability of a service: its side (input or output) and its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from capabilities.actors import Actor, AuditedAction
from capabilities.core.providers.catalogue import (
    CELLS,
    TEXT,
    Catalogue,
    CatalogueEntry,
    Fact,
    FactVerdict,
    Retirement,
)
from capabilities.core.providers.probes.drift import DISMISSAL_PERIOD, REFUTING_KINDS, DriftKind
from capabilities.core.vocabulary import Capabilities, Cell, Source
from capabilities.models import Drift, Provider, Service, ServiceCapability
from routing_admin.configuration import snapshot
from routing_admin.configuration.guards import check_unused, check_version, save_fields, save_row
from routing_admin.configuration.revisions import ledger
from routing_admin.console.base.keyset import next_position
from routing_admin.console.base.page_responses import BulkChange
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.routes.queries import list_target_aliases


def save_service(
    actor: Actor,
    row: Service,
    *,
    capabilities: Capabilities | None = None,
    cells: Mapping[Cell, bool] = MappingProxyType({}),
    expected: int | None = None,
) -> AuditedAction:
    """Save a new or changed service with the capabilities that an administrator declares, as one revision.

    `capabilities` replaces all capabilities of the service, while `cells` sets only those that it contains.
    """
    new = row.pk is None
    with ledger.change(
        actor, AuditedAction("service.add" if new else "service.change", "service", row.service_id)
    ) as act:
        if row.pk is None:
            row.position = next_position(Service)
        save_row(row, expected)
        if capabilities is not None:
            set_declared_capabilities(row, capabilities)
        if cells:
            write_cells(row, cells, Source.DECLARED)
            row.save(update_fields=["declares_capabilities"])
    return act


def set_declared_capabilities(row: Service, capabilities: Capabilities) -> None:
    """Declare that a service has exactly these capabilities. An unchanged capability keeps its source."""
    cells = [("input", name) for name in capabilities.input] + [("output", name) for name in capabilities.output]
    stored = {(cell.side, cell.name): cell for cell in row.capabilities.all()}
    for (side, name), cell in stored.items():
        if cell.supported and (side, name) not in cells:
            cell.delete()
    for position, (side, name) in enumerate(cells):
        existing = stored.get((side, name))
        if existing is not None and existing.supported:
            # Update only the position, because `write_cell` would set the source to `declared`.
            ServiceCapability.objects.filter(pk=existing.pk).update(position=position)
        else:
            write_cell(row, (side, name), supported=True, source=Source.DECLARED, position=position)
    if not row.declares_capabilities:
        row.declares_capabilities = True
        row.save(update_fields=["declares_capabilities"])


def set_cell(
    actor: Actor, row: Service, cell: Cell, *, supported: bool, source: Source = Source.DECLARED
) -> AuditedAction:
    return set_capabilities(actor, {row: {cell: supported}}, source=source)


def set_capabilities(
    actor: Actor,
    cells_by_service: Mapping[Service, Mapping[Cell, bool]],
    *,
    source: Source = Source.DECLARED,
    action: str = "service.capabilities",
) -> AuditedAction:
    """Set capabilities of one or more services as one revision. `action` is the action's code in the audit log."""
    return set_sourced_capabilities(actor, {row: {source: cells} for row, cells in cells_by_service.items()}, action)


def set_sourced_capabilities(
    actor: Actor,
    cells_by_service: Mapping[Service, Mapping[Source, Mapping[Cell, bool]]],
    action: str = "service.capabilities",
) -> AuditedAction:
    """Set capabilities as `set_capabilities` does, but with a separate source for each group of capabilities."""
    # The column in the audit log holds 300 characters, so the names are truncated below.
    names = ", ".join(row.service_id for row in cells_by_service)
    with ledger.change(actor, AuditedAction(action, "service", names[:300])) as act:
        for row, cells_by_source in cells_by_service.items():
            for source, cells in cells_by_source.items():
                write_cells(row, cells, source)
            save_fields(row, "declares_capabilities")
    return act


def declare_default_text(row: Service) -> None:
    # A service that declares no capabilities is assumed to read and write text. Declaring its first capability must not
    # change that.
    if row.declares_capabilities:
        return
    row.declares_capabilities = True
    for side in ServiceCapability.Side.values:
        write_cell(row, (side, "text"), supported=True, source=Source.UNKNOWN)


def write_cells(row: Service, cells: Mapping[Cell, bool], source: Source) -> None:
    """Write capabilities of a service. The caller must save the row's `declares_capabilities`."""
    declare_default_text(row)
    for cell, on in cells.items():
        write_cell(row, cell, supported=on, source=source)


def write_cell(row: Service, cell: Cell, *, supported: bool, source: Source, position: int | None = None) -> None:
    """Write a capability of a service. A new capability becomes the last on its side."""
    side, name = cell
    values: dict[str, object] = {"supported": supported, "source": source.value}
    if position is not None:
        values["position"] = position
    last = row.capabilities.filter(side=side).count()
    ServiceCapability.objects.update_or_create(
        service=row, side=side, name=name, defaults=values, create_defaults={"position": last, **values}
    )


def check_can_delete_service(row: Service) -> None:
    """Raise `InUseError` with the names of the agents and aliases that use the service."""
    agents = [agent.agent_id for agent in row.agents.all()]
    check_unused("agent", agents, _("Agents still use this service: %(users)s. Give them another one first."))
    aliases = list_target_aliases(row.service_id)
    check_unused("alias", aliases, _("Aliases still lead to this service: %(users)s. Change them first."))


def delete_service(actor: Actor, row: Service, *, expected: int | None = None) -> AuditedAction:
    """Delete a service that no agent or alias uses.

    The service's model can still be called through its provider, but then counts as text-only.
    """
    with ledger.change(actor, AuditedAction("service.delete", "service", row.service_id)) as act:
        check_version(Service.objects.filter(pk=row.pk).first(), expected)
        check_can_delete_service(row)
        row.delete()
    return act


# Values from the catalogue are filled in for existing services, and for models that are added as services.

FIRM_SOURCES = (Source.DECLARED.value, Source.PROBED.value)
"""Sources whose values the catalogue replaces only if an administrator insists."""
UNKNOWN_MODEL: Mapping[Cell, tuple[bool, Source]] = dict.fromkeys(TEXT, (True, Source.UNKNOWN))
"""Capabilities assumed for a model that is not in the catalogue."""


def entry_for(provider: Provider, model: str) -> CatalogueEntry | None:
    return snapshot.current().catalogue.entry_at(provider.name, provider.endpoint, model)


def find_retirement(provider: Provider, model: str) -> Retirement | None:
    return snapshot.current().catalogue.retirement_at(provider.name, provider.endpoint, model)


def list_catalogue_cells(entry: CatalogueEntry) -> dict[Cell, tuple[bool, Source]]:
    """Return the value of each standard capability in a catalogue entry, with the value's source."""
    return {cell: _catalogue_cell(entry.facts.get(cell)) for cell in CELLS}


def _catalogue_cell(fact: Fact | None) -> tuple[bool, Source]:
    # If the catalogue is unclear, the capability is off, and the source shows why.
    if fact is None:
        return False, Source.UNKNOWN
    return fact.value, Source.CONTESTED if fact.verdict is FactVerdict.CONTESTED else Source.CATALOGUE


def fill_from_catalogue(
    actor: Actor, rows: Iterable[Service], *, insist: bool = False, catalogue: Catalogue | None = None
) -> BulkChange:
    """Fill in unknown capabilities from the catalogue, as one revision. Return how many services changed.

    Declared and probed values are kept unless `insist` is true.
    """
    cells_by_service = list_open_cells(catalogue or snapshot.current().catalogue, rows, insist=insist)
    if not cells_by_service:
        return BulkChange(0)
    return BulkChange(len(cells_by_service), set_sourced_capabilities(actor, cells_by_service).revision)


def list_open_cells(
    catalogue: Catalogue, rows: Iterable[Service], *, insist: bool = False
) -> dict[Service, dict[Source, dict[Cell, bool]]]:
    cells_by_service = {}
    for row in rows:
        entry = catalogue.entry_at(row.provider.name, row.provider.endpoint, row.model)
        cells = open_cells(row, entry, insist=insist) if entry else {}
        if cells:
            cells_by_service[row] = cells
    return cells_by_service


def open_cells(row: Service, entry: CatalogueEntry, *, insist: bool) -> dict[Source, dict[Cell, bool]]:
    """Return the values that the catalogue may fill in, by source and capability.

    These are the capabilities that are neither declared nor probed and, with `insist`, all capabilities on which the
    catalogue's sources agree.
    """
    stored = {(cell.side, cell.name): cell for cell in row.capabilities.all()}
    declares_all = row.declares_all_capabilities
    fillable: dict[Source, dict[Cell, bool]] = {}
    for cell, (on, source) in list_catalogue_cells(entry).items():
        current = stored.get(cell)
        is_firm = current.source in FIRM_SOURCES if current else declares_all
        is_open = not is_firm or (insist and source is Source.CATALOGUE)
        # Omit capabilities that already have this value and source: writing them would create a revision without a
        # change.
        if is_open and not (current and current.supported == on and current.source == source):
            fillable.setdefault(source, {})[cell] = on
    return fillable


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model that is to be added as a service. `cells` are the capabilities to switch on.

    `alias` is another name that callers can use, or empty.
    """

    model: str
    service_id: str
    cells: frozenset[Cell] = field(default_factory=frozenset)
    alias: str = ""


def add_models(actor: Actor, provider: Provider, models: Sequence[NewModel]) -> AuditedAction:
    names = ", ".join(model.service_id for model in models)
    act = AuditedAction("service.add", "provider", provider.name, {"services": names[:300]})
    with ledger.change(actor, act):
        for model in models:
            add_model(actor, provider, model)
    return act


def add_model(actor: Actor, provider: Provider, new: NewModel) -> Service:
    """Add a service. Capabilities with the catalogue's value get the catalogue as their source; others are declared."""
    entry = entry_for(provider, new.model)
    row = Service(
        service_id=new.service_id,
        name=new.service_id,
        provider=provider,
        model=new.model,
        # If the model is not in the catalogue, only the chosen capabilities are declared.
        declares_capabilities=entry is not None,
    )
    save_service(actor, row)
    catalogue_cells = list_catalogue_cells(entry) if entry else UNKNOWN_MODEL
    cells: dict[Source, dict[Cell, bool]] = {}
    for cell in {**catalogue_cells, **dict.fromkeys(new.cells)}:
        on, source = catalogue_cells.get(cell, (False, Source.UNKNOWN))
        is_chosen = cell in new.cells
        if is_chosen != on:
            cells.setdefault(Source.DECLARED, {})[cell] = is_chosen
        elif entry is not None:
            cells.setdefault(source, {})[cell] = on
    if cells:
        set_sourced_capabilities(actor, {row: cells})
    if new.alias:
        save_alias(actor, new.alias, row.service_id)
    return row


# Recording a drift changes no capability. An administrator decides whether to change the service or dismiss the drift.


def record_drift(row: Service, capability: str, kind: DriftKind, revision: int | None = None) -> None:
    """Store new evidence about a model, which replaces earlier evidence about the same capability."""
    now = timezone.now()
    lookup: dict[str, Any] = {"provider": row.provider.name, "model": row.model, "capability": capability}
    # A dismissed drift remains hidden for a week, even if the same evidence is found again during that week.
    if Drift.objects.filter(**lookup, kind=kind, dismissed_at__gt=now - DISMISSAL_PERIOD).exists():
        return
    values = {"kind": kind, "at": now, "request": "", "status": None, "revision": revision, "dismissed_at": None}
    Drift.objects.update_or_create(defaults=values, **lookup)


def settle_doubts(row: Service, capabilities: Iterable[str]) -> None:
    """Delete the evidence against these capabilities of a service's model, because a probe has settled the question."""
    rows = Drift.objects.filter(provider=row.provider.name, model=row.model, kind__in=REFUTING_KINDS)
    rows.filter(capability__in=list(capabilities)).delete()


def dismiss_drift(actor: Actor, row: Service, capability: str) -> None:
    """Hide a drift (evidence against a capability) for a week. The capability itself does not change."""
    with ledger.audit(actor, AuditedAction("drift.dismiss", "service", row.service_id, {"capability": capability})):
        rows = Drift.objects.filter(provider=row.provider.name, model=row.model, capability=capability)
        rows.update(dismissed_at=timezone.now())


def accept_doubt(actor: Actor, row: Service, capability: str) -> AuditedAction:
    """Declare that the model does not read this kind of input. Undo restores the value, so the drift is shown again."""
    return set_cell(actor, row, ("input", capability), supported=False)
